"""Attention of gridworld models (Figures 3.6 and 3.17)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.attention_maps import BLUES, WEIGHTS
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.automata.figures.common import UNTRAINED

PANEL = 132  # pixels
STATES = 9
CLEAR = 1.5  # times the weight of a blind head


@plots.drawn("Attention on Grid 9")
def attention(context: Results) -> Figure:
    """Attention of the first and last layer of the most accurate gridworld model on two inputs: weights below the
    diagonal; above it stripes at positions in state 0 (orange) and in state 8 (green)."""
    maps = plots.some(context.table("attn_maps"), UNTRAINED)
    layers = sorted({1, int(maps["layer"].max())})  # type: ignore[arg-type]
    data = maps.filter(pl.col("layer").is_in(layers)).sort("sequence", "layer", "head", "query", "key")
    T = int(data["query"].max()) + 1  # type: ignore[arg-type]
    panels = [
        _map(rows, T, f"input {number + 1}, layer {layer}, head {head}")
        for (number, layer, head), rows in data.group_by("sequence", "layer", "head", maintain_order=True)
    ]
    metrics = context.table("attn_metrics").filter("trained", "last_layer")
    lift = plots.most(metrics.select(most=pl.max_horizontal("blind_lift_0", "blind_lift_S"))["most"])
    return plots.figure(
        plots.grid(panels, 4, spacing=12),
        data,
        f"Heads of last layers put up to {lift:.1f} times the weight of a blind head on a boundary of the grid",
        "One model, the most accurate. Rows are queries, columns keys. Orange columns above the diagonal: positions in "
        "state 0; green: in state 8",
    )


def _map(rows: pl.DataFrame, T: int, title: str) -> Any:
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
    return plots.panel([above, cells], title, PANEL, PANEL)


@plots.drawn("Heads of gridworld models")
def heads(context: Results) -> Figure:
    """Every head of every gridworld model: weight on positions in state 0 and in state 8, each over the weight of the
    same head blind to states (its mean by place and symbol); dotted: a head that looks at symbols and places alone, as
    all in the first layer do. Hollow: of models that did not learn the task."""
    data = plots.some(context.table("attn_metrics").filter("trained"), UNTRAINED)
    data = data.with_columns(name=pl.format("{}", "layer"))
    lifts = ("blind_lift_0", "blind_lift_S")
    most = max(2.0, 1.1 * max(plots.most(data[lift]) for lift in lifts))
    x, y = (
        Axis(lift, f"weight on state {s}, over blind", domain=[0, most]) for lift, s in zip(lifts, (0, 8), strict=True)
    )
    by = plots.kinds(sorted(set(data["name"])), "name", dashes=False, shapes=True, title="layer", columns=8)
    tips = ["head", "replica", "uniformity", "pre_reset_mass", "pre_reset_blind", "accuracy"]
    layers = [
        *plots.rule(x, 1, upright=True),
        *plots.rule(y, 1),
        *plots.points(data, x, y, by, hollow="learned", tips=tips, size=45),
    ]
    above = data.filter(pl.max_horizontal(*lifts) > CLEAR)
    even = data.sort("uniformity").row(-1, named=True)
    return plots.figure(
        layers,
        data.drop("name"),
        f"{above.height} of {data.height} heads look at a boundary more than {CLEAR} times as much as a blind one",
        f"A point is one head of {plots.count([data['replica'].n_unique()], 'model')}; hollow: of a model that did not "
        "learn the task. Dotted: as a head that looks at symbols and places alone",
        told=f"Largest uniformity {even['uniformity']:.2f}, in layer {even['layer']}.",
        width=300,
        height=300,
    )
