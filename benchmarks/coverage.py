"""How often the intervals of `pipeline.kit.intervals` cover what they are about, by simulation.

`python benchmarks/coverage.py` prints the first table of docs/intervals.md, two columns of which a test simulates; with
`--bootstrap` it prints the second, of intervals that the project does not use.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pipeline.kit import intervals

CONFIDENCE = 0.95
LEAST = 0.93  # asked of every cell
SIZES = (3, 4, 5, 6, 8, 10, 15, 20, 40)
ROUNDS = 2000
SEED = 20261127

Draw = Callable[..., NDArray[np.float64]]


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return rng.normal(size=shape)


def _skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return rng.gamma(4, size=shape)  # skewness 1


def _strongly_skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return rng.exponential(size=shape)  # skewness 2


def _ties(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return rng.binomial(4, 0.5, size=shape).astype(float)  # five values


# Samples of models: how they are drawn, their mean, and their median.
SAMPLES: dict[str, tuple[Draw, float, float]] = {
    "normal": (_normal, 0.0, 0.0),
    "skewed": (_skewed, 4.0, float(stats.gamma(4).median())),
    "ties": (_ties, 2.0, 2.0),
    "strongly skewed": (_strongly_skewed, 1.0, math.log(2)),
}
BEYOND = ("strongly skewed",)  # no interval of a mean covers these as it says; the table shows how far it falls short
VARIANCES = {"normal": 1.0, "skewed": 4.0, "ties": 1.0, "strongly skewed": 1.0}
VALUES = 5  # of a map whose distance from others is averaged over pairs; the more, the better an interval covers
SHARES = (0.05, 0.5, 0.9)  # probabilities behind shares
RHO = 0.5  # correlation of normal pairs


def kinds() -> Iterator[tuple[str, str, Callable[[np.random.Generator, int], intervals.Interval], float]]:
    """Yield kind of interval and of sample, how one is made of n units, and what it should cover."""
    for name, (draw, mean, median) in SAMPLES.items():

        def one(rng: np.random.Generator, n: int, draw: Draw = draw) -> NDArray[np.float64]:
            return draw(rng, (n,))

        yield "mean", name, lambda rng, n, one=one: intervals.mean(one(rng, n), CONFIDENCE), mean
        yield "median", name, lambda rng, n, one=one: intervals.median(one(rng, n), CONFIDENCE), median
        yield (
            "difference of means",
            name,
            lambda rng, n, one=one: intervals.mean_difference(one(rng, n), one(rng, n) * 3, CONFIDENCE, paired=False),
            -2 * mean,
        )
        yield ("difference of means, paired", name, lambda rng, n, one=one: _paired(rng, n, one), 0.0)
        yield (
            "shift",
            name,
            lambda rng, n, one=one: intervals.shift(one(rng, n) + 1, one(rng, n + 2), CONFIDENCE, paired=False),
            1.0,
        )
        yield (
            "jackknife, mean of pairs",
            name,
            lambda rng, n, draw=draw: _pairs(draw(rng, (n, VALUES))),
            2 * VALUES * VARIANCES[name],
        )
    yield (
        "ratio",
        "skewed",
        lambda rng, n: intervals.ratio(3 * _skewed(rng, (n,)), _skewed(rng, (n,)), CONFIDENCE, paired=False),
        3.0,
    )
    yield (
        "jackknife, quotient of means",
        "skewed",
        lambda rng, n: intervals.jackknife(
            _quotient, 3 * _skewed(rng, (n,)), _skewed(rng, (n,)), confidence=CONFIDENCE, log=True
        ),
        3.0,
    )
    for p in SHARES:
        yield "share", f"{p:g}", lambda rng, n, p=p: intervals.share(rng.random(n) < p, CONFIDENCE), p
    yield (
        "difference of shares",
        "0.9 and 0.5",
        lambda rng, n: intervals.share_difference(rng.random(n) < 0.9, rng.random(n) < 0.5, CONFIDENCE),
        0.4,
    )
    yield "rank correlation", "normal", lambda rng, n: _correlated(rng, n), 6 / math.pi * math.asin(RHO / 2)


def _paired(rng: np.random.Generator, n: int, one: Any) -> intervals.Interval:
    common = rng.normal(size=n)
    return intervals.mean_difference(common + one(rng, n), common + one(rng, n), CONFIDENCE, paired=True)


def _pairs(maps_nxV: NDArray[np.float64]) -> intervals.Interval:
    """Return the mean squared distance over pairs of maps."""
    return intervals.pair_mean(np.square(maps_nxV[:, None] - maps_nxV).sum(-1), CONFIDENCE)


def _quotient(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    return float(first.mean() / second.mean())


def _correlated(rng: np.random.Generator, n: int) -> intervals.Interval:
    x, noise = rng.normal(size=(2, n))
    return intervals.correlation(x, RHO * x + math.sqrt(1 - RHO**2) * noise, CONFIDENCE)


def simulated(rounds: int = ROUNDS, sizes: Sequence[int] = SIZES) -> list[dict[str, Any]]:
    """Return a row for each kind of interval and of sample: by n the share of intervals that cover, or None where
    there is none of so few. A share is the same whichever others are asked for."""
    rows = []
    for place, (kind, sample, make, truth) in enumerate(kinds()):
        row: dict[str, Any] = {"kind": kind, "sample": sample}
        for n in sizes:
            rng = np.random.default_rng([SEED, place, n])
            found = [make(rng, n) for _ in range(rounds)]
            if any(math.isnan(each.lo) and not math.isnan(each.value) for each in found):
                row[str(n)] = None
            else:
                # A sample without any spread of ranks has no correlation, and no interval to be wrong.
                kept = [each for each in found if not math.isnan(each.value)]
                row[str(n)] = sum(each.lo <= truth <= each.hi for each in kept) / len(kept)
        rows.append(row)
    return rows


def bootstrapped(rounds: int = 500) -> list[dict[str, Any]]:
    """Return the same rows of bootstrap intervals of a mean, by 999 resamples each."""
    rows = []
    for method in ("percentile", "BCa"):
        for place, (name, (draw, mean, _)) in enumerate(SAMPLES.items()):
            row: dict[str, Any] = {"kind": f"bootstrap, {method}", "sample": name}
            for n in SIZES:
                rng = np.random.default_rng([SEED, place, n])
                covered = 0
                for _ in range(rounds):
                    sample = draw(rng, (n,))
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # a sample without spread has no interval
                        found = stats.bootstrap(
                            (sample,), np.mean, n_resamples=999, method=method, rng=rng, vectorized=True
                        ).confidence_interval
                    covered += bool(found.low <= mean <= found.high)
                row[str(n)] = covered / rounds
            rows.append(row)
    return rows


def cell(share: float | None) -> str:
    """Return a share as the table gives it, as a percentage."""
    return "–" if share is None else f"{100 * share:.1f}"


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table in Markdown, shares as percentages."""
    head = ["interval", "sample", *(f"n = {n}" for n in SIZES)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * 2 + "---:|" * len(SIZES)]
    for row in rows:
        cells = [cell(row[str(n)]) for n in SIZES]
        lines.append("| " + " | ".join([row["kind"], row["sample"], *cells]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(bootstrapped() if "--bootstrap" in sys.argv else simulated()))
