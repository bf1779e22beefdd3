"""What models of the study read, for whoever uses one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pipeline.errors import SandglassError
from pipeline.models.pair_classifier import mlp
from pipeline.studies.selfsup import inputs

PAIRS, TABLE = {"model": "pair_classifier/mlp"}, {"model": "masked_prediction/table"}


@pytest.mark.parametrize(
    ("entry", "items"),
    [
        (PAIRS, ["+-"]),
        (PAIRS, []),
        (PAIRS, [[1.0, 2.0, 3.0]]),
        (PAIRS, [[float("nan"), 1.0]]),
        (TABLE, [0.5]),
        (TABLE, [[1, 2]]),
        (PAIRS, [[1.0, 2.0], 3.0]),
    ],
)
def test_what_is_no_input_is_refused(entry: dict[str, Any], items: list[Any]) -> None:
    with pytest.raises(SandglassError, match="cannot encode"):
        inputs.encode(entry, *items)


def test_pairs_are_checked_and_go_through_the_model() -> None:
    spec = mlp.Spec(2, [4])
    read = inputs.checked(spec, torch.from_numpy(inputs.encode(PAIRS, [0.0, 1.0], [2.0, 3.0])))
    weights = {name: torch.zeros(1, *shape) for name, shape in mlp.shapes(spec).items()}
    assert mlp.forward(spec, weights, torch.zeros(1, 2), read[None])[0].tolist() == [[0.0, 0.0]]
    for wrong in (torch.zeros(3), torch.zeros(3, 3), torch.zeros(3, 2, dtype=torch.int64)):
        with pytest.raises(SandglassError, match="expected real numbers"):
            inputs.checked(spec, wrong)
