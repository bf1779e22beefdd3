"""Comparisons of arms: one value with a bootstrap interval over models, in a table that all experiments share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream

Floats = NDArray[np.float64]


def contrast(
    context: Inputs, name: str, statistic: stats.Statistic, *samples: Floats, paired: bool = False
) -> dict[str, Any]:
    """Return a row of the table ``contrasts``: ``statistic`` of the samples, one value for each model."""
    found = stats.bootstrap(
        statistic,
        *samples,
        rng=stream(context.seed, context.study, "contrast", name),
        resamples=context.settings.resamples,
        confidence=context.settings.confidence,
        paired=paired,
    )
    return {
        "contrast": name,
        "value": found.value,
        "lo": found.lo,
        "hi": found.hi,
        "n": min(map(len, samples)),
    }


def difference(context: Inputs, name: str, first: Floats, second: Floats) -> dict[str, Any]:
    """Return the row of mean(first) - mean(second); models of equal number share their start and data order."""
    return contrast(context, name, stats.mean_difference, first, second, paired=len(first) == len(second))


def least(context: Inputs, name: str, values: Floats) -> dict[str, Any]:
    """Return the row of the smallest value: no interval, as no resample has a smaller one."""
    smallest = float(np.min(values)) if len(values) else float("nan")
    return {"contrast": name, "value": smallest, "lo": None, "hi": None, "n": len(values)}


def table(rows: list[dict[str, Any]]) -> pl.DataFrame | None:
    """Return the rows as a frame; None if there is none."""
    return pl.DataFrame(rows, infer_schema_length=None) if rows else None


def compared(rows: Iterable[dict[str, Any]]) -> pl.DataFrame | None:
    """Return the table ``contrasts``; models that are left out are counted with a reason."""
    return table([{"n_excluded": 0, "excluded_reason": ""} | row for row in rows])
