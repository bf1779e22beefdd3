"""Figures 4.31 to 4.35: GPT-2s on the last tokens of spans of a grammar."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import dots, quantity
from pipeline.studies.distillation.names import ENDINGS_PUPILS, GPT


def levels(context: Results) -> Figure:
    """Students by the level of the spans whose last tokens are asked for: every model and the mean of each arm."""
    models = context.table("models")
    known = models["run"].unique()
    panels = {run: f"ends of level {run[-1]}" for run in ENDINGS_PUPILS if run in known}
    return dots(models, panels, "Students of a GPT-2 on cfg3f")


def lookback(context: Results) -> Figure:
    """Loss of the teachers, and the median of how far their predictions move where the skip 3-gram before a token is
    hidden, by level; means over teachers."""
    title = "What a GPT-2 leans on while it learns"
    names = {run: f"ends of level {run[-1]}" for run in GPT}
    loss = context.table("arms").filter(pl.col("run").is_in(GPT))
    if not loss.height:
        return empty(title, "no teacher was trained at this scale")
    loss = loss.with_columns(label=pl.col("run").replace_strict(names, return_dtype=pl.String))
    found = context.table("ngram_summary").filter(measure="robust", ngram=3)
    data = found.group_by("run", "step", maintain_order=True).agg(value=pl.col("q50").mean())
    data = data.with_columns(label=pl.col("run").replace_strict(names, return_dtype=pl.String))
    labels = data["label"].unique(maintain_order=True).to_list()
    axis = alt.Axis(tickCount=6, format="~s")
    panels: list[Any] = [
        quantity(loss, alt.X("step:Q", title=None, axis=axis), "loss", "loss, nats", "label", labels),
        quantity(data, alt.X("step:Q", title="steps of the teachers' training", axis=axis), "value", "L_robust(3)",
                 "label", labels),
    ]  # fmt: skip
    chart = alt.vconcat(*(panel.properties(width=520, height=150) for panel in panels))
    top = data.sort("value", descending=True).row(0, named=True)
    said = f"L_robust(3) is largest, {top['value']:.2f}, at step {top['step']}."
    return chart.properties(title=title, description=said), _beside(loss, data)


def _beside(loss: pl.DataFrame, data: pl.DataFrame) -> pl.DataFrame:
    return loss.select("label", "step", "loss").join(
        data.select("label", "step", "value"), on=["label", "step"], how="left"
    )
