"""Figures 4.4 (right), 4.26 and 4.27: students of a BERT on masked tokens of a grammar."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.distillation import published
from pipeline.studies.distillation.figures.common import (
    COLOURS,
    by_horizon,
    dots,
    growth,
    last,
    mean_ends,
    means_of,
    sizes_of,
)
from pipeline.studies.distillation.names import BERT, PUPILS, WIDER, root_at

PRINTED = {"prog": "progressive", "one-shot": "one-shot, better temperature", "ce": "student of labels"}
MAIN = ("ce", "os", "warm", "half", "prog")


@plots.drawn("Students of a BERT on masked tokens")
def masked(context: Results) -> Figure:
    """Accuracy at the end of students by how many steps they train, mean over models with its interval; a student of
    more steps is another training, with a schedule of its own. Lines: the teacher's end, and the best predictor. Beside
    it what the source has, of whole strings and larger models."""
    table = context.table("arms")
    data = last(table.filter(pl.col("run").is_in(PUPILS), pl.col("arm").is_in(MAIN)))
    data = plots.some(data, "no student was trained at this scale")
    low = float(data.select(pl.min_horizontal("lo", "value").min()).item())
    y = Axis("value", "accuracy at the end", domain=[int(20 * low) / 20, 1])
    rules = plots.rule(y, table.filter(run=BERT).sort("step")["value"][-1], "teacher")
    best = context.table("oracle").filter(grammar="cfg3b", task="masked", quantity="acc", mask_rate=0.3)
    best = best.filter(root=root_at(context.scale, best["root"]))
    if best.height:
        rules += plots.rule(y, best["value"].item(), "best predictor")
    ours = plots.panel([*rules, *by_horizon(data, y, "bottom")], "here", 270, 260)
    most = data.filter(step=data["step"].max())
    found = {arm: charts.number(value, 3) for arm, value in most.select("arm", "value").iter_rows()}
    return plots.figure(
        plots.grid([ours, _published(y.but(title=None))], shared=False),
        data,
        f"After {most['step'][0]} steps one-shot students of a BERT have {found.get('os', '–')}, "
        f"progressive ones at double speed {found.get('half', '–')}",
        f"Masked tokens. Points: means of {plots.count(data['n'], 'model')}, each another training; "
        f"{plots.spread(data, 'bars')}",
        told=f"Accuracy at the end: {plots.tell(data, '{label}, {step} steps: {value:.3f}')}.",
    )


def _published(y: Axis) -> plots.Panel:
    """Return what the source has on whole strings, with larger models."""
    rows = [
        ("teacher's size" if arm == "label" else PRINTED[arm], int(share * published.STEPS), value)
        for arm, values in published.ACCURACIES.items()
        for share, value in zip(published.SHARES, values, strict=True)
    ]
    data = pl.DataFrame(rows, schema=["label", "step", "value"], orient="row")
    colours = [charts.BLACK, COLOURS["prog"], COLOURS["os"], COLOURS["ce"]]
    names = dict(zip(dict.fromkeys(data["label"]), colours, strict=True))
    by = plots.kinds(names, dashes=False, columns=2, legend="bottom")
    x = plots.listed("step", "steps of the student", data, zero=False, pad=20, form="~s")
    return plots.panel(plots.lines(data, x, y, by, dots=True), "as published (Figure 4.4)", 250, 260)


@plots.drawn("How checkpoints are shared out")
def schedules(context: Results) -> Figure:
    """All schedules, by steps of the student: every model and the mean of each arm."""
    models = context.table("models")
    known = models.select("run", "horizon", "heads").unique().sort("horizon")
    panels = {
        run: f"{horizon} steps" + (f", {heads} heads" if run in WIDER else "")
        for run, horizon, heads in known.iter_rows()
        if run in (*PUPILS, *WIDER)
    }
    chart, data = dots(models, panels)
    means = data.group_by("panel", "label", maintain_order=True).agg(pl.col("final").mean(), n=pl.len())
    best = means.sort("final", descending=True, maintain_order=True).row(0, named=True)
    return plots.figure(
        chart,
        data,
        f"Of all schedules the best, {best['label']}, ends at {best['final']:.3f} after {best['panel']}",
        f"Points: {plots.count(means['n'], 'model')} of each; bars: their means",
        told=mean_ends(data),
    )


@plots.drawn("Size, and how fast a BERT learns")
def sizes(context: Results) -> Figure:
    """Accuracy of models of several sizes while they learn from labels, mean over models with its interval; rings: 80
    % of the last one is reached. Each has the longest training of its size."""
    table = context.table("arms").filter(pl.col("arm").is_in(["label", "ce"]), pl.col("run") != "distillation-plateau")
    layers, first, data = growth(plots.some(table), sizes_of(table))
    steps = plots.tell(first, "{size}: step {step}")
    return plots.figure(
        layers,
        data,
        f"BERTs reach 80 % of their last accuracy at {steps.replace(': ', ', ')}",
        f"{means_of(data)}; rings: 80 % of the last accuracy",
        told=f"80 % of the last accuracy is reached, {steps}.",
    )
