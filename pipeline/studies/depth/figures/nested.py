"""EXP-6: chains of lookups (DEP-D5; ours, from the paper's discussion)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.depth.figures.common import JUDGED_SPLIT


@plots.drawn("Nested lookups: accuracy by layers and hops")
def nested(context: Results) -> Figure:
    """Accuracy on chains of lookups by layers and hops (ours)."""
    table = context.table("accuracy").filter(JUDGED_SPLIT, experiment="exp-6", among="outputs")
    data = table.select("layers", "hops", "value", "least", "most", "n", "chance").sort("layers", "hops")
    plots.some(data, "no run of this experiment was trained")
    marks = plots.cells(
        data,
        Axis("hops", "hops", "O"),
        Axis("layers", "layers", "O", order="descending"),
        "value",
        "accuracy",
        form=".2f",
        tips=["least", "most", "n"],
        size=14,
        legend="right",
    )
    deepest = data.filter(pl.col("layers") == pl.col("layers").max()).sort("hops")
    summary = data.with_columns(s=pl.when(pl.col("hops") == 1).then(pl.lit("")).otherwise(pl.lit("s")))
    return plots.figure(
        marks,
        data,
        f"Nested lookups with {deepest['layers'][0]} layers: accuracy {charts.number(deepest['value'][0])} at "
        f"{plots.count([deepest['hops'][0]], 'hop')}, {charts.number(deepest['value'][-1])} at {deepest['hops'][-1]}",
        f"Medians on fresh chains, {plots.count(data['n'], 'model')} each; chance {data['chance'][0]:.2f}. The "
        "construction takes two layers per hop (section 7), or one more than hops (ours)",
        told=f"{plots.tell(summary, '{layers} layers, {hops} hop{s}: {value:.2f}')}.",
        width=90 * data["hops"].n_unique(),
        height=alt.Step(40),
    )
