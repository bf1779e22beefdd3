"""Accuracy by task and depth as heat maps beside the published ones, and training curves (Figures 3.5, 3.15, 3.16)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.automata.figures.common import ACCURACY, UNTRAINED, in_words, shades
from pipeline.studies.automata.names import shown
from schemas.automata.tasks import TASKS

CELL, ROW = 35, 18
NO_INPUT = 0  # stands for no layers: one label for each position
SOLVED = 99  # per cent of tokens
NAMES = f"datum.value == {NO_INPUT} ? 'none' : datum.label"


@plots.drawn("Accuracy by depth, best model")
def depth_maximum(context: Results) -> Figure:
    """Accuracy of the best model of each task and depth, in per cent; left of it that of the best label at each
    position, which reads no input; below the published maximum of 20 models at length 100; a dash is a published cell
    that is not legible."""
    return _figure(context, "acc_max", "3.15", "best model")


@plots.drawn("Accuracy by depth, median of the models")
def depth_median(context: Results) -> Figure:
    """Median accuracy over the models of each task and depth, in per cent; left of it that of the best label at each
    position, which reads no input; below the published median of 20 models at length 100; a dash is a published cell
    that is not legible."""
    return _figure(context, "acc_median", "3.16", "median of the models")


def _figure(context: Results, column: str, figure: str, what: str) -> Figure:
    grid = plots.some(context.table("depth_grid"), UNTRAINED)
    keep = ("task", "depth", "value", "n", "where")
    ours = grid.with_columns(value=100 * pl.col(column), where=pl.lit("here")).select(keep)
    guessed = grid.select(
        "task",
        pl.lit(NO_INPUT, pl.Int8).alias("depth"),
        (100 * pl.col("constant")).alias("value"),
        pl.lit(1, pl.Int16).alias("n"),
        pl.lit("here").alias("where"),
    ).unique(maintain_order=True)
    printed = context.table("published_cells").filter(figure=figure)
    printed = printed.with_columns(n=pl.lit(20, pl.Int16), where=pl.lit("published")).select(keep)
    digits = pl.col("value").round(1).cast(pl.String).str.replace(r"\.0$", "")
    data = pl.concat([guessed, ours, printed]).with_columns(
        in_words(pl.col("task")).alias("name"), digits.fill_null("–").alias("text")
    )
    trained = context.table("runs").filter(pl.col("experiment").is_in(["depth", "brittleness"]))
    lengths = " or ".join(map(str, sorted(set(trained["length"]))))
    n = plots.count(ours["n"], "model")
    panels = [
        _panel(data.filter(where="here"), f"Here: {what} of {n}, length {lengths}"),
        _panel(data.filter(where="published"), f"Published (Figure {figure}): of 20 models, length 100"),
    ]
    deepest = data.filter(pl.col("depth") > NO_INPUT, where="here").sort("task", "depth")
    ends = deepest.group_by("name", maintain_order=True).last()
    solved, least = ends.filter(pl.col("value") >= SOLVED), ends.sort("value").head(1)
    names = plots.tell(solved, "{name}", ", ") or "none"
    return plots.figure(
        plots.grid(panels, 1),
        data,
        f"With the most layers tried, {plots.count(ends['depth'], 'layer')}, {solved.height} of {ends.height} automata "
        f"reach {SOLVED} % ({names}); least: {plots.tell(least, '{name} with {text} %')}",
        f"{what.capitalize()}, per cent of tokens; none: the best label at each position, without the input. Lengths "
        "of inputs differ here and there, so that depths compare within a map alone",
        told=f"Here, per cent: {plots.tell(deepest, '{name} at {depth} layers {text}')}.",
    )


def _panel(data: pl.DataFrame, title: str) -> plots.Panel:
    order = [shown(task) for task in TASKS if task in set(data["task"])]
    x, y = Axis("depth", "layers", "O", more={"labelExpr": NAMES}), Axis("name", None, "N", order=order)
    marks = plots.cells(data, x, y, "value", "accuracy (%)", text="text", tips=["n"], **shades())
    return plots.panel(marks, title, CELL * data["depth"].n_unique(), ROW * len(order))


@plots.drawn("Training curves")
def training_curves(context: Results) -> Figure:
    """Accuracy on validation sequences, none of which is trained on, while models of C2 and S5 train: one line for each
    model."""
    curves = plots.some(context.table("curves").drop_nulls("accuracy"), UNTRAINED)
    data = curves.with_columns(
        pl.format("layers: {}", "depth").alias("layers"), pl.format("{}-{}", "run", "replica").alias("model")
    ).sort("task", "depth", "replica", "step")
    by = plots.kinds(data["layers"].unique(maintain_order=True), "layers", dashes=False)
    x, y = plots.steps(), plots.share("accuracy", ACCURACY)
    tips = ["replica"]
    panels = [
        plots.panel(plots.lines(rows, x, y, by, each="model", strokeWidth=1.5, tips=tips), shown(task), 250, 180)
        for task, rows in plots.split(data, "task")
    ]
    last = data.filter(pl.col("step") == pl.col("step").max().over("run")).group_by("task", "depth")
    ends = last.agg(least=pl.min("accuracy"), most=pl.max("accuracy"), n=pl.len()).sort("task", "depth")
    plural = pl.when(pl.col("depth") == 1).then(pl.lit("")).otherwise(pl.lit("s"))
    ends = ends.with_columns(name=in_words(pl.col("task")), layers=pl.format("{} layer{}", "depth", plural))
    words = plots.tell(ends, "{name}, {layers}: {least:.2f} to {most:.2f}")
    return plots.figure(
        plots.grid(panels),
        data,
        f"At the end of training models are right on {words}",
        f"A line is one model, {plots.count(ends['n'], 'model')} of each depth",
        told=f"Accuracy at the end. {words}.",
    )
