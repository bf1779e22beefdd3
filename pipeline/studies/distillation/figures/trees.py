"""Figures 4.18 to 4.22: hierarchical parity."""

from __future__ import annotations

from itertools import combinations

import altair as alt
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import DEGREES, courses, ending, last, means_of
from pipeline.studies.distillation.names import TREE_STUDENTS, TREE_TEACHER

CHANCE = 1 / 8
DEPTH = 3  # parities on the way to a class
DRAWN = ("low", "mid", "high")  # candidates; the table has all and their pairs
NODES = {"T1": "root", "T2": "its child", "T4": "above the leaf"}


@plots.drawn("Hierarchical parity")
def trees(context: Results) -> Figure:
    """Accuracy on hierarchical parity: the teacher and students of labels, of the last checkpoint, of all in turn; and
    students of one or two checkpoints before the last. Mean over models with its interval."""
    table = plots.some(context.table("arms").filter(pl.col("run").is_in([TREE_TEACHER, TREE_STUDENTS])))
    parts = {
        "all in turn": ["label", "ce", "os", "prog"],
        "one checkpoint": list(DRAWN),
        "two checkpoints": [first + second for first, second in combinations(DRAWN, 2)],
    }
    panels = [
        courses(table.filter(pl.col("arm").is_in(arms)), name, CHANCE, 170, 1, "bottom")
        for name, arms in parts.items()
        if table["arm"].is_in(arms).any()
    ]
    ends = last(table)
    best = ends.filter(pl.col("run") != TREE_TEACHER).sort("value", descending=True, maintain_order=True)
    top = f"“{best['label'][0]}” ends at {charts.number(best['value'][0])}, " if best.height else ""
    return plots.figure(
        plots.grid(panels, 3, shared=False),
        table,
        f"Hierarchical parity: {top}one-shot at {ending(table, 'os')}, progressive at {ending(table, 'prog')}",
        means_of(table),
        told=f"Accuracy at the end: {plots.tell(ends, '{label}: {value:.2f}')}.",
    )


def decision_tree(context: Results) -> Figure:
    """How a string finds its class (Figure 4.19): at each node its parity decides, to the left if its product is -1, to
    the right if it is +1; nodes are numbered row by row, and each has signs of its own."""
    rows = []
    for node in range(1, 2 ** (DEPTH + 1)):
        level = node.bit_length() - 1
        leaf = level == DEPTH
        rows.append(
            {
                "node": node,
                "x": (node - 2**level + 0.5) / 2**level,
                "level": DEPTH - level,
                "name": f"class {node - 2**DEPTH}" if leaf else f"parity {node}",
                "leaf": leaf,
                "side": "+1" if node % 2 else "-1",
            }
        )
    data = pl.DataFrame(rows)
    above = data.select(parent="node", x2="x", level2="level")
    edges = data.with_columns(parent=pl.col("node") // 2).join(above, on="parent", maintain_order="left")
    edges = edges.with_columns(xm=(pl.col("x") + pl.col("x2")) / 2, ym=(pl.col("level") + pl.col("level2")) / 2)
    at = {
        "x": alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, 1])),
        "y": alt.Y("level:Q", axis=None, scale=alt.Scale(domain=[-0.3, DEPTH + 0.3])),
    }
    lines = alt.Chart(edges).mark_rule(color=charts.GREY).encode(**at, x2="x2:Q", y2="level2:Q")
    signs = (
        alt.Chart(edges)
        .mark_text(color=charts.INK, dx=12, fontSize=12)
        .encode(x=alt.X("xm:Q", axis=None), y=alt.Y("ym:Q", axis=None), text="side:N")
    )
    inner, leaves = data.filter(~pl.col("leaf")), data.filter("leaf")
    dots = alt.Chart(inner).mark_point(size=260, filled=True, opacity=1, color=charts.BLUE).encode(**at)
    ends = (
        alt.Chart(leaves).mark_point(size=160, filled=True, opacity=1, color=charts.ORANGE, shape="square").encode(**at)
    )
    names = alt.Chart(inner).mark_text(dx=-14, dy=-8, align="right").encode(**at, text="name:N")
    classes = alt.Chart(leaves).mark_text(dy=20).encode(**at, text="name:N")
    chart = alt.layer(lines, signs, dots, ends, names, classes).properties(
        width=620,
        height=260,
        title="How a string finds its class",
        description="A binary tree: parities at the nodes, classes at the leaves; -1 goes left, +1 goes right.",
    )
    return chart, data


@plots.drawn("Parities on the way to one class while the teacher learns")
def branches(context: Results) -> Figure:
    """How far monomials of the signs of each parity on the way to class 0 separate from others (SEP), by degree, for
    one teacher."""
    data = plots.some(context.table("separation").filter(model=0)).with_columns(
        label=pl.col("feature").replace_strict(NODES, return_dtype=pl.String),
        panel=pl.col("degree").cast(pl.Int64).replace_strict(DEGREES, return_dtype=pl.String),
    )
    by, x = plots.kinds(NODES.values(), title="parity"), plots.steps(title="steps of the teacher")
    most = plots.most(data["separation"])
    y = Axis("separation", "SEP", domain=[0, most])
    panels = [
        plots.panel(plots.lines(data.filter(panel=name), x, y, by), f"products of {name}", 170, 180)
        for name in DEGREES.values()
        if name in data["panel"]
    ]
    top = data.sort("separation", descending=True, maintain_order=True)
    best = top.unique("label", keep="first", maintain_order=True)
    first = best.row(0, named=True)
    return plots.figure(
        plots.grid(panels, 3),
        data,
        f"Of the parities “{first['label']}” stands out most: products of {first['panel']}, at step {first['step']}",
        "SEP of monomials, one teacher",
        told=f"Largest: {plots.tell(best, '{label}: {separation:.1f}, products of {panel}, step {step}')}.",
    )
