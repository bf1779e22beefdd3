"""Comparisons of models: one value with an interval over seeds, in a table that all experiments share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pipeline.kit import extremes, stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream

Row = dict[str, Any]
DIVERGED = "diverged"


def median(
    context: Inputs, name: str, sample: ArrayLike, excluded: int = 0, reason: str = DIVERGED
) -> list[Row]:
    """Return the row of the median over seeds with its bootstrap interval; none without a value.

    So many models are ``excluded`` for a ``reason``.
    """
    values = np.asarray(sample, float)
    if not len(values):
        return []
    estimate = stats.bootstrap(
        stats.median, values, rng=stream(context.seed, context.study, "contrast", name),
        resamples=context.settings.resamples, confidence=context.settings.confidence,
    )  # fmt: skip
    lo, hi = (None if np.isnan(end) else float(end) for end in (estimate.lo, estimate.hi))
    return [_row(name, float(estimate.value), lo, hi, len(values), excluded, reason)]


def least(
    name: str, sample: Sequence[float] | ArrayLike, excluded: int = 0, reason: str = DIVERGED
) -> list[Row]:
    """Return the row of the smallest value of all seeds: what is above a bar in every seed is above it there."""
    values = np.asarray(sample, float)
    if not len(values):
        return []
    return [_row(name, extremes.smallest(values), None, None, len(values), excluded, reason)]


def most(
    name: str, sample: Sequence[float] | ArrayLike, excluded: int = 0, reason: str = DIVERGED
) -> list[Row]:
    """Return the row of the largest value of all seeds."""
    values = np.asarray(sample, float)
    if not len(values):
        return []
    return [_row(name, extremes.largest(values), None, None, len(values), excluded, reason)]


def single(name: str, value: float, n: int, excluded: int = 0) -> list[Row]:
    """Return the row of a value without an interval."""
    return [_row(name, value, None, None, n, excluded, DIVERGED)]


def _row(
    name: str, value: float, lo: float | None, hi: float | None, n: int, excluded: int, reason: str
) -> Row:
    return {
        "contrast": name, "value": value, "lo": lo, "hi": hi, "n": n, "n_excluded": excluded,
        "excluded_reason": reason if excluded else "",
    }  # fmt: skip
