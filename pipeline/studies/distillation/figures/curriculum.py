"""Figures 4.5, 4.11, 4.12 and 4.17: what a teacher's checkpoints correlate with, and what they teach."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import DEGREES, accuracy, courses, ending, last, lesson, means_of
from pipeline.studies.distillation.names import (
    ALONE_STRINGS,
    CANDIDATES,
    CHECKED,
    SOLO,
    TEACHER,
    WARM_CANDIDATES,
    WARM_CHECKED,
    WARMER,
)

STEPS = plots.steps(title="steps of the teacher's training", count=6)
CHECKPOINTS = {"before": "1", "middle": "2", "behind": "3"}  # arms, and how their checkpoints are marked
NUMBER = pl.format("teacher {}", pl.col("model") + 1)
TEMPERATURES = ["middle", "cool", "mild", "hot"]


@plots.drawn("What a teacher's answer correlates with while it learns")
def curriculum(context: Results) -> Figure:
    """The first teacher: its accuracy, how far its answer correlates with signs that matter and with others, how far
    monomials of each degree separate from others (SEP), and by rules the checkpoints that students learned from."""
    return _of_teacher(context, TEACHER, CANDIDATES)


@plots.drawn("What the answer of a teacher at a higher rate correlates with")
def warm_curriculum(context: Results) -> Figure:
    """The first teacher at the higher rate: its accuracy, how far its answer correlates with signs that matter and with
    others, how far monomials of each degree separate from others (SEP), and by rules the checkpoints that students
    learned from."""
    return _of_teacher(context, WARMER, WARM_CANDIDATES)


def _of_teacher(context: Results, run: str, dataset: str) -> Figure:
    single = plots.some(context.table("correlations").filter(run=run, model=0), "no teacher was trained at this scale")
    summary = context.table("separation").filter(run=run, model=0)
    own = context.table("courses").filter(run=run, model=0)
    chosen = context.table("chosen").filter(
        pl.col("arm").is_in([*CHECKPOINTS]), dataset=dataset, teacher=0, order=0, model=0
    )
    rest = pl.col("feature") == "rest"
    signs = single.with_columns(kind=pl.when(rest).then(pl.lit("other signs")).otherwise(pl.lit("signs that matter")))
    value = pl.col("correlation")
    groups = signs.group_by("kind", "step", maintain_order=True).agg(
        value.mean(), value.min().alias("least"), value.max().alias("most"), pl.len().alias("n")
    )
    degrees = summary.with_columns(
        label=pl.col("degree").cast(pl.Int64).replace_strict(DEGREES, return_dtype=pl.String)
    )
    two = plots.kinds({"signs that matter": charts.BLUE, "other signs": charts.GREY}, "kind")
    three = plots.kinds(DEGREES.values(), title="product of")
    untitled, right = STEPS.but(title=None), accuracy("accuracy", 0.5)
    correlation, separation = Axis("correlation", "correlation", count=4), Axis("separation", "SEP", count=4)
    parts = [
        (untitled, plots.lines(own, untitled, right, charts.BLACK)),
        (untitled, plots.lines(groups, untitled, correlation, two, band=("least", "most"))),
        (STEPS, plots.lines(degrees, STEPS, separation, three)),
    ]
    panels = []
    for n, (x, layers) in enumerate(parts):
        for arm, step in chosen.select("arm", "teacher_step").iter_rows():
            layers = [*layers, *plots.rule(x, step, CHECKPOINTS[arm] if n == 0 else None, upright=True)]
        panels.append(plots.panel(layers, None, 520, 120))
    best = summary.sort("separation", descending=True, maintain_order=True).row(0, named=True)
    at = own.filter(pl.col("step") <= best["step"]).sort("step")["accuracy"]
    title = (
        f"Products of {DEGREES[best['degree']]} stand out most (SEP {best['separation']:.1f}) at step {best['step']}"
    )
    return plots.figure(
        plots.grid(panels, 1, shared=False),
        summary,
        title + (f", where the teacher's accuracy is {at[-1]:.2f}" if len(at) else ""),
        "One teacher. Middle: means over signs, bands from the least to the largest of them. Dotted, with their "
        "numbers: the checkpoints that students learned from; dashes of other lines are in the legends",
        told=f"Largest SEP by degree: {plots.tell(_largest(degrees), '{label}: {separation:.1f} at step {step}')}.",
    )


def _largest(degrees: pl.DataFrame) -> pl.DataFrame:
    return degrees.sort("separation", descending=True).unique("label", keep="first", maintain_order=True)


@plots.drawn("Which checkpoint teaches")
def checkpoints(context: Results) -> Figure:
    """Accuracy of students that learn from one checkpoint first, and from the last one then; mean over models with its
    interval."""
    return _courses(context, CHECKED, [*CHECKPOINTS])


@plots.drawn("Which checkpoint of a teacher at a higher rate teaches")
def warm_checkpoints(context: Results) -> Figure:
    """Accuracy of students that learn from one checkpoint of a teacher at the higher rate first, and from the last one
    then; mean over models with its interval."""
    return _courses(context, WARM_CHECKED, [*CHECKPOINTS], "At a higher rate of the teacher ")


@plots.drawn("The teacher's temperature")
def temperatures(context: Results) -> Figure:
    """Accuracy of students that learn from the checkpoint in the transition first, and from the last one then, at
    several temperatures of the teacher; mean over models with its interval."""
    return _courses(context, CHECKED, TEMPERATURES)


@plots.drawn("What a checkpoint knows, and what it teaches: parity")
def parity_lesson(context: Results) -> Figure:
    """Each teacher's accuracy; by the accuracy of its checkpoints, how far products of one, two and three signs that
    matter separate from others (SEP), and how students end that learn from one checkpoint alone. Dotted: as well as
    their teacher."""
    title = "What a checkpoint knows, and what it teaches: parity"
    summary = plots.some(context.table("separation").filter(run=TEACHER))
    ends = plots.some(context.table("models").filter(run=SOLO))
    chosen = context.table("chosen").filter(dataset=ALONE_STRINGS, order=0)
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


def _courses(context: Results, runs: tuple[str, ...], arms: list[str], where: str = "") -> Figure:
    table = context.table("arms").filter(pl.col("run").is_in(runs), pl.col("arm").is_in(arms))
    plots.some(table, "no student was trained at this scale")
    widths = {run: table.filter(run=run)["width"][0] for run in runs if run in table["run"]}
    panels = [
        courses(table.filter(run=run), f"students of width {width}", 0.5, columns=1) for run, width in widths.items()
    ]
    ends = last(table)
    first, width = next(iter(widths.items()))
    if arms == TEMPERATURES:
        values = ends.filter(run=first)["value"].sort()
        title = f"By the teacher's temperature, students of width {width} end at {values[0]:.2f} to {values[-1]:.2f}"
    else:
        found = [ending(table, arm, first) for arm in CHECKPOINTS]
        told = f"students of width {width} end at {found[1]} from a checkpoint in the transition"
        title = f"{where}{told}, at {found[0]} from one before it, at {found[2]} from one behind it"
    return plots.figure(
        plots.grid(panels),
        table,
        title[0].upper() + title[1:],
        means_of(table),
        told=f"Accuracy at the end: {plots.tell(ends, '{value:.2f} (width {width}, {label})')}.",
    )
