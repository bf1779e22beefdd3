"""EXP-5: learning from a random start (DEP-R2; the paper only says that it can be hard)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.depth.figures.common import JUDGED_SPLIT, shape_name


@plots.drawn("Learning from a random start")
def random_start(context: Results) -> Figure:
    """How many models learn from a random start, with SGD and with Adam (ours)."""
    known = context.table("runs").select("run", "init", "optimizer").unique()
    table = context.table("accuracy").filter(JUDGED_SPLIT, among="outputs").join(known, on="run")
    tasks = table.filter(experiment="exp-5")["task"].unique().to_list()
    reference = (pl.col("experiment") == "exp-1") & (pl.col("layers") == 2)
    table = table.filter(reference | (pl.col("experiment") == "exp-5"), pl.col("task").is_in(tasks))
    if not tasks:
        raise plots.NothingError("no run from a random start was trained")
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
    x, y = (
        plots.share("share", "share of models with at least 99 %"),
        Axis("where", None, "N", order=data["where"].to_list()),
    )
    base = alt.Chart(data).encode(y=y.at(alt.Y))
    bars = base.mark_bar(color=charts.SKY, height=18).encode(x=x.at(alt.X), tooltip=["run:N", "n_solved:Q", "models:Q"])
    texts = base.mark_text(align="left", dx=6, color=charts.INK).encode(x=alt.value(0), text="text:N")
    started = data.with_columns(random=pl.col("where").str.contains("random start")).group_by("random")
    counts = (
        started.agg(pl.sum("n_solved", "models"))
        .sort("random")
        .with_columns(start=pl.when("random").then(pl.lit("a random start")).otherwise(pl.lit("the construction")))
    )
    return plots.figure(
        [bars, texts],
        data,
        "Models that learn: " + plots.tell(counts, "{n_solved} of {models} from {start}", ", "),
        "Two layers from normal weights, beside the start from the construction, at their best rates",
        "Numbers: models with at least 99 % accuracy, and the median accuracy",
        told=plots.tell(data, "{where}: {text}") + ".",
        width=290,
        height=alt.Step(30),
    )
