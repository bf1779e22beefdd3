"""Figures 4.10 (right) and 4.13: heads, and when a Transformer learns a parity."""

from __future__ import annotations

import polars as pl

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import learning, with_step
from pipeline.studies.distillation.names import HEADS

GROUPS = {"heads": "more heads of one width", "hidden": "one width, cut into heads", "averaged": "full heads, averaged"}


@plots.drawn("Heads, and when a Transformer learns")
def heads(context: Results) -> Figure:
    """The step at which Transformers have an accuracy of 0.9 by their number of heads, for three ways to grow it: a
    point for each model, a hollow triangle where it has not learned until its last step."""
    models = context.table("models")
    groups = {run: GROUPS[group] for run, (group, _) in HEADS.items()}
    data = models.with_columns(group=pl.col("run").replace_strict(groups, return_dtype=pl.String))
    both = data.filter(run="distillation-heads-4").with_columns(group=pl.lit(GROUPS["hidden"]))
    data = plots.some(with_step(pl.concat([data, both])))
    x = Axis("heads", "heads", "O")
    panels = [
        plots.panel(learning(data.filter(group=group), x), group, 150)
        for group in GROUPS.values()
        if group in data["group"]
    ]
    late = data.group_by("group", "heads", maintain_order=True).agg(
        pl.col("shown").median(), pl.col("has_learned").sum(), n=pl.len()
    )
    return plots.figure(
        plots.grid(panels, 3).resolve_scale(y="shared"),
        data,
        f"{data['has_learned'].sum()} of {data.height} Transformers learn the parity within their steps",
        "A point is one model; hollow triangles: not until its last step",
        told=f"Median steps: {plots.tell(late, '{group}, {heads}: {shown:.0f} ({has_learned} of {n} learned)')}.",
    )
