"""Figures 4.10 (right) and 4.13: heads, and when a Transformer learns a parity."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import learnt, with_step
from pipeline.studies.distillation.names import HEADS

GROUPS = {"heads": "more heads of one width", "hidden": "one width, cut into heads", "averaged": "full heads, averaged"}


def heads(context: Results) -> Figure:
    """The step at which Transformers have an accuracy of 0.9 by their number of heads, for three ways to grow it: a
    point for each model, a hollow triangle where it has not learned until its last step."""
    title = "Heads, and when a Transformer learns"
    models = context.table("models")
    groups = {run: GROUPS[group] for run, (group, _) in HEADS.items()}
    data = models.with_columns(group=pl.col("run").replace_strict(groups, return_dtype=pl.String))
    both = data.filter(run="distillation-heads-4").with_columns(group=pl.lit(GROUPS["hidden"]))
    data = with_step(pl.concat([data, both]))
    if not data.height:
        return empty(title, "nothing was trained at this scale")
    x = alt.X("heads:O", title="heads", axis=alt.Axis(labelAngle=0))
    panels = [
        alt.Chart(data.filter(group=group))
        .mark_point(size=70, strokeWidth=2)
        .encode(
            **learnt(x, alt.Axis()),
            tooltip=["heads:Q", "width:Q", "model:Q", "t90:Q", alt.Tooltip("final:Q", format=".3f")],
        )
        .properties(width=150, height=200, title=alt.TitleParams(group, fontSize=13))
        for group in GROUPS.values()
    ]
    late = data.group_by("group", "heads", maintain_order=True).agg(pl.col("shown").median())
    medians = "; ".join(f"{row['group']}, {row['heads']}: {row['shown']:.0f}" for row in late.iter_rows(named=True))
    chart = alt.hconcat(*panels).resolve_scale(y="shared")
    return chart.properties(title=title, description=f"Median steps. {medians}."), data
