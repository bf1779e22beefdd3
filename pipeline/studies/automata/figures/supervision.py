"""States seen through a map, and hidden labels (Figures 3.7, 3.18, 3.19)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from pipeline.studies.automata.figures.common import ACCURACY, ARM, ENDS, UNTRAINED, accuracy, models, named, summary

# What stands beside the models, with the path of its mark.
BESIDE = {
    "constant": Look(charts.INK, shape="M0,-1.4V1.4"),
    "majority": Look(charts.INK, shape="M0,-0.7V0.7"),
    "printed": Look(charts.INK, shape="diamond"),
}
WORDS = {"constant": "one label for each position", "majority": "one label for all", "printed": "published maximum"}


@plots.drawn("Indirect supervision")
def indirect(context: Results) -> Figure:
    """Accuracy where states are seen through a map: best model of each arm, the published maximum, and the best
    answers that do not read the input, one label for each position and one for all."""
    table = plots.some(context.table("indirect"), UNTRAINED)
    data = named(table).with_columns((pl.col("published") / 100).alias("printed"))
    order = data["panel"].unique(maintain_order=True).to_list()
    beside = data.filter(arm="gpt").unpivot(list(BESIDE), index="panel", variable_name="mark", value_name="level")
    beside = beside.with_columns(pl.col("mark").replace_strict(WORDS)).drop_nulls("level")
    marks = Kinds("mark", {WORDS[key]: look for key, look in BESIDE.items()}, legend="bottom")
    x, y = plots.share("acc_max", ACCURACY), Axis("panel", None, "N", order=order)
    by = ARM.among(data["label"])
    words = plots.tell(data, "{panel}, {label}: {acc_max:.3f}")
    return plots.figure(
        [
            *plots.points(beside, x.but(field="level"), y, marks, size=90),
            *plots.points(data, x, y, by, apart="label", tips=["acc_median"], size=70),
        ],
        data,
        f"From states seen through a map the best models are right on {plots.least(data['acc_max']):.3f} or more",
        f"Best of {plots.count(data['n'], 'model')} of each arm",
        told=f"Best models. {words}.",
        width=420,
        height=34 * len(order),
    )


@plots.drawn("Incomplete supervision")
def incomplete(context: Results) -> Figure:
    """Accuracy by the probability with which a label is shown in training: means over all models, bands from the
    least to the most accurate."""
    table = context.table("incomplete")
    data = summary(table, "revealed")
    panels = []
    for name, rows in plots.split(data, "panel"):
        x = plots.listed("revealed", "probability of a label (log scale)", rows, log=True)
        curves = plots.lines(rows, x, accuracy(rows["least"]), ARM.among(data["label"]), band=ENDS, dots=True)
        panels.append(plots.panel(curves, name, 250, 180))
    words = plots.tell(data, "{panel}, {label}, {revealed:g}: {accuracy:.3f}")
    rare = data.filter(pl.col("revealed") == pl.col("revealed").min())
    return plots.figure(
        plots.grid(panels),
        data,
        f"With one label in {1 / plots.least(data['revealed']):.0f}: "
        + plots.tell(rare, "{panel}, {label} {accuracy:.2f}"),
        models(data, table),
        told=f"Mean accuracy. {words}.",
    )
