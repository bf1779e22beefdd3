"""Means of the weights, by run."""

from __future__ import annotations

import polars as pl
from pipeline.studies.toy.measures import metrics

from pipeline.kit.inputs import Inputs


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return the table of means."""
    means = [
        {"run": run, "replica": replica, "mean": float(value) + context.settings.offset}
        for run in context.runs()
        for replica, value in enumerate(metrics.mean(context.model(run)))
    ]
    return {"means": pl.DataFrame(means, schema_overrides={"replica": pl.Int32})}
