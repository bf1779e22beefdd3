"""Which learning rate is chosen, by the same rule at every depth (ours; EXP-1)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.studies.depth.figures.common import DEPTHS, TASKS, Figure, empty, facet, layers, number


def learning_rates(context: Any) -> Figure:
    """Training loss against the learning rate, by task and depth."""
    name = "Training loss by learning rate"
    table = context.table("learning_rates").filter(experiment="exp-1")
    if not table.height:
        return empty(name, "no run was trained")
    data = table.select(
        pl.col("task").replace_strict(TASKS),
        *("run", "k", "l", "sequences", "layers", "lr", "n", "n_diverged", "training_loss", "chosen"),
        pl.col("layers").map_elements(layers, return_dtype=pl.String).alias("depth"),
    ).sort("task", "run", "lr")
    panels = facet(_panel(data), "task", columns=2)
    lost = int(data["n_diverged"].sum())
    title = alt.TitleParams(
        name,
        subtitle=[
            "Median over models at the end of training; rings: the chosen rate, by the same rule at every depth",
            f"{lost} models diverged; a rate at which half of them did has no mark"
            if lost
            else "No model diverged",
        ],
    )
    told = "; ".join(
        f"{row['task']}, {row['depth']}: {row['lr']:g} (loss {number(row['training_loss'])})"
        for row in data.filter("chosen").iter_rows(named=True)
    )
    return panels.properties(title=title, description=f"{name}. Chosen: {told}."), data


def _panel(data: pl.DataFrame) -> Any:
    depths = data.select("layers", "depth").unique().sort("layers")
    looks = [DEPTHS[depth][0] for depth in depths["layers"].to_list()]
    scale = alt.Scale(domain=depths["depth"].to_list(), range=looks)
    rates = data["lr"].unique().sort().to_list()
    base = alt.Chart(data).encode(
        x=alt.X(
            "lr:Q",
            title="learning rate (log scale)",
            scale=alt.Scale(type="log", nice=False, padding=16),
            axis=alt.Axis(values=rates, format="~g", grid=False),
        ),
        y=alt.Y(
            "training_loss:Q",
            title="training loss (nats)",
            scale=alt.Scale(zero=True),
            axis=alt.Axis(minExtent=30, tickCount=5),
        ),
        color=alt.Color("depth:N", title=None, scale=scale, legend=alt.Legend(orient="top")),
        detail=["run:N", "sequences:O"],
        tooltip=[
            "run:N",
            "sequences:O",
            "lr:Q",
            alt.Tooltip("training_loss:Q", format=".3f"),
            "n_diverged:Q",
        ],
    )
    rings = base.transform_filter("datum.chosen").mark_point(filled=False, size=170, strokeWidth=2)
    points = base.mark_point(filled=True, size=40, opacity=1)
    return alt.layer(base.mark_line(strokeWidth=1.5), points, rings).properties(width=240, height=140)
