"""Figure ``accuracy``."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.selfsup.comparisons import LEARNS
from pipeline.studies.selfsup.figures.common import SHARE
from pipeline.studies.selfsup.names import LABELS


def accuracy(context: Results) -> Figure:
    """The share of next tokens that each model predicts, with the mean of a run and its interval."""
    found = comparisons.read(context, LEARNS.values())
    means = found.select("value", "lo", "hi", "interval", "n", model="first")
    # A variant that has no label yet is drawn under its id.
    models = context.table("accuracy").with_columns(model=pl.col("run").replace(LABELS))
    data = models.join(means, on="model", how="left")
    base = alt.Chart(data).encode(y=alt.Y("model:N", title=None))
    points = base.mark_circle(color=charts.SKY).encode(x=alt.X("accuracy:Q", scale=SHARE))
    intervals = base.mark_rule(color=charts.BLACK).encode(
        x="lo:Q", x2="hi:Q", tooltip=["model", "value", "lo", "hi", "interval", "n"]
    )
    return (intervals + points).properties(title="Accuracy on the next token", width=400), data
