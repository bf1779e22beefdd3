"""Figures 4.4 (left) and 4.10: acceleration of small students, and how width decides when a model learns."""

from __future__ import annotations

import polars as pl

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import courses, ending, last, learning, means_of, with_step
from pipeline.studies.distillation.names import NARROW, SWEEP, TEACHER, WIDE


@plots.drawn("Students of a teacher on sparse parity")
def acceleration(context: Results) -> Figure:
    """Accuracy while the teacher and its students train, mean over models with its interval. The students see no label
    but in one arm; their teacher's curve is drawn beside them."""
    table = context.table("arms").filter(pl.col("run").is_in([TEACHER, NARROW, WIDE]))
    widths = {run: table.filter(run=run)["width"][0] for run in (TEACHER, NARROW, WIDE) if run in table["run"]}
    students = plots.some(table.filter(pl.col("run") != TEACHER), "no student was trained at this scale")
    first = students["run"][0]
    panels = [
        courses(table.filter(pl.col("run").is_in([TEACHER, run])), f"students of width {widths[run]}", 0.5)
        for run in (NARROW, WIDE)
        if run in widths
    ]
    title = f"Students of width {widths[first]} end at {ending(students, 'prog', first)} with all checkpoints in turn, "
    return plots.figure(
        plots.grid(panels),
        table,
        title + f"at {ending(students, 'os', first)} with the last one alone",
        f"Sparse parity, a teacher of width {widths.get(TEACHER, '–')}. {means_of(table)}",
        told=f"Accuracy at the end: {plots.tell(last(table), 'width {width}, {label}: {value:.2f}')}.",
    )


@plots.drawn("When a model of a given width learns")
def widths(context: Results) -> Figure:
    """The step at which models of several widths have an accuracy of 0.9, trained on labels alone; a point for each
    model, a hollow triangle where it has not learned until its last step."""
    data = plots.some(with_step(context.table("models").filter(pl.col("run").is_in([*SWEEP, TEACHER]))))
    x = Axis("width", "hidden units", log=True, form="~s", values=sorted(data["width"].unique()), pad=16)
    counts = data.group_by("width").agg(pl.col("has_learned").sum(), n=pl.len()).sort("width")
    least, most = counts.row(0, named=True), counts.row(-1, named=True)
    return plots.figure(
        learning(data, x, "~s"),
        data,
        "Within their steps {has_learned} of {n} models of width {width} learn".format(**least)
        + ", {has_learned} of {n} of width {width}".format(**most),
        "A point is one model that learns from labels alone; hollow triangles: not until its last step",
        told=f"Learned: {plots.tell(counts, 'width {width}: {has_learned} of {n}')}.",
        width=420,
    )
