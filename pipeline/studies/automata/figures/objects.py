"""The automata, drawn from their tables; cascades; Algorithm 1 on one input."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results

SIDE, RADIUS = 180, 1.0
MANY = 16  # states above which neither names nor arrows are drawn


def diagrams(context: Results) -> Figure:
    """State diagrams of all automata: states on a circle, one colour for each input symbol, a filled initial state; a
    ring is a symbol that keeps its state."""
    moves = context.table("transitions").sort("automaton", "state", "symbol")
    automata = {row["automaton"]: row for row in context.table("automata").iter_rows(named=True)}
    data = pl.DataFrame([row for name, row in automata.items() for row in _edges(moves.filter(automaton=name), row)])
    nodes = pl.DataFrame([row for name, row in automata.items() for row in _nodes(moves.filter(automaton=name), row)])
    panels = [_panel(data.filter(automaton=name), nodes.filter(automaton=name), row) for name, row in automata.items()]
    chart = alt.concat(*panels, columns=3, spacing=18).resolve_scale(color="shared")
    words = "; ".join(
        f"{row['shown']}: {row['n_states']} states, {row['n_symbols']} symbols" for row in automata.values()
    )
    title = alt.TitleParams("The automata", subtitle="Colour: input symbol, in the order of the alphabet")
    return chart.properties(title=title, description=f"State diagrams. {words}."), data


def _place(state: int, count: int, radius: float = RADIUS) -> tuple[float, float]:
    angle = math.pi / 2 - 2 * math.pi * state / count
    return radius * math.cos(angle), radius * math.sin(angle)


def _edges(moves: pl.DataFrame, automaton: dict[str, Any]) -> Iterator[dict[str, Any]]:
    count = automaton["n_states"]
    for row in moves.iter_rows(named=True):
        (x, y), (x2, y2) = _place(row["state"], count), _place(row["next_state"], count)
        loop = row["state"] == row["next_state"]
        turn = math.degrees(math.atan2(x2 - x, y2 - y))
        yield {
            "automaton": row["automaton"],
            "symbol": row["symbol"] + 1,
            "shown": row["symbol_shown"],
            "loop": loop,
            "x": x,
            "y": y,
            "x2": x2,
            "y2": y2,
            "ax": 0.35 * x + 0.65 * x2,
            "ay": 0.35 * y + 0.65 * y2,
            "turn": turn,
        }


def _nodes(moves: pl.DataFrame, automaton: dict[str, Any]) -> Iterator[dict[str, Any]]:
    names = dict(moves.select("state", "state_shown").unique().iter_rows())
    for state in range(automaton["n_states"]):
        (x, y), (lx, ly) = _place(state, automaton["n_states"]), _place(state, automaton["n_states"], 1.25)
        yield {
            "automaton": automaton["automaton"],
            "x": x,
            "y": y,
            "lx": lx,
            "ly": ly,
            "name": names.get(state, ""),
            "start": state == automaton["q0"],
        }


def _panel(edges: pl.DataFrame, nodes: pl.DataFrame, automaton: dict[str, Any]) -> Any:
    few = automaton["n_states"] <= MANY
    scale = alt.Scale(domain=[-1.5, 1.5], nice=False)
    symbols = alt.Color(
        "symbol:O",
        title="symbol",
        scale=alt.Scale(domain=list(range(1, 9)), range=charts.PALETTE),
        legend=alt.Legend(orient="top", symbolType="stroke"),
    )
    base = alt.Chart(edges)
    at = {"x": alt.X("x:Q", axis=None, scale=scale), "y": alt.Y("y:Q", axis=None, scale=scale)}
    width = 1.3 if few else 0.35
    drawn = [
        base.transform_filter("!datum.loop")
        .mark_rule(strokeWidth=width, opacity=0.75, aria=False)
        .encode(**at, x2="x2:Q", y2="y2:Q", color=symbols),
        base.transform_filter("datum.loop")
        .mark_point(size=110 if few else 14, filled=False, opacity=0.9, strokeWidth=width, aria=False)
        .encode(**at, color=symbols),
    ]
    if few:
        arrows = base.transform_filter("!datum.loop").mark_point(shape="triangle", size=26, filled=True, opacity=1)
        drawn.append(
            arrows.encode(
                x=alt.X("ax:Q", axis=None, scale=scale),
                y=alt.Y("ay:Q", axis=None, scale=scale),
                angle=alt.Angle("turn:Q", scale=None),
                color=symbols,
            )
        )
        names = alt.Chart(nodes).mark_text(fontSize=10, color=charts.INK)
        drawn.append(
            names.encode(
                x=alt.X("lx:Q", axis=None, scale=scale), y=alt.Y("ly:Q", axis=None, scale=scale), text="name:N"
            )
        )
    dots = alt.Chart(nodes).mark_point(
        aria=False, filled=True, size=36 if few else 8, opacity=1, stroke=charts.INK, strokeWidth=0.8
    )
    fill = alt.condition("datum.start", alt.value(charts.INK), alt.value("#FFFFFF"))
    drawn.append(dots.encode(**at, fill=fill))
    size = f"{automaton['n_states']} states, {automaton['n_symbols']} symbols"
    title = alt.TitleParams(
        automaton["shown"], subtitle=size, fontSize=13, subtitleFontSize=11, offset=2, subtitlePadding=2
    )
    return alt.layer(*drawn).properties(width=SIDE, height=SIDE, title=title)


def cascades(context: Results) -> Figure:
    """Cascades of permutation-reset components: each level reads the input symbol and the states of the levels left of
    it; its states, and the order of the group that its bijections generate."""
    table = context.table("cascades")
    known = dict(context.table("automata").select("automaton", "shown").iter_rows())
    data = table.with_columns(
        pl.col("automaton").replace_strict(known, return_dtype=pl.String).alias("name"),
        pl.format("{} states", "states").alias("first"),
        pl.format("group {}, resets {}", "group_order", "resets").alias("second"),
        pl.when(pl.col("group_order") == 1).then(pl.lit("trivial group")).otherwise(pl.lit("group")).alias("kind"),
    )
    order = data["name"].unique(maintain_order=True).to_list()
    base = alt.Chart(data).encode(
        x=alt.X("level:O", title="level", axis=alt.Axis(labelAngle=0, orient="top")),
        y=alt.Y("name:N", title=None, sort=order),
    )
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=["trivial group", "group"], range=["#D6EAF8", "#FBE3C0"]),
        legend=alt.Legend(orient="bottom", symbolType="square"),
    )
    boxes = base.mark_rect(stroke="white", strokeWidth=4).encode(color=colour)
    first = base.mark_text(dy=-7, fontSize=11).encode(text="first:N")
    second = base.mark_text(dy=7, fontSize=9).encode(text="second:N")
    width = 78 * int(data["level"].max() or 1)  # type: ignore[arg-type]
    chart = alt.layer(boxes, first, second).properties(
        width=width,
        height=46 * len(order),
        title="Cascades of permutation-reset components",
        description="; ".join(
            f"{row['name']}, level {row['level']}: {row['first']}, {row['second']}"
            for row in data.iter_rows(named=True)
        )
        + ".",
    )
    return chart, data


def grid_algorithm(context: Results) -> Figure:
    """Algorithm 1 on a random input of the gridworld with four states: prefix sums of the moves behind their
    padding, the states, and the positions that the algorithm finds; from the last of them on, both curves move
    alike."""
    data = context.table("grid_trace").sort("position")
    x = alt.X("position:Q", title="position")
    names = {"prefix_sum": "prefix sum z", "state": "state q"}
    folded = data.unpivot(list(names), index=["position", "mark"], variable_name="what", value_name="value").drop_nulls(
        "value"
    )
    folded = folded.with_columns(pl.col("what").replace_strict(names, return_dtype=pl.String))
    colour = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(domain=list(names.values()), range=[charts.BLUE, charts.VERMILLION]),
        legend=alt.Legend(orient="top"),
    )
    lines = (
        alt.Chart(folded)
        .mark_line(interpolate="linear", strokeWidth=2, point=alt.OverlayMarkDef(size=18))
        .encode(x=x, y=alt.Y("value:Q", title="sum of moves, state"), color=colour)
    )
    marks = data.filter(pl.col("mark") != "")
    rules = alt.Chart(marks).mark_rule(color=charts.GREY, strokeDash=[4, 3]).encode(x=x)
    words = alt.Chart(marks).mark_text(align="left", dx=4, color=charts.INK).encode(x=x, y=alt.value(8), text="mark:N")
    positions = ", ".join(f"{row['mark']} at position {row['position']}" for row in marks.iter_rows(named=True))
    chart = alt.layer(rules, lines, words).properties(
        width=560, height=220, title="Algorithm 1 on the gridworld", description=f"Prefix sums and states; {positions}."
    )
    return chart, data
