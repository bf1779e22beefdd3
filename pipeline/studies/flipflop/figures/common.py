"""What figures of this study share: names and marks of families, and log scales on which no error has a place."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from pipeline.studies.flipflop.names import FAMILIES

SETS = {"sparse": "sparse", "dense": "dense", "val": "training language", "mix": "mixture"}
# Every family has a mark of its own: no two share both colour and shape.
LOOKS = {
    "baseline": Look(charts.BLUE, shape="circle"),
    "middle": Look(charts.BLUE, shape="square"),
    "seeds": Look(charts.BLUE, shape="diamond"),
    "lstm": Look(charts.VERMILLION, shape="circle"),
    "data": Look(charts.GREEN, shape="circle"),
    "symbols": Look(charts.GREEN, shape="square"),
    "scale_data": Look(charts.SKY, shape="circle"),
    "scale_epochs": Look(charts.SKY, shape="square"),
    "scale_size": Look(charts.SKY, shape="diamond"),
    "position": Look(charts.ORANGE, shape="circle"),
    "activation": Look(charts.ORANGE, shape="square"),
    "sharpen": Look(charts.PURPLE, shape="circle"),
    "combo": Look(charts.PURPLE, shape="square"),
    "generative": Look(charts.BLACK, shape="circle"),
    "wd": Look(charts.GREY, shape="circle"),
    "optimiser": Look(charts.GREY, shape="square"),
    "dropout_attn": Look(charts.GREY, shape="diamond"),
    "dropout_ff": Look(charts.GREY, shape="triangle-up"),
    "dropout_emb": Look(charts.GREY, shape="triangle-down"),
}
HOLLOW = "hollow: did not learn the training language"
LEARNED = {True: plots.SOLID, False: [4, 3]}  # dashes of lines


def drawn(frame: pl.DataFrame, column: str = "error") -> pl.DataFrame:
    """Return ``frame`` with ``shown``, errors for a log axis: none at half an error among the reads of the set."""
    floor = 0.5 / pl.col("n_reads")
    return frame.with_columns(
        shown=pl.max_horizontal(pl.col(column), floor),
        label=family(),
        panel=pl.col("set").replace_strict(SETS, default=pl.col("set"), return_dtype=pl.String),
    )


def family() -> pl.Expr:
    """Return the names of families."""
    return pl.col("family").replace_strict(FAMILIES, default=pl.col("family"), return_dtype=pl.String)


def with_learned(context: Results, frame: pl.DataFrame, table: str = "final") -> pl.DataFrame:
    """Return ``frame`` with ``learned``: whether the model ``replica`` of ``run`` learned what it was trained on."""
    known = context.table(table).select("run", "replica", "learned").unique()
    return frame.join(known, on=["run", "replica"], how="left", maintain_order="left")


def by_family(families: pl.Series) -> Kinds:
    """Return the marks of families, in the order of `names.FAMILIES`."""
    there = set(families)
    return Kinds("label", {FAMILIES[each]: LOOKS[each] for each in FAMILIES if each in there})


def by_learned(data: pl.DataFrame, x: Axis, y: Axis, by: Kinds | str, each: str, **mark: Any) -> plots.Layers:
    """Return a line for each of ``each``, dashed where the model did not learn what it was trained on."""
    parts = [(dash, data.filter(pl.col("learned").eq_missing(learned))) for learned, dash in LEARNED.items()]
    return [
        layer
        for dash, rows in parts
        if rows.height
        for layer in plots.lines(rows, x, y, by, each=each, strokeDash=dash, **mark)
    ]


def log_axis(field: str, title: str, least: float = 1e-5) -> Axis:
    """Return an axis of errors on a log scale."""
    ticks = [10.0**n for n in range(-6, 1) if 10.0**n >= least / 1.5]
    return Axis(field, f"{title} (log scale)", log=True, domain=[least, 1], values=ticks)
