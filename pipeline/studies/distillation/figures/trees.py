"""Figures 4.18 to 4.22: hierarchical parity."""

from __future__ import annotations

from itertools import combinations

import altair as alt
import polars as pl

from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import DEGREES, by_arms, kinds
from pipeline.studies.distillation.names import TREE_STUDENTS, TREE_TEACHER

CHANCE = 1 / 8
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
