"""What can be asked of printed numbers: which counts give a mean and a spread, which shares give rounded
accuracies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np

from pipeline.studies.verifier.measures import published

POPULATION, SAMPLE = "standard deviation (n)", "standard deviation (n - 1)"
POPULATION_ERROR, SAMPLE_ERROR = "standard error (n)", "standard error (n - 1)"
# What a printed spread s of n counts can be: the sum of squared deviations over s^2
READINGS = {
    POPULATION: lambda n: n,
    SAMPLE: lambda n: n - 1,
    POPULATION_ERROR: lambda n: n * n,
    SAMPLE_ERROR: lambda n: n * (n - 1),
}


def half(digits: int) -> Fraction:
    """Return half a unit of the last of ``digits`` decimals."""
    return Fraction(1, 2 * 10**digits)


def gives_spread(mean: float, spread: float, reading: str, count: int = published.RUNS, digits: int = 3) -> bool:
    """Return whether ``count`` integers can have exactly this mean and a spread that rounds to the printed
    one.

    The mean is that of integers, so that it is exact where it is printed with enough digits for it.

    >>> gives_spread(240.0, 5.177, POPULATION), gives_spread(240.0, 5.177, SAMPLE)
    (True, False)
    """
    total = Fraction(str(mean)) * count
    if total.denominator != 1:
        raise ValueError(f"{count} integers have no mean of {mean}")
    factor, s, tie = READINGS[reading](count), Fraction(str(spread)), half(digits)
    low, high = factor * max(s - tie, Fraction(0)) ** 2, factor * (s + tie) ** 2
    # Integers near the mean: sum y = rest, and the sum of squared deviations is sum y^2 - rest^2 / count.
    rest = int(total) % count
    shift = Fraction(rest * rest, count)
    least, most = math.ceil(low + shift), math.floor(high + shift)
    return any(square in sums_of_squares(count, rest, most) for square in range(least, most + 1))


def sums_of_squares(count: int, total: int, most: int) -> set[int]:
    """Return which sums of squares up to ``most`` are those of ``count`` integers that sum to ``total``.

    >>> sorted(sums_of_squares(2, 1, 6))
    [1, 5]
    """
    reach = math.isqrt(most)
    width = reach * count
    possible = np.zeros((2 * width + 1, most + 1), bool)
    possible[width, 0] = True
    for _ in range(count):
        longer = np.zeros_like(possible)
        for y in range(-reach, reach + 1):
            square = y * y
            rows = slice(max(0, -y), possible.shape[0] - max(0, y))
            shifted = slice(max(0, y), possible.shape[0] - max(0, -y))
            longer[shifted, square:] |= possible[rows, : most + 1 - square]
        possible = longer
    return set(np.flatnonzero(possible[width + total]).tolist())


def is_share(value: float, n: int, digits: int = 3) -> bool:
    """Return whether ``value`` is k/n for an integer k, rounded to ``digits`` decimals, ties either way."""
    exact, tie = Fraction(str(value)), half(digits)
    k = round(exact * n)
    return any(abs(Fraction(each, n) - exact) <= tie for each in (k - 1, k, k + 1))


def fewest_prompts(values: Iterable[float], digits: int = 3) -> int:
    """Return the smallest n of which all ``values`` are shares.

    >>> fewest_prompts([0.5, 0.333])
    6
    """
    wanted = list(values)
    return next(n for n in range(1, 10 ** (digits + 1)) if all(is_share(value, n, digits) for value in wanted))


def largest_spread(mean: float, low: float, high: float) -> float:
    """Return the largest standard deviation (n) of numbers from ``low`` to ``high`` that have this mean."""
    return math.sqrt((high - mean) * (mean - low))


# What captions and text say of the tables


def groups() -> Iterator[float]:
    """Yield, for each group of Table 3.6 with Algorithm 1, its lowest accuracy of Algorithm 1 minus the
    highest other."""
    for setting in dict.fromkeys(row[2:4] for row in published.MAIN):
        rows = [row for row in published.MAIN if row[2:4] == setting]
        ours = [row[5] for row in rows if row[0] > 0]
        if ours:
            yield min(ours) - max(row[5] for row in rows if row[0] == 0)


def by_threshold(layer: int | None = None) -> dict[tuple[int, int, int, float, float], float]:
    """Return accuracy at threshold 0.1 minus that at 0.5 in Table 3.13, by Q, B, layer, top_p and
    temperature."""
    found: dict[tuple[int, int, int, float, float], dict[float, float]] = {}
    for Q, B, at, threshold, top_p, temperature, _, accuracy, *_ in published.FULL:
        if Q and threshold is not None and (layer is None or at == layer):
            found.setdefault((Q, B, at, top_p, temperature), {})[threshold] = accuracy
    return {key: pair[0.1] - pair[0.5] for key, pair in found.items() if len(pair) == 2}


def by_layer() -> dict[float, float]:
    """Return accuracy of layer 27 minus that of layer 31 in Table 3.13, by threshold."""
    rows = {row[2:6]: row[7] for row in published.FULL if row[:2] == (4, 4)}
    return {t: rows[27, t, 0.95, 1.0] - rows[31, t, 0.95, 1.0] for t in (0.1, 0.5)}


def per_call() -> dict[tuple, float]:
    """Return distinct correct test cases per call of each row of Algorithm 1 in Table 3.13, minus that of the
    baseline at the same top_p and temperature."""
    slope = {row[:7]: published.REQUESTED * row[7] / row[9] for row in published.FULL}
    base = {key[4:6]: value for key, value in slope.items() if key[0] == 0 and key[6] is None}
    return {key: value - base[key[4:6]] for key, value in slope.items() if key[0] > 0}


def drops() -> dict[str, float]:
    """Return what names out of distribution cost in Table 3.15 over the spread of names in it, by sampler."""
    samplers = {None: "baseline", 0.1: "threshold 0.1", 0.5: "threshold 0.5"}
    return {samplers[at]: (here - ood) / spread for _, at, here, spread, ood, _ in published.NAMES}


def most_errors() -> float:
    """Return the most errors that one of five runs of Algorithm 1 can have by Table 3.3: a spread s of n
    numbers allows none farther from their mean than s sqrt(n - 1)."""
    rows = [row for (_, Q, _), row in published.ERRORS.items() if Q]
    return max(mean + spread * math.sqrt(published.RUNS - 1) for mean, spread in rows)


def most_calls() -> float:
    """Return the most calls of a row of Table 3.13 that is no block best-of-n."""
    return float(max(row[9] for row in published.FULL if row[6] is None))


def unaided() -> dict[tuple[int, int], float]:
    """Return accuracy in Table 3.2 minus the better one without backtracking in Table 3.4, by Q and B."""
    return {key: published.BACKTRACKED[key] - max(row[1:]) for key, row in published.NECESSARY.items()}


def steps() -> list[float]:
    """Return what one more step of Q or of B adds to the accuracy of Table 3.2."""
    table = published.BACKTRACKED
    quotas, strides = pairwise((1, 2, 4)), pairwise((2, 4, 6))
    more = [table[b, B] - table[a, B] for a, b in quotas for B in (2, 4, 6)]
    return more + [table[Q, b] - table[Q, a] for a, b in strides for Q in (1, 2, 4)]
