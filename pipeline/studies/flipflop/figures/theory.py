"""The machines of flip-flop language, and the curves of Propositions 4 and 5 and of n-grams."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results

SIDE = 260
TITLES = {"flip-flop": "Flip-flop: remembers one bit", "recogniser": "Recogniser of flip-flop strings"}
SETS = {"val": "FFL(0.8)", "sparse": "FFL(0.98)", "dense": "FFL(0.1)"}
COLOURS = [charts.BLUE, charts.VERMILLION, charts.GREEN]


def machines(context: Results) -> Figure:
    """State diagrams of the flip-flop and of the machine with four states that reads its language: an arrow is a move
    to another state with the symbols that make it; symbols that keep the state stand beside it (Figure 3.23a, b)."""
    moves = context.table("machines")
    data = pl.DataFrame([row for name in TITLES for row in _arrows(moves.filter(machine=name), name)])
    nodes = pl.DataFrame([row for name in TITLES for row in _nodes(moves.filter(machine=name), name)])
    panels = [_panel(data.filter(machine=name), nodes.filter(machine=name), name) for name in TITLES]
    arrows = "; ".join(
        f"{row['machine']}: from {row['state_shown']} to {row['goal_shown']} by {row['symbols']}"
        for row in data.iter_rows(named=True)
    )
    title = alt.TitleParams("Two machines", subtitle="Beside a state: symbols that keep it")
    chart = alt.hconcat(*panels, spacing=30).properties(title=title, description=f"State diagrams. {arrows}.")
    return chart, data


def _place(state: int, count: int) -> tuple[float, float]:
    if count == 2:
        return (-0.8, 0.8)[state], 0.0
    return (-0.8, 0.8)[state // 2], (-0.8, 0.8)[state % 2]


def _arrows(moves: pl.DataFrame, machine: str) -> Iterator[dict[str, Any]]:
    """Yield one row for each pair of states with a move between them, a little beside the line that joins them."""
    count = moves["state"].n_unique()
    names = dict(moves.select("state", "state_shown").unique().iter_rows())
    apart = moves.filter(pl.col("state") != pl.col("next_state"))
    for (state, goal), rows in apart.group_by("state", "next_state", maintain_order=True):
        (x, y), (x2, y2) = _place(int(str(state)), count), _place(int(str(goal)), count)
        long = math.hypot(x2 - x, y2 - y)
        dx, dy = (x2 - x) / long, (y2 - y) / long
        nx, ny, near = -dy * 0.07, dx * 0.07, 0.2
        yield {
            "machine": machine,
            "state_shown": names[state],
            "goal_shown": names[goal],
            "symbols": ", ".join(rows["symbol_shown"].to_list()),
            "x": x + near * dx + nx,
            "y": y + near * dy + ny,
            "x2": x2 - near * dx + nx,
            "y2": y2 - near * dy + ny,
            "turn": math.degrees(math.atan2(dx, dy)),
            "lx": x + (x2 - x) * 0.36 + 3.4 * nx,
            "ly": y + (y2 - y) * 0.36 + 3.2 * ny,
        }


def _nodes(moves: pl.DataFrame, machine: str) -> Iterator[dict[str, Any]]:
    count = moves["state"].n_unique()
    for (state, name), rows in moves.group_by("state", "state_shown", maintain_order=True):
        x, y = _place(int(str(state)), count)
        kept = rows.filter(pl.col("next_state") == pl.col("state"))["symbol_shown"].to_list()
        sign = 1 if y >= 0 else -1
        yield {"machine": machine, "x": x, "y": y, "name": name, "kept": ", ".join(kept), "ky": y + 0.36 * sign}


def _panel(edges: pl.DataFrame, nodes: pl.DataFrame, machine: str) -> Any:
    scale = alt.Scale(domain=[-1.45, 1.45], nice=False)

    def at(x: str, y: str) -> dict[str, Any]:
        return {"x": alt.X(f"{x}:Q", axis=None, scale=scale), "y": alt.Y(f"{y}:Q", axis=None, scale=scale)}

    base, dots = alt.Chart(edges), alt.Chart(nodes)
    drawn = [
        base.mark_rule(strokeWidth=1.3, color=charts.BLUE).encode(**at("x", "y"), x2="x2:Q", y2="y2:Q"),
        base.mark_point(shape="triangle", size=50, filled=True, opacity=1, color=charts.BLUE).encode(
            **at("x2", "y2"), angle=alt.Angle("turn:Q", scale=None)
        ),
        base.mark_text(fontSize=11, color=charts.BLUE).encode(**at("lx", "ly"), text="symbols:N"),
        dots.mark_point(size=1500, filled=True, fill="white", stroke=charts.INK, opacity=1).encode(**at("x", "y")),
        dots.mark_text(fontSize=11, color=charts.INK).encode(**at("x", "y"), text="name:N"),
        dots.mark_text(fontSize=11, color=charts.GREY).encode(**at("x", "ky"), text="kept:N"),
    ]
    title = alt.TitleParams(TITLES[machine], fontSize=13)
    return alt.layer(*drawn).properties(width=SIDE + 30, height=SIDE, title=title)


def dilution(context: Results) -> Figure:
    """Largest weight that one token can have in soft attention, over the length of the sequence, for three norms σ of
    the product of key and query weights; dots are where it is one half, at T = 1 + exp(2σ) (Proposition 4)."""
    data = context.table("dilution").sort("sigma", "length")
    data = data.with_columns(pl.format("σ = {}", pl.col("sigma").cast(pl.Int32)).alias("norm"))
    x = alt.X("length:Q", title="length T", scale=alt.Scale(type="log"), axis=alt.Axis(tickCount=5, format="~s"))
    y = alt.Y("bound:Q", title="largest possible weight", scale=alt.Scale(domain=[0, 1]))
    legend = alt.Legend(orient="top", symbolType="stroke", symbolStrokeWidth=2)
    scale = alt.Scale(domain=data["norm"].unique(maintain_order=True).to_list(), range=COLOURS)
    colour = alt.Color("norm:N", title=None, scale=scale, legend=legend)
    halves = data.group_by("norm", maintain_order=True).agg(pl.col("half").first()).with_columns(bound=0.5)
    dots = (
        alt.Chart(halves)
        .mark_point(filled=True, size=70, opacity=1)
        .encode(x=alt.X("half:Q", title="length T"), y=y, color=colour, tooltip=["norm:N", "half:Q"])
    )
    lines = alt.Chart(data).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour)
    lengths = ", ".join(f"{row['half']:.1f} for {row['norm']}" for row in halves.iter_rows(named=True))
    chart = (lines + dots).properties(
        width=440, height=240, title="Soft attention spreads", description=f"One half at lengths {lengths}."
    )
    return chart, data


def ngrams(context: Results) -> Figure:
    """Least share of wrong reads of a predictor that sees the last n tokens, in three languages of 512 tokens: lines
    are the closed form, dots the predictor itself on strings that were drawn."""
    data = context.table("ngram_law").sort("set", "n")
    data = data.with_columns(pl.col("set").replace_strict(SETS, return_dtype=pl.String).alias("language"))
    x = alt.X(
        "n:Q",
        title="tokens seen, n",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(values=[1, 2, 5, 10, 20, 50, 100, 200]),
    )
    legend = alt.Legend(orient="top", symbolType="stroke", symbolStrokeWidth=2)
    scale = alt.Scale(domain=list(SETS.values()), range=COLOURS)
    colour = alt.Color("language:N", title=None, scale=scale, legend=legend)
    y = alt.Y("error:Q", title="wrong reads (share)", scale=alt.Scale(domain=[0, 0.5]))
    lines = alt.Chart(data).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour)
    dots = (
        alt.Chart(data.drop_nulls("sampled"))
        .mark_point(filled=True, size=55, opacity=1)
        .encode(
            x=x,
            y=alt.Y("sampled:Q", title="wrong reads (share)"),
            color=colour,
            tooltip=["language:N", "n:Q", "error:Q", "sampled:Q"],
        )
    )
    eleven = data.filter(n=11).select("language", "error").iter_rows()
    errors = ", ".join(f"{error:.4f} in {name}" for name, error in eleven)
    chart = (lines + dots).properties(
        width=440, height=240, title="What n tokens can tell", description=f"At n = 11: {errors}."
    )
    return chart, data


def probe_scores(context: Results) -> Figure:
    """Scores of the first write and of the query itself, less that of the last write, along a probe whose last write is
    its 34th symbol, for position terms a above, at and below 0: attention leaves the last write where a line is above 0
    (Proposition 5)."""
    data = context.table("probe_scores").filter(pl.col("key") != "last write").sort("a", "key", "position")
    x = alt.X("position:Q", title="position of the query")
    y = alt.Y("score:Q", title="score less that of the last write")
    scale = alt.Scale(domain=["itself", "first write"], range=[charts.VERMILLION, charts.BLUE])
    legend = alt.Legend(orient="top", symbolType="stroke", symbolStrokeWidth=2)
    lines = (
        alt.Chart()
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, color=alt.Color("key:N", title=None, scale=scale, legend=legend))
    )
    rule = alt.Chart().mark_rule(color=charts.GREY, strokeDash=[4, 3]).encode(y=alt.datum(0))
    panels = alt.layer(lines, rule, data=data).properties(width=170, height=200)
    chart = panels.facet(column=alt.Column("model:N", title=None, sort=["a > 0", "a = 0", "a < 0"]))
    above = data.filter(pl.col("score") > 0).group_by("model", "key", maintain_order=True).agg(pl.col("position").min())
    crossings = "; ".join(
        f"{row['model']}: the {row['key'].replace('itself', 'query itself')} leads from {row['position']} on"
        for row in above.iter_rows(named=True)
    )
    return chart.properties(
        title="Hard attention drifts", description=f"Scores along the probe. {crossings or 'Nothing leads'}."
    ), data
