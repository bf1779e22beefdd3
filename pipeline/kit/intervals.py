"""One policy for every interval of every study (`docs/intervals.md`): which kind belongs to which statistic.

The unit is what is really independent, a trained model in most comparisons. Each kind is exact or rests on Student's
distribution, for any number of units; none is a bootstrap, since a bootstrap of few units covers less than it says, and
of forty no more than these do (`docs/intervals.md` has both, simulated). No interval uses random numbers.

- mean: Student; difference of means: Welch, or Student of the differences where arms are paired;
- median: order statistics; shift between arms: Mann and Whitney's, or order statistics of the paired differences;
- ratio: as a shift, of quotients; share: Clopper and Pearson's;
- rank correlation: Fisher's; any other smooth statistic: the jackknife;
- ratio of variance components: the F distribution (a study makes it from its mean squares).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats = NDArray[np.float64]

STUDENT, WELCH, ORDER, RANKS = "Student", "Welch", "order statistics", "Mann-Whitney"
EXACT, NEWCOMBE, FISHER, JACKKNIFE, NONE = "exact binomial", "Newcombe", "Fisher", "jackknife", "none"
VARIANCES = "F distribution"
KINDS = [STUDENT, WELCH, ORDER, RANKS, EXACT, NEWCOMBE, FISHER, JACKKNIFE, VARIANCES, NONE]
MOST = 100_000  # units: nobody would train more


class Interval(NamedTuple):
    """A value with its interval; ``lo`` and ``hi`` are NaN where none exists of so few units.

    ``n`` counts the units (of the smaller sample where there are two), ``fewest`` are those from which an interval of
    this kind exists.
    """

    value: float
    lo: float
    hi: float
    kind: str = NONE
    n: int = 0
    fewest: int = 0

    def within(self, low: float, high: float) -> Interval:
        """Return the interval without what lies outside of [low, high], where no value of the statistic can be."""
        lo, hi = (min(max(end, low), high) if not math.isnan(end) else end for end in (self.lo, self.hi))
        return self._replace(lo=lo, hi=hi)


def plain(value: float, n: int) -> Interval:
    """Return a value that has no interval, of ``n`` units."""
    return Interval(float(value), math.nan, math.nan, NONE, n, 1)


def mean(sample: ArrayLike, confidence: float) -> Interval:
    """Return the mean of ``sample`` (units,) with Student's interval.

    >>> [round(end, 2) for end in mean([1.0, 2.0, 3.0], 0.95)[:3]]
    [2.0, -0.48, 4.48]
    """
    values = np.asarray(sample, float)
    n = len(values)
    return _student(values.mean() if n else math.nan, _variance(values), n - 1, confidence, STUDENT, n)


def mean_difference(first: ArrayLike, second: ArrayLike, confidence: float, *, paired: bool) -> Interval:
    """Return mean(first) - mean(second) with Welch's interval, or with Student's of the differences where ``paired``.

    Raises ValueError if paired samples have different lengths.
    """
    x, y = np.asarray(first, float), np.asarray(second, float)
    if paired:
        return mean(_differences(x, y), confidence)
    n = min(len(x), len(y))
    if n < 2:
        value = x.mean() - y.mean() if n else math.nan
        return Interval(float(value), math.nan, math.nan, WELCH, n, 2)
    freedom = _satterthwaite([_variance(x), _variance(y)], [len(x) - 1, len(y) - 1])
    return _student(x.mean() - y.mean(), _variance(x) + _variance(y), freedom, confidence, WELCH, n)


def median(sample: ArrayLike, confidence: float) -> Interval:
    """Return the median of ``sample`` between two of its order statistics (the interval of the sign test).

    It covers at least as often as ``confidence`` says, whatever the distribution; at 0.95 it takes six units.

    >>> median([1, 2, 3, 4, 5, 6], 0.95)[:3], median([1, 2, 3, 4, 5], 0.95)[:3]
    ((3.5, 1.0, 6.0), (3.0, nan, nan))
    """
    values = np.sort(np.asarray(sample, float))
    n = len(values)
    least = next(k for k in range(1, MOST) if 2 * 0.5**k <= 1 - confidence)
    if not n or np.isnan(values).any():
        return Interval(math.nan, math.nan, math.nan, ORDER, n, least)
    if n < least:
        return Interval(float(np.median(values)), math.nan, math.nan, ORDER, n, least)
    place = int(stats.binom.ppf((1 - confidence) / 2, n, 0.5))  # the first with more than that below it, or as much
    while place and stats.binom.cdf(place - 1, n, 0.5) > (1 - confidence) / 2:
        place -= 1
    return Interval(float(np.median(values)), float(values[place - 1]), float(values[n - place]), ORDER, n, least)


def shift(first: ArrayLike, second: ArrayLike, confidence: float, *, paired: bool) -> Interval:
    """Return by how much ``first`` is above ``second``: the median of all differences between their units.

    Hodges and Lehmann's estimate with the interval that belongs to the test of Mann and Whitney. Where arms are
    ``paired``, the median of the differences of pairs between order statistics.
    """
    x, y = np.asarray(first, float), np.asarray(second, float)
    if paired:
        return median(_differences(x, y), confidence)
    return _ranked(np.subtract.outer(x, y), confidence)


def ratio(first: ArrayLike, second: ArrayLike, confidence: float, *, paired: bool) -> Interval:
    """Return how many times ``first`` is ``second``: the median of all quotients, with the interval of `shift`.

    Both samples are positive, or one of them may be 0: a quotient by 0 is infinite, and 0/0 makes all of it NaN.
    """
    x, y = np.asarray(first, float), np.asarray(second, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        if paired:
            _differences(x, y)
            return median(x / y, confidence)
        return _ranked(np.divide.outer(x, y), confidence)


def share(hits: ArrayLike, confidence: float) -> Interval:
    """Return the share of true entries of ``hits`` (units,) with its exact binomial interval.

    That of Clopper and Pearson (1934) covers the probability behind the share at least as often as ``confidence`` says,
    for any number of units. Raises ValueError if an entry is NaN: a model that was not judged has no place in a share.

    >>> round(share([False] * 4, 0.95).hi, 4)
    0.6024
    """
    values = np.asarray(hits, float)
    if np.isnan(values).any():
        raise ValueError("a share of models has NaN entries")
    n = len(values)
    if not n:
        return Interval(math.nan, math.nan, math.nan, EXACT, 0, 1)
    count = int((values != 0).sum())
    return Interval(count / n, *binomial(count, n, confidence), EXACT, n, 1)


@lru_cache(maxsize=4096)
def binomial(count: int, n: int, confidence: float) -> tuple[float, float]:
    """Return the ends of Clopper and Pearson's interval of ``count`` hits among ``n``."""
    tail = (1 - confidence) / 2
    lo = float(stats.beta.ppf(tail, count, n - count + 1)) if count else 0.0
    hi = float(stats.beta.ppf(1 - tail, count + 1, n - count)) if count < n else 1.0
    return lo, hi


