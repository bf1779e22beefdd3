"""Comparisons between runs (chapter section 6, claims 5 and 6), all at the chosen rates."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream

STEPS, FINAL = "steps_to_95", "final accuracy"

Parts = dict[str, pl.DataFrame]  # the rows of each run in a table of how its models ended


def steps_to(part: pl.DataFrame) -> tuple[NDArray[np.float64], int]:
    """Return the steps of each model of a run to the threshold, and how many models never got there.

    Those that never did have one step more than the run.
    """
    never = part[STEPS].is_null()
    return part[STEPS].fill_null(part["steps"] + 1).cast(pl.Float64).to_numpy(), int(never.sum())


def interval(
    context: Inputs, statistic: stats.Statistic, *samples: Any, names: tuple[str, ...], paired: bool = False
) -> stats.Interval:
    """Return ``statistic`` of the samples with its bootstrap interval over models, from the stream ``names``."""
    return stats.bootstrap(
        statistic, *samples, rng=stream(context.seed, context.study, "analysis", "bootstrap", *names),
        resamples=context.settings.resamples, confidence=context.settings.confidence, paired=paired,
    )  # fmt: skip


def row(
    context: Inputs, name: str, quantity: str, statistic: str, parts: list[pl.DataFrame],
    estimate: stats.Interval, p: float = np.nan, censored: int = 0, start: float = np.nan,
) -> dict[str, Any]:  # fmt: skip
    """Return a row of the table of contrasts about the runs ``parts``."""
    return {
        "contrast": name,
        "task": parts[0]["task"][0],
        "quantity": quantity,
        "statistic": statistic,
        "runs": ", ".join(part["run"][0] for part in parts),
        "value": estimate.value,
        "lo": estimate.lo,
        "hi": estimate.hi,
        "start": float(start),
        "p": float(p),
        "confidence": context.settings.confidence,
        "n": sum(part.height for part in parts),
        "n_censored": censored,
        "n_diverged": sum(part["diverged_at"].is_not_null().sum() for part in parts),
    }
