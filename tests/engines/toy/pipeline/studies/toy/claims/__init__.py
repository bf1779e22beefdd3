"""Claims of the toy study."""

from __future__ import annotations

import polars as pl

from pipeline.kit import conditions, verdicts
from pipeline.kit.results import Results


def judge(results: Results) -> pl.DataFrame:
    """One claim with one gate: the mean is near one half."""
    mean = results.table("means")["mean"].mean()
    gate = verdicts.Gate(
        claim="1",
        gate="mean",
        measure="the mean of all values",
        source="none",
        conditions=conditions.within(0.5, results.settings.tolerance),
        measured=verdicts.Measured(mean, n=results.theory().height),
        scale_needed="smoke",
    )
    return verdicts.table(
        [gate], {"1": "The mean is near one half."}, results.study, results.scale, results.params_hash
    )
