"""Figures 4.4 (middle), 4.14, 4.15 and 4.16: Transformers on sparse parity."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import OWN, accuracy, looks, named
from pipeline.studies.distillation.names import ATTENDING, ATTENTION

LEARNED = 0.9  # of accuracy, at the end


@plots.drawn("Transformers on sparse parity")
def transformers(context: Results) -> Figure:
    """Accuracy of the teachers and of students with fewer heads: every model, as each learns at a step of its own."""
    data = plots.some(named(context.table("courses").filter(pl.col("run").is_in([ATTENTION, ATTENDING]))))
    parts = {"all in turn": ["label", "ce", "os", "prog"], "one checkpoint": ["label", "peak", "between"]}
    y = accuracy("accuracy", 0.5)
    panels = []
    for name, arms in parts.items():
        own = data.filter(pl.col("arm").is_in(arms))
        curves = plots.lines(own, OWN, y, looks(own["arm"], 1, "bottom"), each="model", strokeWidth=1.5, opacity=0.8)
        panels.append(plots.panel([*plots.rule(y, 0.5, "guessing", end=True, below=True), *curves], name))
    ends = data.filter(pl.col("step") == pl.col("step").max().over("run"))
    counts = ends.group_by("label", "arm", maintain_order=True).agg(
        learned=(pl.col("accuracy") >= LEARNED).sum(), n=pl.len()
    )
    taught = counts.select(teacher=pl.col("arm") == "label", learned="learned", n="n").group_by("teacher").sum()
    of = {teacher: f"{learned} of {n}" for teacher, learned, n in taught.iter_rows()}
    return plots.figure(
        plots.grid(panels, shared=False),
        data.drop("label"),
        f"{of.get(True, '0 of 0')} teachers and {of.get(False, '0 of 0')} students learn within "
        f"{plots.most(data['step']):.0f} steps",
        f"Transformers on sparse parity; a line is one model; learned: {LEARNED:g} or more at the end",
        told=f"Models that end at {LEARNED:g} or above: {plots.tell(counts, '{label}: {learned} of {n}')}.",
    )


@plots.drawn("Attention and correlations while the teachers learn")
def attention(context: Results) -> Figure:
    """Each teacher: its accuracy; how much the last token looks at signs that matter, along paths of two layers (all
    signs together have 1; dotted: before training); and how far its answer correlates with single signs, mean of those
    that matter and of others."""
    weights = plots.some(context.table("attention"))
    total = weights.filter("inside").group_by("model", "step", maintain_order=True).agg(value=pl.col("weight").sum())
    rest = pl.col("feature") == "rest"
    single = context.table("correlations").with_columns(
        what=pl.when(rest).then(pl.lit("other signs")).otherwise(pl.lit("signs that matter"))
    )
    single = single.group_by("model", "step", "what", maintain_order=True).agg(value=pl.col("correlation").mean())
    course = context.table("courses").filter(run=ATTENTION).select("model", "step", value="accuracy")
    parts = [total.with_columns(what=pl.lit("weight")), single, course.with_columns(what=pl.lit("accuracy"))]
    data = pl.concat(parts, how="diagonal").with_columns(panel=pl.format("teacher {}", pl.col("model") + 1))
    two = plots.kinds({"signs that matter": charts.BLUE, "other signs": charts.VERMILLION}, "what")
    most = plots.most(single["value"])
    right, looked = accuracy("value", 0.5), plots.share("value", "weight on signs")
    known = Axis("value", "mean correlation", domain=[0, max(most, 0.01)], count=4)
    rows: list[list[plots.Panel]] = [[], [], []]
    for name, own in plots.split(data.sort("model", "step", maintain_order=True), "panel"):
        x, first = plots.steps(title=None, count=3), not rows[0]
        right, looked, known = (axis if first else axis.but(title=None) for axis in (right, looked, known))
        start = own.filter(what="weight").sort("step")["value"][0]
        before = plots.rule(looked, start, "before" if first else None, end=True, below=True)
        layers = [
            (x, plots.lines(own.filter(what="accuracy"), x, right, charts.BLACK)),
            (x, [*before, *plots.lines(own.filter(what="weight"), x, looked)]),
            (x, plots.lines(own.filter(pl.col("what").is_in(list(two.looks))), plots.steps(count=3), known, two)),
        ]
        for row, (_, marks) in zip(rows, layers, strict=True):
            row.append(plots.panel(marks, name if row is rows[0] else None, 150, 100))
    ends = total.filter(pl.col("step") == pl.col("step").max())["value"].sort().to_list()
    teachers = data["model"].n_unique()
    span = f"{ends[0]:.2f} to {ends[-1]:.2f}"
    return plots.figure(
        plots.grid([plots.grid(row, len(row)) for row in rows], 1),
        data,
        f"At the end the last token has {span} of its attention on the signs that matter",
        f"{plots.count([teachers], 'teacher')}, one in each column; dotted: before training",
        told=f"Weight on signs that matter at the end: {span}.",
    )
