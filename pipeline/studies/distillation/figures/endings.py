"""Figures 4.31 to 4.35: GPT-2s on the last tokens of spans of a grammar."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import by_horizon, named, quantity
from pipeline.studies.distillation.names import ENDINGS_PUPILS, ENDINGS_WIDER, GPT, SPANS


def levels(context: Results) -> Figure:
    """Accuracy at the end of students by how many steps they train, mean over models with its interval, by what is
    asked for and how many heads they have."""
    title = "Students of a GPT-2 by horizon"
    panels = {
        run: f"{SPANS[spans]}{more}"
        for more, size in (("", ENDINGS_PUPILS), (", twice the heads", ENDINGS_WIDER))
        for spans, runs in size.items()
        for run in runs
    }
    last = context.table("arms").filter(
        pl.col("run").is_in(list(panels)), pl.col("step") == pl.col("step").max().over("run")
    )
    if not last.height:
        return empty(title, "no student was trained at this scale")
    data = named(last).with_columns(panel=pl.col("run").replace_strict(panels, return_dtype=pl.String))
    low, high = data.select(
        pl.min_horizontal("lo", "value").min(), pl.max_horizontal("hi", "value").max()
    ).row(0)
    scale = alt.Scale(domain=[int(20 * low) / 20, min(1, (int(20 * high) + 1) / 20)], nice=False)
    drawn = [
        alt.layer(*by_horizon(data.filter(panel=panel), scale)).properties(
            width=240, height=170, title=alt.TitleParams(panel, fontSize=13)
        )
        for panel in dict.fromkeys(panels.values())
        if panel in data["panel"].to_list()
    ]
    accuracies = "; ".join(
        f"{row['panel']}, {row['label']}, {row['step']} steps: {row['value']:.3f}"
        for row in data.iter_rows(named=True)
    )
    chart = alt.concat(*drawn, columns=2).properties(
        title=title, description=f"Accuracy at the end. {accuracies}."
    )
    return chart, data


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
        quantity(data, alt.X("step:Q", title="steps of the teachers' training", axis=axis), "value", "L_robust(3)",
                 "label", labels),
    ]  # fmt: skip
    chart = alt.vconcat(*(panel.properties(width=520, height=150) for panel in panels))
    top = data.sort("value", descending=True).row(0, named=True)
    description = f"L_robust(3) is largest, {top['value']:.2f}, at step {top['step']}."
    return chart.properties(title=title, description=description), _beside(loss, data)


def _beside(loss: pl.DataFrame, data: pl.DataFrame) -> pl.DataFrame:
    return loss.select("label", "step", "loss").join(
        data.select("label", "step", "value"), on=["label", "step"], how="left"
    )
