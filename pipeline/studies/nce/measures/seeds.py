"""Two methods compared seed by seed, for `pipeline.kit.comparisons.Measurements`."""

from __future__ import annotations

import polars as pl

from pipeline.kit import intervals
from pipeline.kit.comparisons import OWN, SHARE, Comparison, Measurements
from pipeline.languages.exponential_families import Array

LOST = "a seed diverged at each step size of a method"


def paired(first: pl.DataFrame, second: pl.DataFrame, column: str) -> tuple[Array, Array]:
    """Return ``column`` of two methods, on the seeds that both have, in their order."""
    both = first.select("seed", first=column).join(second.select("seed", second=column), on="seed").sort("seed")
    return both["first"].cast(pl.Float64).to_numpy(), both["second"].cast(pl.Float64).to_numpy()


def compare(
    found: Measurements,
    comparison: Comparison,
    tried: pl.DataFrame,
    first: pl.DataFrame,
    second: pl.DataFrame,
    column: str,
    confidence: float,
) -> None:
    """Measure a comparison of ``column`` between two methods, each with a row for each seed at the step size taken.

    ``tried`` has rows at all step sizes: without any, the comparison is not run. A method of which no step size can be
    taken has no rows in its sample. A share is of the differences, a quotient of the
    means.
    """
    if not tried.height:
        found.not_run(comparison)
        return
    one, two = paired(first, second, column)
    lost = 0 if first.height and second.height else tried["seed"].n_unique()
    if comparison.statistic == OWN:
        quotient = intervals.jackknife(_of_means, one, two, confidence=confidence, paired=True, log=True)
        found.put(comparison, quotient, lost, LOST)
    else:
        samples = [one - two] if comparison.statistic == SHARE else [one, two]
        found.add(comparison, *samples, excluded=lost, reason=LOST)


def _of_means(first: Array, second: Array) -> float:
    return float(first.mean() / second.mean())
