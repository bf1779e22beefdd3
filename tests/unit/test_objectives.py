"""The theory's objective (Wen et al. 2023, eq. 5, with the l2 term), and the prefixes of the authors' release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_training import open_job
from workspace import load_study

from pipeline.languages import dyck
from pipeline.models.transformer import theory as theory_transformer
from pipeline.studies.dyck.params import Run
from pipeline.training import core, jobs


def test_squared_error_is_the_distance_from_the_one_hot_next_token(tmp_path: Path) -> None:
    job = open_job(tmp_path, "dyck-theory-squared", replicas=1)
    table, weights = torch.from_numpy(job.table), job.unflatten(job.initial([0]) * 5)

    def forward(*inputs: Any, select: Any = None) -> Any:
        return theory_transformer.forward(job.spec, weights, table, *inputs, select=select)

    batch = {k: torch.from_numpy(v) for k, v in job.batch([0], 2).items()}
    metrics = job.objective.loss(forward, batch)
    data, squares, hits = job.objective.data, [], []
    for n in job._selection(0, 2):
        length = data["lengths"][0, n]
        ids, targets = data["ids"][0, n, :length].astype(np.int64), data["targets"][0, n, :length]
        assert (targets >= 0).all()  # the loss looks everywhere
        outputs = forward(torch.from_numpy(ids)[None, None])[0][0, 0]
        squares += ((outputs - torch.eye(4)[targets.astype(np.int64)]) ** 2).sum(-1).tolist()
        hits += (outputs.argmax(-1).numpy() == targets).tolist()
    assert metrics["loss"].item() == pytest.approx(np.mean(squares), rel=1e-5)
    assert metrics["accuracy"].item() == pytest.approx(np.mean(hits))


def test_the_l2_term_pulls_every_weight_towards_zero(tmp_path: Path) -> None:
    """Gradients differ by lambda times the weights: the gradient of lambda |w|^2 / 2."""
    flat = {}
    for l2 in (0.0, 0.5):
        (tmp_path / str(l2)).mkdir()
        job = open_job(tmp_path / str(l2), "dyck-theory-squared", settings={"l2": l2}, steps=1)
        start = job.initial([0])
        state = jobs.State.fresh(job, start.clone())
        batch = {k: torch.from_numpy(v) for k, v in job.batch([0], 0).items()}
        core._step(job, state, torch.from_numpy(job.table), batch, torch.full((1, 1), 1e-3))
        flat[l2] = state.moments["mean"]  # Adam's first moment: (1 - beta_1) times the gradient
    torch.testing.assert_close(flat[0.5] - flat[0.0], 0.1 * 0.5 * start, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(("k", "depth"), [(1, 2), (2, 4), (3, 3)])
def test_prefixes_of_the_release_are_the_probe_with_one_pair_inserted(k: int, depth: int) -> None:
    tokens, lengths, probabilities = dyck.release_bank(k, depth)
    assert probabilities.sum() == pytest.approx(1) and (lengths == 2 * k * depth + 2).all()
    assert dyck.is_valid(tokens, k, depth).all() and (dyck.depths(tokens)[:, -1] == 0).all()
    probe = dyck.nested_probe(k, depth)[0].tolist()
    for row in tokens.tolist():
        places = [i for i in range(len(probe) + 1) if row[:i] + row[i + 2 :] == probe]
        assert any(row[i] % 2 and row[i + 1] == row[i] + 1 for i in places)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"contrastive": 0.3}, "contrastive_prefix must be there exactly if contrastive is above 0"),
        ({"contrastive_prefix": "nested"}, "contrastive_prefix must be there exactly if contrastive is above 0"),
        ({"objective": "squared_error"}, "l2 must be there exactly for objective 'squared_error'"),
        ({"l2": 0.1}, "l2 must be there exactly for objective 'squared_error'"),
        (
            {"objective": "squared_error", "l2": 0.1, "contrastive": 0.3, "contrastive_prefix": "nested"},
            "contrastive needs objective 'next_token'",
        ),
    ],
)
def test_impossible_objectives_are_refused(changes: dict[str, Any], message: str) -> None:
    entry = load_study("dyck").members("runs")["dyck-minimal"].model_dump()
    with pytest.raises(ValueError, match=message):
        Run(**entry | changes)
