"""Figures 4.31 to 4.35: GPT-2s on the last tokens of spans of a grammar."""

from __future__ import annotations

import polars as pl

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import growth, horizons, means_of, sizes_of
from pipeline.studies.distillation.names import ENDINGS_PUPILS, ENDINGS_WIDER, GPT, OF_SPANS, SPANS


@plots.drawn("Students of a GPT-2 by horizon")
def levels(context: Results) -> Figure:
    """Accuracy at the end of students by how many steps they train, mean over models with its interval, by what is
    asked for and how many heads they have."""
    panels = {
        run: f"{SPANS[spans]}{more}"
        for more, size in (("", ENDINGS_PUPILS), (", twice the heads", ENDINGS_WIDER))
        for spans, runs in size.items()
        for run in runs
    }
    return horizons(context.table("arms"), panels, "Students of a GPT-2")


@plots.drawn("Size, and how fast a GPT-2 learns")
def next_sizes(context: Results) -> Figure:
    """Accuracy of models of several sizes while they learn from labels, by what is asked for, mean over models with its
    interval; rings: 80 % of the last one is reached. Each has the longest training of its size."""
    table = context.table("arms").filter(pl.col("arm").is_in(["label", "ce"]))
    order = sizes_of(table)
    panels, parts, rings = [], [], []
    for teacher, runs in OF_SPANS.items():
        own = table.filter(pl.col("run").is_in(runs))
        if own.height:
            name = f"ends of {SPANS[GPT[teacher]]}"
            layers, first, data = growth(own, order)
            panels.append(plots.panel(layers, name, 240, 190))
            parts.append(data.with_columns(panel=pl.lit(name)))
            rings.append(first.with_columns(panel=pl.lit(name)))
    chart, reached = plots.grid(panels), pl.concat(rings)
    return plots.figure(
        chart,
        pl.concat(parts),
        "80 % of the last accuracy is reached at step {:.0f} to {:.0f}".format(
            plots.least(reached["step"]), plots.most(reached["step"])
        ),
        f"{means_of(table)}; rings: 80 % of the last accuracy",
        told=f"80 % of the last accuracy is reached: {plots.tell(reached, '{panel}, {size}: step {step}')}.",
    )


@plots.drawn("What a GPT-2 leans on while it learns")
def lookback(context: Results) -> Figure:
    """Loss of the teachers, and the median of how far their predictions move where the skip 3-gram before a token is
    hidden, by level; means over teachers."""
    names = {run: f"ends of {SPANS[spans]}" for run, spans in GPT.items()}
    label = pl.col("run").replace_strict(names, return_dtype=pl.String)
    loss = context.table("arms").filter(pl.col("run").is_in(list(GPT)))
    loss = plots.some(loss, "no teacher was trained at this scale").with_columns(label=label)
    summary = context.table("ngram_summary").filter(measure="robust", ngram=3)
    data = summary.group_by("run", "step", maintain_order=True).agg(value=pl.col("q50").mean(), n=pl.len())
    data = data.with_columns(label=label)
    by, x = plots.kinds(data["label"].unique(maintain_order=True)), plots.steps(title=None, count=6)
    below = x.but(title="steps of the teachers' training")
    panels = [
        plots.panel(plots.lines(loss, x, Axis("loss", "loss, nats"), by, dots=True), None, 520, 150),
        plots.panel(plots.lines(data, below, Axis("value", "L_robust(3)"), by, dots=True), None, 520, 150),
    ]
    top = data.sort("value", descending=True, maintain_order=True).row(0, named=True)
    return plots.figure(
        plots.grid(panels, 1),
        loss.select("label", "step", "loss").join(
            data.select("label", "step", "value"), on=["label", "step"], how="left", maintain_order="left"
        ),
        f"GPT-2s lean most on the last tokens, L_robust(3) = {top['value']:.2f}, at step {top['step']}",
        f"Means over {plots.count(data['n'], 'teacher')}; dashes tell levels apart, as the legend has them",
    )
