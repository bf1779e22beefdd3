"""Dropout against none."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.automata.figures.common import ACCURACY, shown


def stabilisers(context: Results) -> Figure:
    """Accuracy of models that train with dropout and without: a point for each model, a line through the means."""
    table = context.table("stabilisers")
    if not table.height:
        return empty("Dropout", "nothing was trained")
    data = table.with_columns(pl.col("task").map_elements(shown, return_dtype=pl.String).alias("name"))
    colour = alt.Color(
        "name:N", title=None, scale=alt.Scale(range=charts.PALETTE), legend=alt.Legend(orient="top")
    )
    base = alt.Chart(data).encode(
        x=alt.X("dropout:Q", title="dropout", axis=alt.Axis(tickCount=4)), color=colour
    )
    y = alt.Y("accuracy:Q", title=ACCURACY, scale=alt.Scale(domain=[0, 1]))
    points = base.mark_point(filled=True, size=45).encode(y=y, tooltip=["name:N", "dropout:Q", "accuracy:Q"])
    means = base.mark_line().encode(y=alt.Y("mean(accuracy):Q", title=ACCURACY))
    found = data.group_by("name", "dropout").agg(pl.mean("accuracy")).sort("name", "dropout")
    words = "; ".join(
        f"{row['name']}, {row['dropout']:g}: {row['accuracy']:.2f}" for row in found.iter_rows(named=True)
    )
    chart = alt.layer(means, points).properties(width=400, height=200)
    return chart.properties(title="Dropout", description=f"Mean accuracy by dropout. {words}."), data