def share_difference(first: ArrayLike, second: ArrayLike, confidence: float) -> Interval:
    """Return the share of ``first`` minus that of ``second``, of independent arms.

    Newcombe's (1998, method 10) way to put two intervals together, of the exact ones: it covers at least as often.
    """
    one, two = share(first, confidence), share(second, confidence)
    value = one.value - two.value
    lo = value - math.hypot(one.value - one.lo, two.hi - two.value)
    hi = value + math.hypot(one.hi - one.value, two.value - two.lo)
    return Interval(value, lo, hi, NEWCOMBE, min(one.n, two.n), 1)


def correlation(first: ArrayLike, second: ArrayLike, confidence: float) -> Interval:
    """Return Spearman's rank correlation of pairs, with Fisher's interval.

    Its standard error is that of Bonett and Wright (2000), sqrt((1 + r^2/2) / (n - 3)). Ranks that agree perfectly
    stand for a correlation half a step below 1; a step is 12 / (n^3 - n) wide.
    """
    x, y = np.asarray(first, float), np.asarray(second, float)
    n, least = len(_differences(x, y)), 4
    value = spearman(x, y)
    if n < least or math.isnan(value):
        return Interval(value, math.nan, math.nan, FISHER, n, least)
    inside = float(np.clip(value, -1 + 6 / (n**3 - n), 1 - 6 / (n**3 - n)))
    half = stats.norm.ppf((1 + confidence) / 2) * math.sqrt((1 + inside**2 / 2) / (n - 3))
    lo, hi = np.tanh([np.arctanh(inside) - half, np.arctanh(inside) + half])
    return Interval(value, min(float(lo), value), max(float(hi), value), FISHER, n, least)


