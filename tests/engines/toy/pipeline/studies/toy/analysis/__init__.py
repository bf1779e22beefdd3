"""Analysis of the toy study."""

from __future__ import annotations

from typing import Any

import polars as pl
from pipeline.studies.toy.analysis import metrics


def analyse(context: Any) -> dict[str, pl.DataFrame]:
    """Means of the weights and last losses, by run."""
    entry = context.entry
    means = [
        {"run": run, "replica": replica, "mean": float(value) + entry.analysis.offset}
        for run in entry.runs
        for replica, value in enumerate(metrics.mean(context.model(run)))
    ]
    losses = [{"run": run, "loss": context.curves(run)["loss"].mean()} for run in entry.runs]
    return {
        "means": pl.DataFrame(means, schema_overrides={"replica": pl.Int32}),
        "losses": pl.DataFrame(losses),
    }
