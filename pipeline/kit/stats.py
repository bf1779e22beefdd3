"""Statistics shared by all studies: bootstrap intervals over replicas, paired and over pairs; rank correlation.

Every random number comes from a generator that the caller names (`pipeline.kit.streams`), so an interval is as
reproducible as the table that holds it. Intervals are percentile bootstrap intervals.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Statistic = Callable[..., NDArray[np.float64]]  # statistic(*samples, axis): reduces that axis


class Interval(NamedTuple):
    """A value and its bootstrap interval; NaN where it is not defined (no data, one replica, no spread of ranks)."""

    value: float
    lo: float
    hi: float


def bootstrap(
    statistic: Statistic,
    *samples: ArrayLike,
    rng: np.random.Generator,
    resamples: int,
    confidence: float,
    paired: bool = True,
) -> Interval:
    """Return ``statistic(*samples)`` with an interval from resampling replicas (`scipy.stats.bootstrap`).

    With ``paired`` the samples have one length and are resampled together: entry r of each is replica r.
    """
    arrays = [np.asarray(sample, float) for sample in samples]
    if min(map(len, arrays)) == 0:
        return Interval(np.nan, np.nan, np.nan)
    value = float(statistic(*arrays, axis=-1))
    if min(map(len, arrays)) == 1:
        return Interval(value, np.nan, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # resamples without spread give NaN, dropped below
        draws = stats.bootstrap(
            arrays, statistic, n_resamples=resamples, confidence_level=confidence, method="percentile",
            paired=paired and len(arrays) > 1, vectorized=True, rng=rng,
        ).bootstrap_distribution  # fmt: skip
    return Interval(value, *percentiles(draws, confidence))


def percentiles(draws: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """Return the central interval of bootstrap ``draws``; NaN draws (an undefined resample) are left out."""
    draws = draws[~np.isnan(draws)]
    if not len(draws):
        return np.nan, np.nan
    lo, hi = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(lo), float(hi)


# Statistics for `bootstrap`


def mean(sample: NDArray, axis: int = -1) -> NDArray[np.float64]:
    """Return the mean along ``axis``."""
    return np.mean(sample, axis=axis)


def median(sample: NDArray, axis: int = -1) -> NDArray[np.float64]:
    """Return the median along ``axis``."""
    return np.median(sample, axis=axis)


def mean_difference(first: NDArray, second: NDArray, axis: int = -1) -> NDArray[np.float64]:
    """Return mean(first) - mean(second)."""
    return np.mean(first, axis=axis) - np.mean(second, axis=axis)


def median_difference(first: NDArray, second: NDArray, axis: int = -1) -> NDArray[np.float64]:
    """Return median(first) - median(second)."""
    return np.median(first, axis=axis) - np.median(second, axis=axis)


def median_ratio(first: NDArray, second: NDArray, axis: int = -1) -> NDArray[np.float64]:
    """Return median(first) / median(second)."""
    return np.median(first, axis=axis) / np.median(second, axis=axis)


def spearman(first: NDArray, second: NDArray, axis: int = -1) -> NDArray[np.float64]:
    """Return Spearman's rank correlation (ties get mean ranks); NaN where either sample is constant."""
    x = stats.rankdata(first, axis=axis)
    y = stats.rankdata(second, axis=axis)
    x -= x.mean(axis=axis, keepdims=True)
    y -= y.mean(axis=axis, keepdims=True)
    scale = np.sqrt((x * x).sum(axis=axis) * (y * y).sum(axis=axis))
    with np.errstate(invalid="ignore"):
        return (x * y).sum(axis=axis) / np.where(scale > 0, scale, np.nan)


# Averages over pairs of replicas


def pair_mean(distances: NDArray[np.float64]) -> float:
    """Return the mean over unordered pairs of different replicas of symmetric ``distances`` (R, R); NaN for R < 2."""
    return float(pair_mean_draws(distances, np.ones((1, len(distances)), int))[0])


def pair_mean_draws(distances: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return `pair_mean` of each resample b, in which replica r occurs ``counts[b, r]`` times.

    Pairs of one replica with itself are left out (their distance is 0 by construction); the result is NaN where
    no other pair is left.

    ``distances`` may be a stack (..., R, R): the same resamples of replicas for every entry, (..., resamples).
    """
    off_diagonal = distances * (1 - np.eye(distances.shape[-1]))
    total = ((counts.astype(float) @ off_diagonal) * counts).sum(-1)
    pairs = counts.sum(1) ** 2 - (counts**2).sum(1)
    with np.errstate(invalid="ignore"):
        return total / np.where(pairs > 0, pairs, np.nan)


def resample_counts(rng: np.random.Generator, n: int, resamples: int) -> NDArray[np.int64]:
    """Return (resamples, n): how often each of n replicas occurs in a bootstrap resample."""
    return rng.multinomial(n, np.full(n, 1 / n), size=resamples) if n else np.zeros((resamples, 0), int)


def bootstrap_pairs(
    distances: NDArray[np.float64], rng: np.random.Generator, resamples: int, confidence: float
) -> Interval:
    """Return `pair_mean` with an interval from resampling replicas, not pairs (pairs share replicas)."""
    if len(distances) < 2:
        return Interval(np.nan, np.nan, np.nan)
    draws = pair_mean_draws(distances, resample_counts(rng, len(distances), resamples))
    return Interval(pair_mean(distances), *percentiles(draws, confidence))


# Random probability vectors


def simplex_distance(n: ArrayLike) -> NDArray[np.float64]:
    """Return E|a - b|^2 of two independent vectors uniform on the simplex with n entries (flat Dirichlet).

    It is 2 (E|a|^2 - 1/n) = 2 (2/(n+1) - 1/n) = 2(n-1) / (n(n+1)).
    """
    n = np.asarray(n, float)
    return 2 * (n - 1) / (n * (n + 1))


def causal_distance(n: int) -> float:
    """Return E|A - B|_F^2 of two independent causal n x n matrices, row i uniform on the simplex with i entries.

    >>> round(causal_distance(16), 4)
    2.9968
    """
    return float(simplex_distance(np.arange(1, n + 1)).sum())
