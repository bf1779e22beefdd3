"""Figures 4.4 (left) and 4.10: acceleration of small students, and how width decides when a model learns."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import courses, learnt, with_step
from pipeline.studies.distillation.names import ARMS, NARROW, SWEEP, TEACHER, WIDE


def acceleration(context: Results) -> Figure:
    """Accuracy while the teacher and its students train, mean over models with its interval. The students see no label
    but in one arm; their teacher's curve is drawn beside them."""
    title = "Students of a teacher on sparse parity"
    table = context.table("arms")
    panels = []
    for run in (NARROW, WIDE):
        own = table.filter(pl.col("run").is_in([TEACHER, run]))
        if run not in own["run"]:
            continue
        width = own.filter(run=run)["width"][0]
        panels.append(courses(own, f"students of width {width}", 0.5))
    if not panels:
        return empty(title, "no student was trained at this scale")
    teacher = table.filter(run=TEACHER)["width"]
    best = table.filter(pl.col("run") == NARROW, pl.col("step") == pl.col("step").max())
    accuracies = "; ".join(f"{ARMS[row['arm']]}: {row['value']:.2f}" for row in best.iter_rows(named=True))
    chart = alt.hconcat(*panels).properties(
        title=f"Students of a teacher of width {teacher[0]} on sparse parity",
        description=f"Accuracy over steps. The narrowest students end at: {accuracies}.",
    )
    return chart, table.filter(pl.col("run").is_in([TEACHER, NARROW, WIDE]))


def widths(context: Results) -> Figure:
    """The step at which models of several widths have an accuracy of 0.9, trained on labels alone; a point for each
    model, a hollow triangle where it has not learned until its last step."""
    title = "When a model of a given width learns"
    data = with_step(context.table("models").filter(pl.col("run").is_in([*SWEEP, TEACHER])))
    if not data.height:
        return empty(title, "nothing was trained at this scale")
    ticks = alt.Axis(format="~s", values=sorted(data["width"].unique()))
    x = alt.X("width:Q", title="hidden units", scale=alt.Scale(type="log"), axis=ticks)
    chart = (
        alt.Chart(data)
        .mark_point(size=70, strokeWidth=2)
        .encode(
            **learnt(x, alt.Axis(format="~s")),
            tooltip=["width:Q", "model:Q", "t90:Q", alt.Tooltip("final:Q", format=".3f")],
        )
    )
    low, high = data.select(low=pl.col("shown").min(), high=pl.col("shown").max()).row(0)
    description = f"Steps to an accuracy of 0.9, {low} to {high}."
    return chart.properties(width=420, height=240, title=title, description=description), data
