"""Comparisons of configurations: one value with an interval over models, in a table that all experiments share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy import stats as scipy_stats

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.shares import share_interval
from pipeline.kit.streams import stream

Floats = NDArray[np.float64]
Row = dict[str, Any]
UNTRAINED = "error on the training language above the bar"


def resampled(
    context: Inputs, name: str, statistic: stats.Statistic, *samples: Floats, paired: bool = False, excluded: int = 0
) -> list[Row]:  # fmt: skip
    """Return the row of ``statistic`` of the samples, one value for each model, with its bootstrap interval.

    No row where a sample is empty; ``excluded`` models are those that did not learn the training language.
    """
    if not samples or min(map(len, samples)) == 0:
        return []
    interval = stats.bootstrap(
        statistic, *samples, rng=stream(context.seed, context.study, "contrast", name),
        resamples=context.settings.resamples, confidence=context.settings.confidence, paired=paired,
    )  # fmt: skip
    return [_row(name, interval, min(map(len, samples)), excluded)]


def share(context: Inputs, name: str, hits: ArrayLike, excluded: int = 0) -> list[Row]:
    """Return the row of the share of models for which ``hits`` is true, with its exact binomial interval."""
    values = np.asarray(hits, float)
    if not len(values):
        return []
    return [_row(name, share_interval(values, context.settings.confidence), len(values), excluded)]


def error_interval(n_err: ArrayLike, n_reads: int, confidence: float) -> tuple[Floats, Floats]:
    """Return the ends of the exact binomial intervals (Clopper and Pearson 1934) of the errors behind ``n_err`` wrong
    answers (models,) among ``n_reads``.

    >>> lo, hi = error_interval([0], 353_875, 0.9)
    >>> float(lo[0]), f"{hi[0]:.2g}"
    (0.0, '8.5e-06')
    """
    wrong, tail = np.asarray(n_err, float), (1 - confidence) / 2
    with np.errstate(invalid="ignore"):
        lo = np.where(wrong == 0, 0.0, scipy_stats.beta.ppf(tail, wrong, n_reads - wrong + 1))
        hi = np.where(wrong == n_reads, 1.0, scipy_stats.beta.ppf(1 - tail, wrong + 1, n_reads - wrong))
    return lo, hi


def single(name: str, value: float, n: int, excluded: int = 0) -> list[Row]:
    """Return the row of a value without an interval."""
    return [_row(name, stats.Interval(value, np.nan, np.nan), n, excluded)]


def _row(name: str, interval: stats.Interval, n: int, excluded: int) -> Row:
    lo, hi = (None if np.isnan(end) else float(end) for end in (interval.lo, interval.hi))
    return {
        "contrast": name, "value": float(interval.value), "lo": lo, "hi": hi, "n": n, "n_excluded": excluded,
        "excluded_reason": UNTRAINED if excluded else "",
    }  # fmt: skip


def table(rows: Iterable[Row]) -> pl.DataFrame | None:
    """Return the table ``contrasts``; None if there is no row."""
    listed = list(rows)
    return pl.DataFrame(listed, infer_schema_length=None) if listed else None


def decades(errors: ArrayLike, count: int) -> Floats:
    """Return log10 of shares of errors among ``count`` answers, half an error more: finite also for none."""
    return np.log10(np.asarray(errors, float) + 0.5 / count)


def spread(values: Floats) -> float:
    """Return the largest over the smallest value that is not 0; NaN where there are not two."""
    above = values[values > 0]
    return float(above.max() / above.min()) if len(above) > 1 else np.nan


def two_way(values_KxK: Floats) -> tuple[float, float, float]:
    """Return the shares of the sum of squares that rows, columns, and the rest explain."""
    mean = values_KxK.mean()
    rows = values_KxK.mean(1, keepdims=True) - mean
    columns = values_KxK.mean(0, keepdims=True) - mean
    rest = values_KxK - mean - rows - columns
    parts = np.array(
        [np.square(np.broadcast_to(part, values_KxK.shape)).sum() for part in (rows, columns, rest)]
    )
    total = parts.sum()
    first, second, third = parts / total if total else np.full(3, np.nan)
    return float(first), float(second), float(third)


class Component(NamedTuple):
    """A variance component, its ratio to that of the rest, and the ratio's interval; NaN where not defined."""

    value: float
    ratio: float
    lo: float
    hi: float


def components(values_KxK: Floats, confidence: float) -> tuple[Component, Component, Component]:
    """Return the variance components of rows, columns, and the rest, from expected mean squares.

    The mean square of rows is k times their component plus that of the rest, so that (MS_rows - MS_rest) / k is
    unbiased: around 0, and below it half of the time, where rows do nothing. The interval of the ratio is exact for
    normal values: MS_rows / MS_rest over 1 + k ratio has the F distribution with k - 1 and (k - 1)^2 degrees.
    """
    k = len(values_KxK)
    mean = values_KxK.mean()
    rows, columns = values_KxK.mean(1, keepdims=True) - mean, values_KxK.mean(0, keepdims=True) - mean
    noise = float(np.square(values_KxK - mean - rows - columns).sum()) / (k - 1) ** 2
    estimates = []
    for part in (rows, columns):
        square = k * float(np.square(part).sum()) / (k - 1)
        if noise > 0:
            at = scipy_stats.f.ppf([(1 + confidence) / 2, (1 - confidence) / 2], k - 1, (k - 1) ** 2)
            lo, hi = (float((square / noise / quantile - 1) / k) for quantile in at)
            estimates.append(Component((square - noise) / k, (square / noise - 1) / k, lo, hi))
        else:
            estimates.append(Component((square - noise) / k, np.nan, np.nan, np.nan))
    return estimates[0], estimates[1], Component(noise, np.nan, np.nan, np.nan)


def holm(p_values: Sequence[float]) -> float:
    """Return the smallest of the p values, multiplied by their number: Holm's first step decides whether any stands."""
    return float(min(1.0, min(p_values) * len(p_values))) if len(p_values) else np.nan
