"""Figures 4.4 (middle), 4.14, 4.15 and 4.16: Transformers on sparse parity."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import courses, kinds
from pipeline.studies.distillation.names import ATTENDING, ATTENTION


def transformers(context: Results) -> Figure:
    """Accuracy of the teacher and of students with fewer heads, mean over models with its interval."""
    table = context.table("arms").filter(pl.col("run").is_in([ATTENTION, ATTENDING]))
    title = "Transformers on sparse parity"
    if not table.height:
        return empty(title, "nothing was trained at this scale")
    parts = {"all in turn": ["label", "ce", "os", "prog"], "one checkpoint": ["peak", "between"]}
    panels = [
        courses(table.filter(pl.col("arm").is_in(arms)), name, 0.5, columns=1) for name, arms in parts.items()
    ]
    ends = table.filter(pl.col("step") == pl.col("step").max().over("run"))
    said = "; ".join(f"{row['arm']} {row['value']:.2f}" for row in ends.iter_rows(named=True))
    chart = alt.hconcat(*panels).resolve_scale(color="independent", strokeDash="independent")
    return chart.properties(title=title, description=f"Accuracy at the end: {said}."), table


def attention(context: Results) -> Figure:
    """Each teacher: accuracy; correlation of its answer with single signs, mean of those that matter and of others; and
    how much the last token looks at signs that matter, along paths of two layers (all signs together have 1)."""
    weights = context.table("attention")
    title = "Attention and correlations while the teachers learn"
    if not weights.height:
        return empty(title, "nothing was trained at this scale")
    total = (
        weights.filter("inside")
        .group_by("model", "step", maintain_order=True)
        .agg(value=pl.col("weight").sum())
    ).with_columns(what=pl.lit("weight on signs that matter"))
    single = context.table("correlations").with_columns(
        what=pl.when(pl.col("feature") == "rest")
        .then(pl.lit("correlation, other signs"))
        .otherwise(pl.lit("correlation, signs that matter"))
    )
    single = single.group_by("model", "step", "what", maintain_order=True).agg(
        value=pl.col("correlation").mean()
    )
    data = pl.concat([total, single], how="diagonal").with_columns(
        panel=pl.format("teacher {}", pl.col("model") + 1)
    )
    lines = ["weight on signs that matter", "correlation, signs that matter", "correlation, other signs"]
    chart = (
        alt.Chart(data)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("step:Q", title="steps of training", axis=alt.Axis(tickCount=4, format="~s")),
            y=alt.Y("value:Q", title=None),
            **kinds("what", lines, columns=1),
            column=alt.Column("panel:N", title=None),
        )
        .properties(width=170, height=180, title=title, description="Weight on signs that matter, and correlations.")
    )  # fmt: skip
    return chart, data
