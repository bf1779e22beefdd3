"""Sizes of the constructions beside the bounds that are claimed, and the sharpness that attention needs."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results

SIZES = ["depth", "dimension", "number of heads", "dimension of heads", "width of MLPs", "norm"]
LEAST = 1e-6  # below it a ratio says no more than that a bound is loose


def ledger(context: Results) -> Figure:
    """Measured sizes of every construction, over the bound that its statement claims; to the right of 1 the bound is
    exceeded. Ratios below a millionth are drawn there."""
    rows = context.theory().filter(pl.col("check").str.starts_with("ledger."))
    data = rows.select(
        "check",
        "measured",
        "bound",
        pl.col("x").alias("ratio"),
        pl.max_horizontal("x", pl.lit(LEAST)).alias("drawn"),
        pl.col("group").alias("construction"),
        pl.col("size").alias("instance"),
        pl.col("detail").alias("size"),
    )
    colour = alt.Color("size:N", title=None, sort=SIZES, legend=alt.Legend(orient="top", columns=3))
    x = alt.X(
        "drawn:Q",
        title="measured size over claimed bound",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(tickCount=5, format="~g"),
    )
    points = (
        alt.Chart(data)
        .mark_point(filled=True, size=45, opacity=0.75)
        .encode(
            x=x,
            y=alt.Y("construction:N", title=None, axis=alt.Axis(labelLimit=230)),
            yOffset=alt.YOffset("size:N", sort=SIZES),
            color=colour,
            tooltip=["instance:N", "size:N", "measured:Q", "bound:Q", "ratio:Q"],
        )
    )
    rule = alt.Chart(pl.DataFrame({"one": [1.0]})).mark_rule(color=charts.INK, strokeDash=[4, 3]).encode(x="one:Q")
    over = data.filter(pl.col("ratio") > 1 + 1e-9)
    which = ", ".join(sorted({*(over["construction"] + ", " + over["size"])}))
    words = f"{data.height} sizes, {over.height} above their bound: {which}"
    chart = alt.layer(rule, points).properties(
        width=400, height=360, title="Sizes of the constructions", description=f"{words}."
    )
    return chart, data


def temperature(context: Results) -> Figure:
    """Share of wrong tokens of Theorem 10's network against the sharpness of its attention, γ over the
    squared length."""
    rows = context.theory().filter(group="sharpness")
    data = rows.select(pl.col("x").alias("sharpness"), pl.col("measured").alias("wrong")).sort("sharpness")
    chart = (
        alt.Chart(data)
        .mark_line(color=charts.BLUE, point=alt.OverlayMarkDef(size=40))
        .encode(
            x=alt.X(
                "sharpness:Q",
                title="γ / T²",
                scale=alt.Scale(type="log", nice=False, padding=10),
                axis=alt.Axis(values=data["sharpness"].to_list(), format="~g"),
            ),
            y=alt.Y("wrong:Q", title="share of wrong tokens", scale=alt.Scale(domain=[0, 1])),
            tooltip=["sharpness:Q", "wrong:Q"],
        )
    )
    words = ", ".join(f"{row['wrong']:.2f} at {row['sharpness']:g}" for row in data.iter_rows(named=True))
    return chart.properties(
        width=400, height=200, title="Sharpness of attention", description=f"Wrong tokens: {words}."
    ), data
