"""Position codes at the training length and beyond (Figure 3.22)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.automata.figures.common import ACCURACY, UNTRAINED, in_words

NAMES = {"sin": "sinusoidal", "linear": "linear"}


@plots.drawn("Position codes")
def positions(context: Results) -> Figure:
    """Accuracy with sinusoidal and with linear positions at the training length and at twice that: bars across at the
    means, a point for each model, hollow where it did not learn its task."""
    there = pl.col("length") == pl.col("trained")
    data = plots.some(context.table("positions"), UNTRAINED).with_columns(
        pl.col("position").replace_strict(NAMES).alias("code"),
        in_words(pl.col("task")).alias("name"),
        pl.when(there).then(pl.lit("training length")).otherwise(pl.lit("twice that")).alias("at"),
    )
    by = plots.kinds({NAMES["sin"]: charts.BLUE, NAMES["linear"]: charts.VERMILLION}, "code", shapes=True)
    by = by.among(data["code"])
    x = Axis("at", None, "N", order=["training length", "twice that"])
    y = plots.share("accuracy", ACCURACY)
    panels = [
        plots.panel(
            plots.seeds(rows, x, y, by, apart="code", hollow="learned", tips=["replica", "learned"]), name, 230, 180
        )
        for name, rows in plots.split(data, "name")
    ]
    means = data.group_by("name", "code", "at", maintain_order=True).agg(pl.mean("accuracy"), n=pl.len())
    far = means.filter(at="twice that")
    return plots.figure(
        plots.grid(panels),
        data,
        f"Right at twice the training length: {plots.tell(far, '{name}, {code} positions {accuracy:.2f}', ', ')}",
        f"A point is one model, {plots.count(means['n'], 'model')} of each; bars across: means; hollow: did not learn "
        "the task",
        told=f"Mean accuracy. {plots.tell(means, '{name}, {code}, {at}: {accuracy:.2f}')}.",
    )
