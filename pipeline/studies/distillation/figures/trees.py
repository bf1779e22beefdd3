"""Figures 4.18 to 4.22: hierarchical parity."""

from __future__ import annotations

from itertools import combinations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import DEGREES, by_arms, kinds
from pipeline.studies.distillation.names import TREE_STUDENTS, TREE_TEACHER

CHANCE = 1 / 8
DEPTH = 3  # parities on the way to a class
DRAWN = ("low", "mid", "high")  # candidates; the table has all and their pairs
NODES = {"T1": "root", "T2": "its child", "T4": "above the leaf"}


def trees(context: Results) -> Figure:
    """Accuracy on hierarchical parity: the teacher and students of labels, of the last checkpoint, of all in turn; and
    students of one or two checkpoints before the last. Mean over models with its interval."""
    table = context.table("arms").filter(pl.col("run").is_in([TREE_TEACHER, TREE_STUDENTS]))
    parts = {
        "all in turn": ["label", "ce", "os", "prog"],
        "one checkpoint": list(DRAWN),
        "two checkpoints": [first + second for first, second in combinations(DRAWN, 2)],
    }
    return by_arms(table, "Hierarchical parity", parts, CHANCE, width=170)


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


def branches(context: Results) -> Figure:
    """How far monomials of the signs of each parity on the way to class 0 separate from others (SEP), by degree, for
    one teacher."""
    table = context.table("separation").filter(model=0)
    title = "Parities on the way to one class while the teacher learns"
    if not table.height:
        return empty(title, "nothing was trained at this scale")
    data = table.with_columns(
        label=pl.col("feature").replace_strict(NODES, return_dtype=pl.String),
        panel=pl.col("degree").cast(pl.Int64).replace_strict(DEGREES, return_dtype=pl.String),
    )
    labels = list(NODES.values())
    chart = (
        alt.Chart(data)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("step:Q", title="steps of the teacher", axis=alt.Axis(tickCount=4, format="~s")),
            y=alt.Y("separation:Q", title="SEP"),
            **kinds("label", labels, "parity"),
            column=alt.Column("panel:N", title="products of", sort=list(DEGREES.values())),
        )
        .properties(width=170, height=180, title=title, description="Separation of monomials by parity and degree.")
    )
    return chart, data
