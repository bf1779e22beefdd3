"""Figure 4.9, on a generated text that stands in for English: a BERT's training, and its students by horizon."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.distillation.comparisons import COMMON
from pipeline.studies.distillation.figures.common import dots, named
from pipeline.studies.distillation.names import READER, TEXT_PUPILS


@plots.drawn("BERTs on generated text, a stand-in for English")
def text(context: Results) -> Figure:
    """Mean loss of the teachers, and the median of how far their predictions move where the n-gram around a masked word
    is masked as well, mean over teachers; below, accuracies of all students at the end."""
    loss = plots.some(context.table("arms").filter(run=READER), "no teacher was trained at this scale")
    summary = context.table("ngram_summary").filter(run=READER, measure="robust")
    near = summary.group_by("ngram", "step", maintain_order=True).agg(value=pl.col("q50").mean())
    widths = sorted(near["ngram"].unique())[:3]
    near = near.filter(pl.col("ngram").is_in(widths)).with_columns(label=pl.format("n = {}", "ngram"))
    x = plots.steps(title=None, count=6)
    below, by = x.but(title="steps of the teachers' training"), plots.kinds([f"n = {width}" for width in widths])
    panels = [
        plots.panel(
            plots.lines(loss, x, Axis("loss", "loss, nats", zero=False), charts.BLACK, dots=True), None, 520, 130
        ),
        plots.panel(plots.lines(near, below, Axis("value", "L_robust(n)"), by, dots=True), None, 520, 130),
    ]
    models = context.table("models").filter(pl.col("run") != READER)
    horizons = dict(models.select("run", "horizon").unique().iter_rows())
    students, _ = dots(models, {run: f"{horizons[run]} steps" for run in TEXT_PUPILS if run in horizons}, columns=3)
    common = comparisons.read(context, [COMMON])["value"].item()
    ends = named(models.group_by("run", "horizon", "arm", maintain_order=True).agg(pl.col("final").mean(), n=pl.len()))
    ends = ends.sort("run", "arm")
    best = ends.sort("final", descending=True, maintain_order=True).row(0, named=True)
    baseline = f"Always naming the most frequent word is right in {common:.3f} of the cases"
    return plots.figure(
        plots.grid([*panels, students], 1, shared=False),
        models,
        f"On generated text students end at best at {best['final']:.3f} ({best['label']}, {best['horizon']} steps)",
        f"{baseline}. Points: {plots.count(ends['n'], 'model')} of each kind; bars: their means",
        told=f"Accuracy at the end: {plots.tell(ends, '{horizon} steps, {label}: {final:.3f}')}. {baseline}.",
    )
