"""Attention of gridworld models (Figures 3.6 and 3.17)."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.attention_maps import BLUES, WEIGHTS
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.automata.figures.common import points

PANEL = 132  # pixels
STATES = 9


def attention(context: Results) -> Figure:
    """Attention of the first and last layer of the most accurate gridworld model on two inputs: weights below the
    diagonal; above it stripes at positions in state 0 (orange) and in state 8 (green)."""
    maps = context.table("attn_maps")
    if not maps.height:
        return empty("Attention on Grid 9", "nothing was trained")
    layers = sorted({1, int(maps["layer"].max())})  # type: ignore[arg-type]
    data = maps.filter(pl.col("layer").is_in(layers)).sort("sequence", "layer", "head", "query", "key")
    T = int(data["query"].max()) + 1  # type: ignore[arg-type]
    panels = [
        _map(rows, T, f"input {number + 1}, layer {layer}, head {head}")
        for (number, layer, head), rows in data.group_by("sequence", "layer", "head", maintain_order=True)
    ]
    chart = alt.concat(*panels, columns=4, spacing=12).resolve_scale(color="shared")
    metrics = context.table("attn_metrics").filter("trained", "last_layer")
    words = (
        "In last layers the largest weight on a boundary is "
        f"{metrics.select(pl.max_horizontal('blind_lift_0', 'blind_lift_S').max()).item() or math.nan:.2f} "
        "times that of the same head blind to states"
    )
    title = alt.TitleParams("Attention on Grid 9", subtitle="Orange: state 0; green: state 8; rows are queries")
    return chart.properties(title=title, description=f"Maps of attention. {words}."), data


def _map(rows: pl.DataFrame, T: int, title: str) -> Any:
    size = PANEL / T
    x = alt.X("key:O", axis=None, scale=alt.Scale(domain=list(range(T)), padding=0))
    y = alt.Y("query:O", axis=None, scale=alt.Scale(domain=list(range(T)), padding=0))
    legend = alt.Legend(orient="bottom", gradientLength=200, values=charts.UNIT)
    cells = (
        alt.Chart(rows.select("query", "key", "weight"))
        .mark_rect()
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "weight:Q", title="attention weight", scale=alt.Scale(domain=WEIGHTS, range=BLUES), legend=legend
            ),
            tooltip=["query:O", "key:O", alt.Tooltip("weight:Q", format=".3f")],
        )
    )
    states = rows.select("key", "state").unique().filter(pl.col("state").is_in([0, STATES - 1])).sort("key")
    stripes = pl.DataFrame(
        [{"key": k, "query": q, "state": s} for k, s in states.iter_rows() for q in range(k)],
        schema={"key": pl.Int16, "query": pl.Int16, "state": pl.Int8},
    )
    shade = alt.condition("datum.state == 0", alt.value("#F3C77B"), alt.value("#8CCDB9"))
    above = alt.Chart(stripes).mark_rect().encode(x=x, y=y, color=shade)
    named = alt.TitleParams(title, fontSize=12, offset=2)
    return alt.layer(above, cells).properties(width=size * T, height=size * T, title=named)


def heads(context: Results) -> Figure:
    """Every head of every gridworld model: weight on positions in state 0 and in state 8, each over the weight of the
    same head blind to states (its mean by place and symbol); grey: a head that looks at symbols and places alone, as
    all in the first layer do. Hollow: of models that did not learn the task."""
    data = context.table("attn_metrics").filter("trained")
    if not data.height:
        return empty("Heads of gridworld models", "nothing was trained")
    most = float(data.select(pl.max_horizontal("blind_lift_0", "blind_lift_S").max()).item())
    scale = alt.Scale(domain=[0, max(2.0, 1.1 * most)])
    base = alt.Chart(data).encode(
        x=alt.X("blind_lift_0:Q", title="weight on state 0, over blind", scale=scale),
        y=alt.Y("blind_lift_S:Q", title="weight on state 8, over blind", scale=scale),
        color=alt.Color("layer:N", title="layer", scale=alt.Scale(range=charts.PALETTE)),
        shape=alt.Shape("layer:N", title="layer"),
    )
    shown = ["layer:O", "head:O", "replica:O"]
    numbers = ("blind_lift_0", "blind_lift_S", "uniformity", "pre_reset_mass", "pre_reset_blind", "accuracy")
    each = points(base, tooltip=[*shown, *(alt.Tooltip(f"{name}:Q", format=".3f") for name in numbers)])
    levels = pl.DataFrame({"level": [1.0]})
    rules = [
        alt.Chart(levels).mark_rule(color=charts.GREY, strokeDash=[4, 3]).encode(**{axis: "level:Q"})
        for axis in ("x", "y")
    ]
    even = data.sort("uniformity").row(-1, named=True)
    words = f"largest uniformity {even['uniformity']:.2f}, in layer {even['layer']}"
    chart = alt.layer(*rules, *each).properties(
        width=300, height=300, title="Heads of gridworld models", description=f"{words}."
    )
    return chart, data
