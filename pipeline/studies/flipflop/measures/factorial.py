"""What the order of data and the initial weights each add to the variance of errors (section 3.5.6.2, Figure 3.28)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from pipeline.kit.intervals import VARIANCES, Interval

Floats = NDArray[np.float64]


def two_way(values_KxM: Floats) -> tuple[float, float, float]:
    """Return the shares of the sum of squares that rows, columns, and the rest explain."""
    mean = values_KxM.mean()
    rows = values_KxM.mean(1, keepdims=True) - mean
    columns = values_KxM.mean(0, keepdims=True) - mean
    rest = values_KxM - mean - rows - columns
    parts = np.array([np.square(np.broadcast_to(part, values_KxM.shape)).sum() for part in (rows, columns, rest)])
    total = parts.sum()
    first, second, third = parts / total if total else np.full(3, np.nan)
    return float(first), float(second), float(third)


def components(values_KxM: Floats, confidence: float) -> list[tuple[float, Interval]]:
    """Return the variance components of rows, columns, and the rest, each with its ratio to that of the rest.

    From expected mean squares: the mean square of rows is M times their component plus that of the rest, so that
    (MS_rows - MS_rest) / M is unbiased: around 0, and below it half of the time, where rows do nothing. The interval of
    the ratio is exact for normal values: MS_rows / MS_rest over 1 + M ratio has the F distribution with K - 1 and
    (K - 1)(M - 1) degrees. Three seeds are the fewest; NaN where a side has less than two.
    """
    K, M = values_KxM.shape
    nothing = (np.nan, Interval(np.nan, np.nan, np.nan, VARIANCES, min(K, M), 3))
    if min(K, M) < 2:
        return [nothing] * 3
    mean = values_KxM.mean()
    rows, columns = values_KxM.mean(1, keepdims=True) - mean, values_KxM.mean(0, keepdims=True) - mean
    within = (K - 1) * (M - 1)
    noise = float(np.square(values_KxM - mean - rows - columns).sum()) / within
    found = []
    for part, own, other in ((rows, K, M), (columns, M, K)):
        square = other * float(np.square(part).sum()) / (own - 1)
        ratio = lo = hi = np.nan
        if noise > 0:
            ratio = (square / noise - 1) / other
            at = scipy_stats.f.ppf([(1 + confidence) / 2, (1 - confidence) / 2], own - 1, within)
            lo, hi = (float((square / noise / quantile - 1) / other) for quantile in at)
        found.append(((square - noise) / other, Interval(ratio, lo, hi, VARIANCES, own, 3)))
    return [*found, (noise, nothing[1])]
