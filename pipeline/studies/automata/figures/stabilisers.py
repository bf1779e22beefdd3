"""Dropout against none, and averages of weights against the weights."""

from __future__ import annotations

import polars as pl

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.automata.figures.common import UNTRAINED, accuracy, in_words


@plots.drawn("Stabilisers")
def stabilisers(context: Results) -> Figure:
    """Left, accuracy of models that train with dropout and without; right, what moving averages of the weights gain
    over the weights at the end of training, by decay. A point for each model, a line through the means; hollow: did not
    learn its task."""
    table = plots.some(context.table("stabilisers"), UNTRAINED)
    data = table.with_columns(in_words(pl.col("task")).alias("name"))
    of = ["task", "depth", "dropout", "replica"]
    plain = data.filter(average=0.0).select(*of, pl.col("accuracy").alias("plain"))
    data = data.join(plain, on=of, maintain_order="left")
    data = data.with_columns(gain=100 * (pl.col("accuracy") - pl.col("plain")))
    tried = data.filter(pl.col("dropout") > 0)["task"].unique().to_list()
    dropped = data.filter(pl.col("average") == 0, pl.col("task").is_in(tried))
    averaged = data.filter(pl.col("average") > 0, pl.col("dropout") == 0)
    by = plots.kinds(data["name"].unique(maintain_order=True), "name", dashes=False)
    rates = plots.listed("dropout", "dropout (share of activations)", dropped)
    decays, gained = Axis("average", "decay of the average", "O"), Axis("gain", "gain (percentage points)")
    parts = [
        (dropped, "Dropout", rates, accuracy(dropped["accuracy"])),
        (averaged, "Averages of weights", decays, gained),
    ]
    panels, words, means = [], [], []
    for rows, title, x, y in parts:
        if rows.height:
            mean = rows.group_by("name", x.field, maintain_order=True).agg(pl.mean(y.field), n=pl.len())
            means.append(mean.sort("name", x.field))
            words.append(plots.tell(means[-1], f"{{name}}, {{{x.field}}}: {{{y.field}:.2f}}"))
            points = plots.points(rows, x, y, by, hollow="learned", tips=["replica"], size=45)
            panels.append(plots.panel([*plots.lines(means[-1], x, y, by), *points], title))
    chart = plots.grid(panels)
    gains = [
        plots.tell(mean.filter(average=mean["average"].max()), "{name} {gain:+.2f}", ", ")
        for mean in means[-1:]
        if averaged.height
    ]
    what = f"The longest averages gain, in points: {gains[0]}" if averaged.height else "What dropout does to accuracy"
    return plots.figure(
        chart,
        data,
        what,
        f"Points: models, {plots.count(pl.concat([mean['n'] for mean in means]), 'model')} of each kind; lines: their "
        "means; hollow: did not learn the task",
        told=f"Mean accuracy by dropout; mean gain by decay of the average, in points. {'. '.join(words)}.",
    )