def spearman(first: Floats, second: Floats) -> float:
    """Return Spearman's rank correlation (ties get mean ranks); NaN where a sample is constant, or has a NaN."""
    if len(first) < 2 or np.isnan(first).any() or np.isnan(second).any():
        return math.nan
    x, y = (stats.rankdata(each) - (len(each) + 1) / 2 for each in (first, second))
    scale = math.sqrt((x * x).sum() * (y * y).sum())
    return float((x * y).sum() / scale) if scale > 0 else math.nan


def jackknife(
    statistic: Callable[..., float], *samples: ArrayLike, confidence: float, paired: bool = False, log: bool = False
) -> Interval:
    """Return ``statistic(*samples)`` with the interval of the jackknife (Tukey 1958).

    Each sample has its units along the first axis; with ``paired`` unit r of all samples is left out together. The
    interval is Student's, with Satterthwaite's degrees of freedom where samples are independent. With ``log`` it is
    taken of the logarithm of a positive statistic, as belongs to a quotient.
    """
    arrays = [np.asarray(sample, float) for sample in samples]
    n = min(map(len, arrays))
    if paired and len({len(array) for array in arrays}) > 1:
        raise ValueError("paired samples have different lengths")

    def at(*parts: Floats) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            value = float(statistic(*parts))
            return float(np.log(value)) if log else value

    def back(value: float) -> float:
        return float(np.exp(value)) if log else value

    value = at(*arrays) if n else math.nan
    if n < 3 or not math.isfinite(value):
        return Interval(back(value), math.nan, math.nan, JACKKNIFE, n, 3)
    spread: list[float] = []
    for which in [range(len(arrays))] if paired else [[each] for each in range(len(arrays))]:
        units = len(arrays[which[0]])
        left_out = np.array(
            [
                at(*(np.delete(array, unit, 0) if place in which else array for place, array in enumerate(arrays)))
                for unit in range(units)
            ]
        )
        # Without one unit the others may be all alike, and the logarithm of their spread is not defined.
        defined = bool(np.isfinite(left_out).all())
        squares = float(np.square(left_out - left_out.mean()).sum()) if defined else math.nan
        spread.append((units - 1) / units * squares)
    sizes = [n - 1] if paired else [len(array) - 1 for array in arrays]
    found = _student(value, sum(spread), _satterthwaite(spread, sizes), confidence, JACKKNIFE, n)
    return found._replace(value=back(value), lo=back(found.lo), hi=back(found.hi), fewest=3)


def pair_mean(distances_RxR: Floats, confidence: float) -> Interval:
    """Return the mean of symmetric distances over pairs of different units, with its interval over units, not pairs.

    Pairs share units, so that units are left out (`jackknife`); the distances are positive.
    """
    distances = np.asarray(distances_RxR, float)
    units = np.arange(len(distances))
    return jackknife(lambda kept: mean_over_pairs(distances, kept), units, confidence=confidence, log=True)


def mean_over_pairs(distances_RxR: Floats, units: ArrayLike | None = None) -> float:
    """Return the mean of symmetric distances over unordered pairs of different ``units``, by default all; NaN for fewer
    than two."""
    distances = np.asarray(distances_RxR, float)
    if units is not None:
        kept = np.asarray(units, int)
        distances = distances[np.ix_(kept, kept)]
    n = len(distances)
    return float((distances.sum() - np.trace(distances)) / (n * (n - 1))) if n > 1 else math.nan


def needed(found: Interval, bound: float, confidence: float) -> int | None:
    """Return how many units would make an interval of this kind end before ``bound``, judged by the spread of these.

    None where no number would tell: the value is the bound, or there is no interval to judge by. Nor can it be said of
    a median, of which the interval says where two units lie, and not how the others are spread: among models that learn
    or do not, its ends jump. A share is taken to stay as it is; the half of any other interval that reaches across
    shrinks as its kind does.
    """
    value, least = found.value, max(found.fewest, 1)
    if math.isnan(value) or value == bound:
        return None
    if found.kind == EXACT:
        for n in _steps(max(found.fewest, found.n)):
            lo, hi = binomial(round(value * n), n, confidence)
            if lo > bound or hi < bound:
                return n
        return None
    half = value - found.lo if bound < value else found.hi - value
    if not math.isfinite(half) or found.n < 2:
        return None
    if half <= 0:  # units that all agree: the interval ends at the value, whatever their number
        return max(least, 2)
    if found.kind == ORDER:
        return None
    wanted = abs(value - bound) / half * _length(found.kind, found.n, confidence)
    return next((n for n in _steps(max(least, 2)) if _length(found.kind, n, confidence) < wanted), None)


