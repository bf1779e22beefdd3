"""Figure ``models``: what the language models learned."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results

SETS = {"closers_id": "as in training", "closers_ood": "out of distribution"}


@plots.drawn("Accuracy on closing brackets")
def models(context: Results) -> Figure:
    """Accuracy on closing brackets of every model, in and out of distribution."""
    table = plots.some(context.table("models").filter(weights="average"))
    data = table.unpivot(list(SETS), index="replica", variable_name="strings", value_name="accuracy")
    data = data.with_columns(pl.col("strings").replace(SETS))
    x = Axis(
        "accuracy", "closing brackets that are the likeliest sign", domain=[plots.least(data["accuracy"]) - 0.02, 1]
    )
    y = Axis("strings", None, "N", order=list(SETS.values()))
    least = {name: number(100 * plots.least(table[name]), 1) for name in SETS}
    return plots.figure(
        [
            *plots.rule(x, 1, upright=True),
            *plots.points(data, x, y, charts.BLUE, tips=["replica"], size=70, opacity=0.8),
        ],
        data,
        f"Every model closes at least {least['closers_id']} % of brackets rightly in distribution, "
        f"{least['closers_ood']} % out of it",
        f"A point for each of {plots.count([table.height], 'model')}, average of the weights. Dotted: all rightly",
        told=plots.tell(table.sort("replica"), "{closers_id:.4f} and {closers_ood:.4f}") + ".",
        width=460,
        height=90,
    )
