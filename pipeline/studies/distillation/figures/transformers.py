"""Figures 4.4 (middle), 4.14, 4.15 and 4.16: Transformers on sparse parity."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import by_arms, kinds
from pipeline.studies.distillation.names import ATTENDING, ATTENTION


def transformers(context: Results) -> Figure:
    """Accuracy of the teacher and of students with fewer heads, mean over models with its interval."""
    table = context.table("arms").filter(pl.col("run").is_in([ATTENTION, ATTENDING]))
    parts = {"all in turn": ["label", "ce", "os", "prog"], "one checkpoint": ["peak", "between"]}
    return by_arms(table, "Transformers on sparse parity", parts, 0.5, width=270)


def attention(context: Results) -> Figure:
    """Each teacher: how much the last token looks at signs that matter, along paths of two layers (all signs together
    have 1); and below, how far its answer correlates with single signs, mean of those that matter and of others."""
    weights = context.table("attention")
    title = "Attention and correlations while the teachers learn"
    if not weights.height:
        return empty(title, "nothing was trained at this scale")
    total = weights.filter("inside").group_by("model", "step", maintain_order=True).agg(value=pl.col("weight").sum())
    single = context.table("correlations").with_columns(
        what=pl.when(pl.col("feature") == "rest").then(pl.lit("other signs")).otherwise(pl.lit("signs that matter"))
    )
    single = single.group_by("model", "step", "what", maintain_order=True).agg(value=pl.col("correlation").mean())
    data = pl.concat([total.with_columns(what=pl.lit("weight")), single], how="diagonal").with_columns(
        panel=pl.format("teacher {}", pl.col("model") + 1)
    )
    steps = alt.X("step:Q", title="steps of training", axis=alt.Axis(tickCount=4, format="~s"))
    column = alt.Column("panel:N", title=None)
    looks = alt.Chart(data.filter(what="weight")).mark_line(strokeWidth=2, color=charts.BLUE)
    looks = looks.encode(x=steps, y=alt.Y("value:Q", title="weight on signs that matter"), column=column)
    lines = ["signs that matter", "other signs"]
    knows = alt.Chart(data.filter(pl.col("what") != "weight")).mark_line(strokeWidth=2)
    knows = knows.encode(x=steps, y=alt.Y("value:Q", title="mean correlation"), column=column, **kinds("what", lines))
    top = looks.properties(width=140, height=130)
    chart = alt.vconcat(top, knows.properties(width=140, height=130)).resolve_scale(color="independent")
    ends = total.filter(pl.col("step") == pl.col("step").max())["value"].sort().to_list()
    description = f"Weight on signs that matter at the end: {ends[0]:.2f} to {ends[-1]:.2f}."
    return chart.properties(title=title, description=description), data
