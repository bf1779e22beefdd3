"""Figures 4.4 (middle), 4.14, 4.15 and 4.16: Transformers on sparse parity."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import kinds, one_by_one, percent
from pipeline.studies.distillation.names import ARMS, ATTENDING, ATTENTION


def transformers(context: Results) -> Figure:
    """Accuracy of the teachers and of students with fewer heads: every model, as each learns at a step of its own."""
    title = "Transformers on sparse parity"
    data = context.table("courses").filter(pl.col("run").is_in([ATTENTION, ATTENDING]))
    if not data.height:
        return empty(title, "nothing was trained at this scale")
    parts = {"all in turn": ["label", "ce", "os", "prog"], "one checkpoint": ["label", "peak", "between"]}
    panels = [one_by_one(data.filter(pl.col("arm").is_in(arms)), name, 0.5, width=270) for name, arms in parts.items()]
    ends = data.filter(pl.col("step") == pl.col("step").max().over("run")).group_by("arm", maintain_order=True)
    learned = ends.agg(share=(pl.col("accuracy") >= 0.9).sum(), n=pl.len())
    counts = "; ".join(f"{ARMS[arm]}: {share} of {n}" for arm, share, n in learned.iter_rows() if arm in ARMS)
    chart = alt.hconcat(*panels).resolve_scale(color="independent", strokeDash="independent")
    return chart.properties(title=title, description=f"Models that end at 0.9 or above. {counts}."), data


def attention(context: Results) -> Figure:
    """Each teacher: its accuracy; how much the last token looks at signs that matter, along paths of two layers (all
    signs together have 1; dashed: before training); and how far its answer correlates with single signs, mean of those
    that matter and of others."""
    weights = context.table("attention")
    title = "Attention and correlations while the teachers learn"
    if not weights.height:
        return empty(title, "nothing was trained at this scale")
    total = weights.filter("inside").group_by("model", "step", maintain_order=True).agg(value=pl.col("weight").sum())
    single = context.table("correlations").with_columns(
        what=pl.when(pl.col("feature") == "rest").then(pl.lit("other signs")).otherwise(pl.lit("signs that matter"))
    )
    single = single.group_by("model", "step", "what", maintain_order=True).agg(value=pl.col("correlation").mean())
    course = context.table("courses").filter(run=ATTENTION).select("model", "step", value="accuracy")
    parts_of = [total.with_columns(what=pl.lit("weight")), single, course.with_columns(what=pl.lit("accuracy"))]
    data = pl.concat(parts_of, how="diagonal").with_columns(panel=pl.format("teacher {}", pl.col("model") + 1))
    steps = alt.X("step:Q", title="steps of training", axis=alt.Axis(tickCount=4, format="~s"))
    column = alt.Column("panel:N", title=None)
    start = pl.col("value").sort_by("step").first().over("model")
    looks = alt.Chart(data.filter(what="weight").with_columns(start=start))
    share = alt.Y("value:Q", title=["weight on signs", "that matter"], scale=alt.Scale(domain=[0, 1]))
    before = looks.mark_rule(color=charts.GREY, strokeDash=[4, 3]).encode(y="mean(start):Q")
    line = looks.mark_line(strokeWidth=2, color=charts.BLUE).encode(x=steps, y=share)
    weight = alt.layer(before, line).properties(width=140, height=110).facet(column=column)
    lines = ["signs that matter", "other signs"]
    knows = alt.Chart(data.filter(pl.col("what").is_in(lines))).mark_line(strokeWidth=2)
    knows = knows.encode(x=steps, y=alt.Y("value:Q", title="mean correlation"), column=column, **kinds("what", lines))
    learns = alt.Chart(data.filter(what="accuracy")).mark_line(strokeWidth=2, color=charts.BLACK)
    learns = learns.encode(x=steps, y=alt.Y("value:Q", **percent("accuracy", 0.5)), column=column)
    learns, knows = (part.properties(width=140, height=110) for part in (learns, knows))
    chart = alt.vconcat(learns, weight, knows).resolve_scale(color="independent", strokeDash="independent")
    ends = total.filter(pl.col("step") == pl.col("step").max())["value"].sort().to_list()
    description = f"Weight on signs that matter at the end: {ends[0]:.2f} to {ends[-1]:.2f}."
    return chart.properties(title=title, description=description), data
