"""Figures 4.5, 4.11, 4.12 and 4.17: what a teacher's checkpoints correlate with, and what they teach."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import DEGREES, courses, kinds, lesson, percent
from pipeline.studies.distillation.names import (
    ALONE_STRINGS,
    ARMS,
    CANDIDATES,
    CHECKED,
    SOLO,
    TEACHER,
    WARM_CANDIDATES,
    WARM_CHECKED,
    WARMER,
)

STEPS = "steps of the teacher's training"
CHECKPOINTS = {"before": "1", "middle": "2", "behind": "3"}  # arms, and how their checkpoints are marked
NUMBER = pl.format("teacher {}", pl.col("model") + 1)
TEMPERATURES = ["middle", "cool", "mild", "hot"]


def curriculum(context: Results) -> Figure:
    """The first teacher: its accuracy, how far its answer correlates with each sign, how far monomials of each degree
    separate from others (SEP), and by rules the checkpoints that students learned from."""
    return _of_teacher(context, TEACHER, CANDIDATES, "What a teacher's answer correlates with while it learns")


def warm_curriculum(context: Results) -> Figure:
    """The first teacher at the higher rate: its accuracy, how far its answer correlates with each sign, how far
    monomials of each degree separate from others (SEP), and by rules the checkpoints that students learned from."""
    return _of_teacher(
        context, WARMER, WARM_CANDIDATES, "What the answer of a teacher at a higher rate correlates with"
    )


def _of_teacher(context: Results, run: str, dataset: str, title: str) -> Figure:
    single = context.table("correlations").filter(run=run, model=0)
    if not single.height:
        return empty(title, "no teacher was trained at this scale")
    summary = context.table("separation").filter(run=run, model=0)
    own = context.table("courses").filter(run=run, model=0)
    chosen = context.table("chosen").filter(
        pl.col("arm").is_in([*CHECKPOINTS]), dataset=dataset, teacher=0, order=0, model=0
    )
    chosen = chosen.with_columns(mark=pl.col("arm").replace_strict(CHECKPOINTS))
    x = alt.X("step:Q", title=None, axis=alt.Axis(tickCount=6, format="~s"))
    accuracy = (
        alt.Chart(own).mark_line(color=charts.BLACK).encode(x=x, y=alt.Y("accuracy:Q", **percent("accuracy", 0.5)))
    )
    places = single.with_columns(
        kind=pl.when(pl.col("feature") == "rest").then(pl.lit("other signs")).otherwise(pl.lit("signs that matter"))
    ).sort("kind", descending=False)
    names = ["signs that matter", "other signs"]
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=names, range=[charts.BLUE, charts.GREY]),
        legend=alt.Legend(orient="top", symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1),
    )
    lines = (
        alt.Chart(places)
        .mark_line(strokeWidth=1.5, opacity=0.7)
        .encode(x=x, y=alt.Y("correlation:Q", title="correlation"), color=colour, detail="place:N")
    )
    degrees = summary.with_columns(
        label=pl.col("degree").cast(pl.Int64).replace_strict(DEGREES, return_dtype=pl.String)
    )
    labels = list(DEGREES.values())
    separated = (
        alt.Chart(degrees)
        .mark_line(strokeWidth=2)
        .encode(x=x.title(STEPS), y=alt.Y("separation:Q", title="SEP"), **kinds("label", labels, "product of"))
    )
    panels = []
    for layer, under in ((accuracy, None), (lines, None), (separated, STEPS)):
        # Layers share an axis, and one without a title takes it from the others: marks have that of their panel.
        marks = alt.Chart(chosen).encode(x=alt.X("teacher_step:Q", title=under))
        parts = [layer, marks.mark_rule(color=charts.GREY, strokeDash=[4, 3])]
        if layer is accuracy:  # the numbers of the checkpoints stand above the top panel
            numbers = marks.mark_text(dy=-6, baseline="bottom", fontSize=13)
            parts.append(numbers.encode(text="mark:N", y=alt.value(0)))
        panels.append(alt.layer(*parts, width=520, height=130))
    best = summary.sort("separation", descending=True).row(0, named=True)
    chart = (
        alt.vconcat(*panels)
        .resolve_scale(color="independent", strokeDash="independent")
        .properties(
            title=title,
            description="Largest SEP {separation:.1f}, of products of {degree}, at step {step}.".format(**best),
        )
    )
    return chart, summary


def checkpoints(context: Results) -> Figure:
    """Accuracy of students that learn from one checkpoint first, and from the last one then; mean over models with its
    interval."""
    return _courses(context, CHECKED, [*CHECKPOINTS], "Which checkpoint teaches")


def warm_checkpoints(context: Results) -> Figure:
    """Accuracy of students that learn from one checkpoint of a teacher at the higher rate first, and from the last one
    then; mean over models with its interval."""
    title = "Which checkpoint of a teacher at a higher rate teaches"
    return _courses(context, WARM_CHECKED, [*CHECKPOINTS], title)


def temperatures(context: Results) -> Figure:
    """Accuracy of students that learn from the checkpoint in the transition first, and from the last one then, at
    several temperatures of the teacher; mean over models with its interval."""
    return _courses(context, CHECKED, TEMPERATURES, "The teacher's temperature")


def parity_lesson(context: Results) -> Figure:
    """Each teacher's accuracy; by the accuracy of its checkpoints, how far products of one, two and three signs that
    matter separate from others (SEP), and how students end that learn from one checkpoint alone. Dotted: as well as
    their teacher."""
    title = "What a checkpoint knows, and what it teaches: parity"
    summary = context.table("separation").filter(run=TEACHER)
    ends = context.table("models").filter(run=SOLO)
    chosen = context.table("chosen").filter(dataset=ALONE_STRINGS, order=0)
    if not summary.height or not ends.height:
        return empty(title, "nothing was trained at this scale")
    course = context.table("courses").filter(run=TEACHER).with_columns(teacher=NUMBER)
    known = summary.join(course, on=["model", "step"]).with_columns(
        label=pl.col("degree").cast(pl.Int64).replace_strict(DEGREES, return_dtype=pl.String), value="separation"
    )
    labels = [DEGREES[degree] for degree in sorted(known["degree"].unique())]
    students = (
        ends.select("arm", "model", "final")
        .join(chosen.select("arm", "model", "teacher_step", "accuracy", "teacher"), on=["arm", "model"])
        .drop_nulls("accuracy")
        .with_columns(teacher=pl.format("teacher {}", pl.col("teacher") + 1), label=pl.lit("of this checkpoint alone"))
        .sort("teacher", "teacher_step")
    )
    shown = known.select("teacher", "step", "accuracy", "label", "value")
    course = course.select("teacher", "step", "accuracy")
    return lesson(course, shown, students, labels, "SEP", title), students


def _courses(context: Results, runs: tuple[str, ...], arms: list[str], title: str) -> Figure:
    table = context.table("arms").filter(pl.col("run").is_in(runs), pl.col("arm").is_in(arms))
    if not table.height:
        return empty(title, "no student was trained at this scale")
    panels = []
    for run in runs:
        own = table.filter(run=run)
        panels.append(courses(own, f"students of width {own['width'][0]}", 0.5, columns=1))
    ends = table.filter(pl.col("step") == pl.col("step").max().over("run"))
    accuracies = "; ".join(
        f"{row['value']:.2f} (width {row['width']}, {ARMS[row['arm']]})" for row in ends.iter_rows(named=True)
    )
    return alt.hconcat(*panels).properties(title=title, description=f"Accuracy at the end: {accuracies}."), table