def _steps(start: int) -> list[int]:
    """Return numbers of units to try: each up to a thousand, then ever farther apart."""
    far = np.unique(np.geomspace(1000, MOST, 500).astype(int)).tolist()
    return [*range(start, max(1000, start)), *(n for n in far if n >= start)]


def _length(kind: str, n: int, confidence: float) -> float:
    """Return to what the length of an interval of ``n`` units with the same spread is in proportion."""
    if kind in (STUDENT, WELCH, JACKKNIFE):
        freedom = 2 * (n - 1) if kind == WELCH else n - 1
        return _t(confidence, freedom) / math.sqrt(n)
    return 1 / math.sqrt(n - 3 if kind == FISHER and n > 3 else n)


def _variance(values: Floats) -> float:
    """Return the variance of the mean of ``values``; NaN for fewer than two, and where one is infinite."""
    if len(values) < 2 or not np.isfinite(values).all():
        return math.nan
    return float(values.var(ddof=1) / len(values))


def _satterthwaite(variances: list[float], freedoms: list[int]) -> float:
    """Return the degrees of freedom of a sum of variances; without any spread they do not matter."""
    weights = sum(variance**2 / freedom for variance, freedom in zip(variances, freedoms, strict=True))
    return sum(variances) ** 2 / weights if weights > 0 else 1.0


def _student(value: float, variance: float, freedom: float, confidence: float, kind: str, n: int) -> Interval:
    if freedom <= 0 or math.isnan(variance):
        return Interval(float(value), math.nan, math.nan, kind, n, 2)
    half = _t(confidence, freedom) * math.sqrt(variance)
    return Interval(float(value), float(value) - half, float(value) + half, kind, n, 2)


def _differences(x: Floats, y: Floats) -> Floats:
    if len(x) != len(y):
        raise ValueError(f"paired samples have {len(x)} and {len(y)} units")
    return x - y


def _ranked(pairs_MxN: Floats, confidence: float) -> Interval:
    """Return the median of ``pairs_MxN`` between two of its order statistics, those of Mann and Whitney's test."""
    m, n = pairs_MxN.shape
    least = next(k for k in range(1, MOST) if 2 / math.comb(2 * k, k) <= 1 - confidence)
    ordered = np.sort(pairs_MxN.ravel())
    if not len(ordered) or np.isnan(ordered).any():
        return Interval(math.nan, math.nan, math.nan, RANKS, min(m, n), least)
    value = float(np.median(ordered)) if np.isfinite(ordered).all() else float(ordered[(len(ordered) - 1) // 2])
    place = _place(m, n, confidence)
    if not place:
        return Interval(value, math.nan, math.nan, RANKS, min(m, n), least)
    return Interval(value, float(ordered[place - 1]), float(ordered[-place]), RANKS, min(m, n), least)


@lru_cache(maxsize=256)
def _sign_place(n: int, confidence: float) -> int:
    """Return the largest k for which fewer than k heads of n coins have at most half of what ``confidence`` leaves."""
    below = np.cumsum(stats.binom.pmf(np.arange(n + 1), n, 0.5))
    return int((below <= (1 - confidence) / 2).sum())


@lru_cache(maxsize=4096)
def _t(confidence: float, freedom: float) -> float:
    """Return the quantile of Student's distribution that leaves half of the rest above."""
    return float(stats.t.ppf((1 + confidence) / 2, freedom))


@lru_cache(maxsize=256)
def _place(m: int, n: int, confidence: float) -> int:
    """Return the largest k for which U < k has at most half of what ``confidence`` leaves; 0 where there is none."""
    tail = (1 - confidence) / 2
    if math.comb(m + n, m) > 2**53:  # floats no longer count, and the normal distribution is as good
        return int(m * n / 2 - stats.norm.ppf(1 - tail) * math.sqrt(m * n * (m + n + 1) / 12))
    # Ways to reach each U: the Gaussian binomial coefficient, as a product of (1 - q^(n+i)) / (1 - q^i).
    ways = np.zeros(m * n + 1)
    ways[0] = 1
    for i in range(1, m + 1):
        ways[n + i :] -= ways[: -(n + i)].copy() if n + i <= m * n else 0
        for u in range(i, m * n + 1):
            ways[u] += ways[u - i]
    below = np.cumsum(ways / math.comb(m + n, m))
    return int((below <= tail).sum())
