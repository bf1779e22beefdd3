"""Figures 4.31 to 4.35: GPT-2s on the last tokens of spans of a grammar."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import growth, horizons, quantity, sizes_of
from pipeline.studies.distillation.names import ENDINGS_PUPILS, ENDINGS_WIDER, GPT, OF_SPANS, SPANS


def levels(context: Results) -> Figure:
    """Accuracy at the end of students by how many steps they train, mean over models with its interval, by what is
    asked for and how many heads they have."""
    panels = {
        run: f"{SPANS[spans]}{more}"
        for more, size in (("", ENDINGS_PUPILS), (", twice the heads", ENDINGS_WIDER))
        for spans, runs in size.items()
        for run in runs
    }
    return horizons(context.table("arms"), panels, "Students of a GPT-2 by horizon")


def next_sizes(context: Results) -> Figure:
    """Accuracy of models of several sizes while they learn from labels, by what is asked for, mean over models with its
    interval; rings: 80 % of the last one is reached. Each has the longest training of its size."""
    title = "Size, and how fast a GPT-2 learns"
    table = context.table("arms").filter(pl.col("arm").is_in(["label", "ce"]))
    order = sizes_of(table)
    drawn, words, parts = [], [], []
    for teacher, runs in OF_SPANS.items():
        own = table.filter(pl.col("run").is_in(runs))
        if own.height:
            name = f"ends of {SPANS[GPT[teacher]]}"
            layers, steps, data = growth(own, order)
            drawn.append(layers.properties(width=240, height=190, title=alt.TitleParams(name, fontSize=13)))
            words.append(f"{name}: {steps}")
            parts.append(data.with_columns(panel=pl.lit(name)))
    if not drawn:
        return empty(title, "nothing was trained at this scale")
    chart = alt.concat(*drawn, columns=2).properties(
        title=title, description=f"80 % of the last accuracy is reached. {'. '.join(words)}."
    )
    return chart, pl.concat(parts)


def lookback(context: Results) -> Figure:
    """Loss of the teachers, and the median of how far their predictions move where the skip 3-gram before a token is
    hidden, by level; means over teachers."""
    title = "What a GPT-2 leans on while it learns"
    names = {run: f"ends of {SPANS[spans]}" for run, spans in GPT.items()}
    loss = context.table("arms").filter(pl.col("run").is_in(list(GPT)))
    if not loss.height:
        return empty(title, "no teacher was trained at this scale")
    loss = loss.with_columns(label=pl.col("run").replace_strict(names, return_dtype=pl.String))
    summary = context.table("ngram_summary").filter(measure="robust", ngram=3)
    data = summary.group_by("run", "step", maintain_order=True).agg(value=pl.col("q50").mean())
    data = data.with_columns(label=pl.col("run").replace_strict(names, return_dtype=pl.String))
    labels = data["label"].unique(maintain_order=True).to_list()
    axis = alt.Axis(tickCount=6, format="~s")
    panels: list[Any] = [
        quantity(loss, alt.X("step:Q", title=None, axis=axis), "loss", "loss, nats", "label", labels),
        quantity(
            data,
            alt.X("step:Q", title="steps of the teachers' training", axis=axis),
            "value",
            "L_robust(3)",
            "label",
            labels,
        ),
    ]
    chart = alt.vconcat(*(panel.properties(width=520, height=150) for panel in panels))
    top = data.sort("value", descending=True).row(0, named=True)
    description = f"L_robust(3) is largest, {top['value']:.2f}, at step {top['step']}."
    return chart.properties(title=title, description=description), _beside(loss, data)


def _beside(loss: pl.DataFrame, data: pl.DataFrame) -> pl.DataFrame:
    return loss.select("label", "step", "loss").join(
        data.select("label", "step", "value"), on=["label", "step"], how="left"
    )
