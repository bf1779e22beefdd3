"""The machines of flip-flop language, and the curves of Propositions 4 and 5 and of n-grams."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results

SIDE = 260
TITLES = {"flip-flop": "Flip-flop: remembers one bit", "recogniser": "Recogniser of flip-flop strings"}
SETS = {"val": "FFL(0.8)", "sparse": "FFL(0.98)", "dense": "FFL(0.1)"}


def machines(context: Results) -> Figure:
    """State diagrams of the flip-flop and of the machine with four states that reads its language: an arrow is a move
    to another state with the symbols that make it; symbols that keep the state stand beside it (Figure 3.23a, b)."""
    moves = context.table("machines")
    data = pl.DataFrame([row for name in TITLES for row in _arrows(moves.filter(machine=name), name)])
    nodes = pl.DataFrame([row for name in TITLES for row in _nodes(moves.filter(machine=name), name)])
    panels = [_panel(data.filter(machine=name), nodes.filter(machine=name), name) for name in TITLES]
    return plots.figure(
        plots.grid(panels),
        data,
        "A flip-flop has two states; reading its strings takes four",
        "Beside a state: symbols that keep it",
        told=f"State diagrams. {plots.tell(data, '{machine}: from {state_shown} to {goal_shown} by {symbols}')}.",
    )


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
    return plots.panel(drawn, TITLES[machine], SIDE + 30, SIDE)


def dilution(context: Results) -> Figure:
    """Largest weight that one token can have in soft attention, over the length of the sequence, for three norms σ of
    the product of key and query weights; dots are where it is one half, at T = 1 + exp(2σ) (Proposition 4)."""
    data = context.table("dilution").sort("sigma", "length")
    data = data.with_columns(pl.format("σ = {}", pl.col("sigma").cast(pl.Int32)).alias("norm"))
    by = plots.kinds(data["norm"].unique(maintain_order=True), "norm")
    x = plots.log("length", "length T (log scale)", data["length"]).but(form="~s")
    y = plots.share("bound", "largest possible weight")
    halves = data.group_by("norm", maintain_order=True).agg(pl.col("half").first()).with_columns(bound=0.5)
    lengths = plots.tell(halves, "{half:.1f} for {norm}", ", ")
    return plots.figure(
        [*plots.lines(data, x, y, by), *plots.points(halves, x.but(field="half"), y, by.along(), size=70)],
        data,
        f"Soft attention can put half its weight on a token up to lengths of {lengths}",
        "Dots: one half, at T = 1 + exp(2σ); dashes tell norms apart",
        told=f"One half at lengths {lengths}.",
        width=440,
    )


def ngrams(context: Results) -> Figure:
    """Least share of wrong reads of a predictor that sees the last n tokens, in three languages of 512 tokens: lines
    are the closed form, dots the predictor itself on strings that were drawn."""
    data = context.table("ngram_law").sort("set", "n")
    data = data.with_columns(pl.col("set").replace_strict(SETS, return_dtype=pl.String).alias("language"))
    x = Axis("n", "tokens seen, n (log scale)", log=True, values=[1, 2, 5, 10, 20, 50, 100, 200])
    y, by = Axis("error", "wrong reads (share)", domain=[0, 0.5]), plots.kinds(SETS.values(), "language")
    eleven = data.filter(n=11)
    errors = plots.tell(eleven, "{error:.4f} in {language}", ", ")
    short = plots.tell(eleven, "{error:.2g} of reads in {language}", ", ")
    return plots.figure(
        [
            *plots.lines(data, x, y, by),
            *plots.points(data.drop_nulls("sampled"), x, y.but(field="sampled"), by.along()),
        ],
        data,
        f"Whoever sees eleven tokens errs at least on {short}",
        "Lines: closed form; dots: the predictor on strings that were drawn; dashes tell languages apart",
        told=f"At n = 11: {errors}.",
        width=440,
    )


def probe_scores(context: Results) -> Figure:
    """Scores of the first write and of the query itself, less that of the last write, along a probe whose last write is
    its 34th symbol, for position terms a above, at and below 0: attention leaves the last write where a line is above 0
    (Proposition 5)."""
    data = context.table("probe_scores").filter(pl.col("key") != "last write").sort("a", "key", "position")
    ends = [min(0.0, plots.least(data["score"])), max(0.0, plots.most(data["score"]))]
    x = Axis("position", "position of the query", zero=False)
    y = Axis("score", "score less that of the last write", domain=ends)
    by = plots.kinds({"itself": charts.VERMILLION, "first write": charts.BLUE}, "key")
    panels = [
        plots.panel([*plots.rule(y, 0), *plots.lines(data.filter(model=name), x, y, by)], name, 170)
        for name in ("a > 0", "a = 0", "a < 0")
    ]
    above = data.filter(pl.col("score") > 0).with_columns(pl.col("key").replace("itself", "query itself"))
    first = above.group_by("model", "key", maintain_order=True).agg(pl.col("position").min())
    crossings = plots.tell(first, "with {model} the {key} leads from {position} on", ", ")
    return plots.figure(
        plots.grid(panels, 3),
        data,
        f"Hard attention drifts off the last write: {crossings or 'nothing leads'}",
        "One head with weights written down; above the dotted line attention leaves the last write",
        told=f"Scores along the probe. {crossings or 'Nothing leads'}.",
    )
