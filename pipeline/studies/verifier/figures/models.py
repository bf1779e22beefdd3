"""Figure ``models``: what the language models learned."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results

SETS = {"closers_id": "as in training", "closers_ood": "out of distribution"}


def models(context: Results) -> Figure:
    """Accuracy on closing brackets of every model, in and out of distribution."""
    table = context.table("models").filter(weights="average")
    data = table.unpivot(list(SETS), index="replica", variable_name="strings", value_name="accuracy")
    data = data.with_columns(pl.col("strings").replace(SETS))
    chart: alt.Chart = (
        alt.Chart(data)
        .mark_point(filled=True, size=70, opacity=0.8, color=charts.BLUE)
        .encode(
            x=alt.X("accuracy:Q", title="closing brackets that are the likeliest sign", scale=alt.Scale(zero=False)),
            y=alt.Y("strings:N", title=None, sort=list(SETS.values())),
        )
    )
    least = table["closers_id"].min()
    title = alt.TitleParams(
        f"In distribution every model closes at least {number(least * 100, 1)} % of brackets rightly"
        if isinstance(least, float)
        else "Accuracy on closing brackets",
        subtitle=f"{table.height} models, moving average of the weights",
    )
    return chart.properties(title=title, width=460, height=90), data
