"""Position codes at the training length and beyond (Figure 3.22)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.automata.figures.common import ACCURACY, points
from pipeline.studies.automata.names import shown

NAMES = {"sin": "sinusoidal", "linear": "linear"}


def positions(context: Results) -> Figure:
    """Accuracy with sinusoidal and with linear positions at the training length and at twice that: bars of means, a
    point for each model, hollow where it did not learn its task."""
    table = context.table("positions")
    if not table.height:
        return empty("Position codes", "nothing was trained")
    data = table.with_columns(
        pl.col("position").replace_strict(NAMES).alias("code"),
        pl.col("task").map_elements(shown, return_dtype=pl.String).alias("name"),
        pl.when(pl.col("length") == pl.col("trained"))
        .then(pl.lit("training length"))
        .otherwise(pl.lit("twice that"))
        .alias("at"),
    )
    colour = alt.Color(
        "code:N",
        title=None,
        scale=alt.Scale(domain=list(NAMES.values()), range=[charts.SKY, charts.ORANGE]),
        legend=alt.Legend(orient="top"),
    )
    panels = []
    for (name,), rows in data.group_by("name", maintain_order=True):
        base = alt.Chart(rows).encode(
            x=alt.X("at:N", title=None, axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("code:N", sort=list(NAMES.values())),
        )
        y = alt.Y("mean(accuracy):Q", title=ACCURACY, scale=alt.Scale(domain=[0, 1]))
        bars = base.mark_bar().encode(y=y, color=colour)
        tooltip = ["code:N", "at:N", "replica:Q", alt.Tooltip("accuracy:Q", format=".3f")]
        each = points(base.encode(color=alt.value(charts.INK)), y=alt.Y("accuracy:Q", title=ACCURACY), tooltip=tooltip)
        panels.append(
            alt.layer(bars, *each).properties(width=230, height=180, title=alt.TitleParams(str(name), fontSize=13))
        )
    means = data.group_by("name", "code", "at", maintain_order=True).agg(pl.mean("accuracy"))
    words = "; ".join(
        f"{row['name']}, {row['code']}, {row['at']}: {row['accuracy']:.2f}" for row in means.iter_rows(named=True)
    )
    chart = alt.hconcat(*panels, spacing=30).resolve_scale(color="shared")
    return chart.properties(title="Position codes", description=f"Mean accuracy. {words}."), data
