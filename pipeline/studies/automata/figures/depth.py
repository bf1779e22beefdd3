"""Accuracy by task and depth as heat maps beside the published ones, and training curves (Figures 3.5, 3.15, 3.16)."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.automata.figures.common import ACCURACY
from pipeline.studies.automata.names import shown
from schemas.automata.tasks import TASKS

CELL, ROW = 35, 18
NO_INPUT = 0  # stands for no layers: one label for each position
NAMES = f"datum.value == {NO_INPUT} ? 'none' : datum.label"
SHADES = alt.Scale(domain=[0, 25, 50, 75, 100], range=["#EEF4FA", "#C3DAEE", "#7FB2DA", "#2B74B3", "#06264D"])


def depth_maximum(context: Results) -> Figure:
    """Accuracy of the best model of each task and depth, in per cent; left of it that of the best label at each
    position, which reads no input; below the published maximum of 20 models at length 100; a dash is a published cell
    that is not legible."""
    return _figure(context, "acc_max", "3.15", "best model")


def depth_median(context: Results) -> Figure:
    """Median accuracy over the models of each task and depth, in per cent; left of it that of the best label at each
    position, which reads no input; below the published median of 20 models at length 100; a dash is a published cell
    that is not legible."""
    return _figure(context, "acc_median", "3.16", "median of the models")


def _figure(context: Results, column: str, figure: str, what: str) -> Figure:
    grid = context.table("depth_grid")
    if not grid.height:
        return empty(f"Accuracy by depth, {what}", "nothing was trained")
    ours = grid.select("task", "depth", (100 * pl.col(column)).alias("value"), "n").with_columns(where=pl.lit("here"))
    guessed = grid.select(
        "task",
        pl.lit(NO_INPUT, pl.Int8).alias("depth"),
        (100 * pl.col("constant")).alias("value"),
        pl.lit(1, pl.Int16).alias("n"),
        pl.lit("here").alias("where"),
    ).unique(maintain_order=True)
    printed = (
        context.table("published_cells")
        .filter(figure=figure)
        .select("task", "depth", "value", pl.lit(20, pl.Int16).alias("n"), pl.lit("published").alias("where"))
    )
    data = pl.concat([guessed, ours, printed]).with_columns(
        pl.col("task").map_elements(shown, return_dtype=pl.String).alias("name"),
        pl.when(pl.col("value").is_null())
        .then(pl.lit("–"))
        .otherwise(pl.col("value").round(1).cast(pl.String).str.replace(r"\.0$", ""))
        .alias("text"),
    )
    counts = sorted(set(ours["n"].to_list()))
    number = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    lengths = sorted(
        set(context.table("runs").filter(pl.col("experiment").is_in(["depth", "brittleness"]))["length"].to_list())
    )
    of = " or ".join(map(str, lengths))
    panels = [
        _panel(data.filter(where="here"), f"Here: {what} of {number}, length {of}"),
        _panel(data.filter(where="published"), f"Published (Figure {figure}): of 20, length 100"),
    ]
    chart = alt.vconcat(*panels, spacing=22).resolve_scale(color="shared")
    words = "; ".join(
        f"{row['name']} at {row['depth']} layers {row['text']}"
        for row in data.filter(pl.col("depth") > NO_INPUT, where="here").iter_rows(named=True)
    )
    title = f"Accuracy by depth, {what}"
    return chart.properties(title=title, description=f"{title}. Here, per cent: {words}."), data


def _panel(data: pl.DataFrame, title: str) -> Any:
    tasks = data["task"].to_list()
    order = [shown(task) for task in TASKS if task in tasks]
    depths = sorted(set(data["depth"].to_list()))
    base = alt.Chart(data).encode(
        x=alt.X("depth:O", title="layers", axis=alt.Axis(labelAngle=0, labelExpr=NAMES)),
        y=alt.Y("name:N", title=None, sort=order),
    )
    legend = alt.Legend(orient="bottom", gradientLength=240, values=[0, 25, 50, 75, 100])
    cells = (
        base.transform_filter("isValid(datum.value)")
        .mark_rect()
        .encode(
            color=alt.Color("value:Q", title="accuracy (%)", scale=SHADES, legend=legend),
            tooltip=["name:N", "depth:O", alt.Tooltip("value:Q", format=".1f"), "n:Q"],
        )
    )
    light = alt.condition("datum.value > 60", alt.value("white"), alt.value(charts.INK))
    words = base.mark_text(fontSize=10).encode(text="text:N", color=light)
    size = alt.TitleParams(title, fontSize=13, offset=6)
    return alt.layer(cells, words).properties(width=CELL * len(depths), height=ROW * len(order), title=size)


def training_curves(context: Results) -> Figure:
    """Accuracy on validation sequences, none of which is trained on, while models of C2 and S5 train: one line for each
    model."""
    curves = context.table("curves").drop_nulls("accuracy")
    if not curves.height:
        return empty("Training curves", "nothing was trained")
    data = curves.with_columns(
        pl.format("layers: {}", "depth").alias("layers"), pl.format("{}-{}", "run", "replica").alias("model")
    ).sort("task", "depth", "replica", "step")
    depths = data["layers"].unique(maintain_order=True).to_list()
    panels = []
    for (task,), rows in data.group_by("task", maintain_order=True):
        most = math.ceil(10 * float(rows["accuracy"].max())) / 10  # type: ignore[arg-type]
        lines = (
            alt.Chart(rows)
            .mark_line(strokeWidth=1.5, opacity=0.85)
            .encode(
                x=alt.X(
                    "step:Q",
                    title="steps of training",
                    scale=alt.Scale(zero=True),
                    axis=alt.Axis(tickCount=4, format=",d"),
                ),
                y=alt.Y("accuracy:Q", title=ACCURACY, scale=alt.Scale(domain=[0, most])),
                detail="model:N",
                color=alt.Color("layers:N", title=None, sort=depths, legend=alt.Legend(orient="top")),
                tooltip=["layers:N", "replica:Q", "step:Q", alt.Tooltip("accuracy:Q", format=".3f")],
            )
        )
        panels.append(lines.properties(width=250, height=180, title=alt.TitleParams(shown(str(task)), fontSize=13)))
    last = (
        data.filter(pl.col("step") == pl.col("step").max().over("run"))
        .group_by("task", "depth")
        .agg(pl.min("accuracy").alias("least"), pl.max("accuracy").alias("most"))
        .sort("task", "depth")
    )
    words = "; ".join(
        f"{shown(row['task'])}, {row['depth']} layers: {row['least']:.2f} to {row['most']:.2f}"
        for row in last.iter_rows(named=True)
    )
    chart = alt.hconcat(*panels, spacing=30).resolve_scale(color="shared")
    return chart.properties(title="Training curves", description=f"Accuracy at the end: {words}."), data
