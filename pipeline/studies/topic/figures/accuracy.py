"""Figure ``accuracy``."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.topic.figures.common import SHARE
from pipeline.studies.topic.names import LABELS


def accuracy(context: Results) -> Figure:
    """The share of next tokens that each model predicts: mean over replicas with its interval."""
    known = context.table("accuracy").filter(pl.col("run").is_in(list(LABELS)))
    data = known.with_columns(model=pl.col("run").replace_strict(LABELS, return_dtype=pl.String))
    base = alt.Chart(data).encode(y=alt.Y("model:N", title=None))
    bars = base.mark_bar(color=charts.SKY).encode(x=alt.X("value:Q", title="accuracy", scale=SHARE))
    intervals = base.mark_rule(color=charts.BLACK).encode(x="lo:Q", x2="hi:Q")
    return (bars + intervals).properties(title="Accuracy on the next token", width=400), data
