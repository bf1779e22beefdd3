"""E7: HMMs that no predictor of one token tells apart, and what predictors of two tell (chapter 5.6 to 5.9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.languages import hmm
from pipeline.languages.hmm import Floats
from pipeline.studies.selfsup.measures import models
from pipeline.studies.selfsup.names import PUBLISHED, TWINS

Model = tuple[Floats, Floats]  # O and T
Pair = tuple[str, str, str, Model, Model]


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return table ``hmm_equivalence``."""
    rows = [row for pair in pairs(context) for row in apart(*pair)]
    return {"hmm_equivalence": pl.DataFrame(rows)}


def pairs(context: Inputs) -> Iterator[Pair]:
    """Yield family, ids and parameters of every pair: the published one, exact twins, cycles with one power."""
    first, second = models.read(context.dataset(PUBLISHED)).items()
    yield "published", first[0], second[0], first[1], second[1]
    drawn = models.read(context.dataset(TWINS))
    for name, (emission, transition) in drawn.items():
        theta = context.entry.share * hmm.widest_turn(emission, transition)
        other = hmm.twin(emission, transition, hmm.rotation(theta))
        yield "rotated", name, f"{name}-turned", (emission, transition), other


def apart(family: str, one: str, two: str, first: Model, second: Model) -> Iterator[dict[str, Any]]:
    """Yield rows of ``hmm_equivalence`` of a pair, one for each task."""
    dist_o, dist_t = hmm.distance(*first, *second)
    for task in (*hmm.PAIR_TASKS, *hmm.TRIPLE_TASKS):
        difference = hmm.predictor(first[0], first[1], task) - hmm.predictor(second[0], second[1], task)
        yield {
            "family": family,
            "instance_a": one,
            "instance_b": two,
            "task": task,
            "max_abs_diff": np.abs(difference).max(),
            "fro_diff": np.linalg.norm(difference),
            "dist_O": float(dist_o),
            "dist_T": float(dist_t),
        }
