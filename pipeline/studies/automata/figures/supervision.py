"""States seen through a map, and hidden labels (Figures 3.7, 3.18, 3.19)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.automata.figures.common import ACCURACY, LOOKS, looks, named, shown, summary


def indirect(context: Results) -> Figure:
    """Accuracy where states are seen through a map: best model of each arm; ticks: the best answer that does not
    read the input, one for each position (long) and one for all (short); diamonds: published maximum."""
    table = context.table("indirect")
    if not table.height:
        return empty("Indirect supervision", "nothing was trained")
    data = named(table).with_columns((pl.col("published") / 100).alias("printed"))
    order = data["panel"].unique(maintain_order=True).to_list()
    there = [label for label in LOOKS if label in data["label"].to_list()]
    colour = alt.Color(
        "label:N",
        title=None,
        scale=alt.Scale(domain=there, range=[LOOKS[x][0] for x in there]),
        legend=alt.Legend(orient="top"),
    )
    y = alt.Y("panel:N", title=None, sort=order)
    base = alt.Chart(data).encode(y=y)
    unit = alt.Scale(domain=[0, 1])
    points = base.mark_point(filled=True, size=70).encode(
        x=alt.X("acc_max:Q", title=ACCURACY, scale=unit),
        color=colour,
        yOffset="label:N",
        tooltip=[
            "panel:N",
            "label:N",
            alt.Tooltip("acc_max:Q", format=".3f"),
            alt.Tooltip("acc_median:Q", format=".3f"),
            "n:Q",
        ],
    )
    levels = alt.Chart(data.filter(arm="gpt")).encode(y=y)
    ticks = [
        levels.mark_tick(thickness=2, color=charts.GREY, size=size).encode(x=f"{name}:Q")
        for name, size in (("constant", 26), ("majority", 13))
    ]
    printed = levels.mark_point(shape="diamond", color=charts.INK, size=60).encode(x="printed:Q")
    words = "; ".join(
        f"{row['panel']}, {row['label']}: {row['acc_max']:.3f}" for row in data.iter_rows(named=True)
    )
    chart = alt.layer(*ticks, printed, points).properties(width=420, height=34 * len(order))
    return chart.properties(title="Indirect supervision", description=f"Best models. {words}."), data


def incomplete(context: Results) -> Figure:
    """Accuracy by the probability with which a label is shown in training: means over models, bands from the least
    to the most accurate."""
    table = context.table("incomplete")
    if not table.height:
        return empty("Incomplete supervision", "nothing was trained")
    data = summary(table, "revealed")
    colour, dash = looks(data["label"].unique().to_list())
    panels = []
    for (task,), rows in data.group_by("task", maintain_order=True):
        base = alt.Chart(rows).encode(
            x=alt.X("revealed:Q", title="probability of a label", scale=alt.Scale(type="log"))
        )
        y = alt.Y("accuracy:Q", title=ACCURACY, scale=alt.Scale(domain=[0, 1]))
        band = base.mark_area(opacity=0.2).encode(
            y=alt.Y("least:Q", title=ACCURACY), y2="most:Q", color=colour
        )
        line = base.mark_line(point=True).encode(y=y, color=colour, strokeDash=dash)
        panels.append(alt.layer(band, line).properties(width=250, height=180, title=shown(str(task))))
    words = "; ".join(
        f"{row['panel']}, {row['label']}, {row['revealed']:g}: {row['accuracy']:.3f}"
        for row in data.iter_rows(named=True)
    )
    chart = alt.hconcat(*panels, spacing=30).resolve_scale(color="shared", strokeDash="shared")
    return chart.properties(title="Incomplete supervision", description=f"Mean accuracy. {words}."), data
