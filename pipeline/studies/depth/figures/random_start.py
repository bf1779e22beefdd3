"""EXP-5: learning from a random start (DEP-R2; the paper only says that it can be hard)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.depth.figures.common import JUDGED_SPLIT, shape_name


def random_start(context: Results) -> Figure:
    """How many models learn from a random start, with SGD and with Adam (ours)."""
    name = "Learning from a random start"
    known = context.table("runs").select("run", "init", "optimizer").unique()
    table = context.table("accuracy").filter(JUDGED_SPLIT, among="outputs").join(known, on="run")
    tasks = table.filter(experiment="exp-5")["task"].unique().to_list()
    reference = (pl.col("experiment") == "exp-1") & (pl.col("layers") == 2)
    table = table.filter(reference | (pl.col("experiment") == "exp-5"), pl.col("task").is_in(tasks))
    if not tasks:
        return empty(name, "no run from a random start was trained")
    models = pl.col("n") + pl.col("n_diverged")
    where = pl.struct("task", "heads", "init", "optimizer").map_elements(shape_name, return_dtype=pl.String)
    text = pl.format("{} of {}; median {}", "n_solved", models, pl.col("value").round(3))
    data = (
        table.select(
            *("run", "task", "experiment", "k", "l", "lr", "n_solved", "value"),
            models.alias("models"),
            (pl.col("n_solved") / models).alias("share"),
            where.alias("where"),
            text.alias("text"),
        )
        .sort("task", "experiment", "run")
        .unique("where", keep="first", maintain_order=True)
    )
    base = alt.Chart(data).encode(
        y=alt.Y("where:N", title=None, sort=data["where"].to_list(), axis=alt.Axis(labelLimit=340, ticks=False))
    )
    x = alt.X(
        "share:Q",
        title="share of models with at least 99%",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(values=charts.UNIT),
    )
    bars = base.mark_bar(color=charts.SKY, height=18).encode(x=x, tooltip=["run:N", "n_solved:Q", "models:Q"])
    texts = base.mark_text(align="left", dx=6, color=charts.INK).encode(x=alt.value(0), text="text:N")
    title = alt.TitleParams(
        name,
        subtitle=[
            "Two layers from normal weights, beside the start from the construction, at their best rates",
            "Numbers: models with at least 99% accuracy, and the median accuracy",
        ],
    )
    summary = "; ".join(f"{where}: {text}" for where, text in data.select("where", "text").iter_rows())
    chart = alt.layer(bars, texts).properties(width=290, height=alt.Step(30))
    return chart.properties(title=title, description=f"{name}. {summary}."), data
