"""What figures of this study share: names and marks of families, and log scales on which no error has a place."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.results import Results
from pipeline.studies.flipflop.names import FAMILIES

SETS = {"sparse": "sparse", "dense": "dense", "val": "training language", "mix": "mixture"}
# Every family has a mark of its own: no two share both colour and shape.
LOOKS = {
    "baseline": (charts.BLUE, "circle"),
    "middle": (charts.BLUE, "square"),
    "seeds": (charts.BLUE, "diamond"),
    "lstm": (charts.VERMILLION, "circle"),
    "data": (charts.GREEN, "circle"),
    "symbols": (charts.GREEN, "square"),
    "scale_data": (charts.SKY, "circle"),
    "scale_epochs": (charts.SKY, "square"),
    "scale_size": (charts.SKY, "diamond"),
    "position": (charts.ORANGE, "circle"),
    "activation": (charts.ORANGE, "square"),
    "sharpen": (charts.PURPLE, "circle"),
    "combo": (charts.PURPLE, "square"),
    "generative": (charts.BLACK, "circle"),
    "wd": (charts.GREY, "circle"),
    "optimiser": (charts.GREY, "square"),
    "dropout_attn": (charts.GREY, "diamond"),
    "dropout_ff": (charts.GREY, "triangle-up"),
    "dropout_emb": (charts.GREY, "triangle-down"),
}


def drawn(frame: pl.DataFrame, column: str = "error") -> pl.DataFrame:
    """Return ``frame`` with ``shown``, errors for a log axis: none at half an error among the reads of the set."""
    floor = 0.5 / pl.col("n_reads")
    return frame.with_columns(
        shown=pl.max_horizontal(pl.col(column), floor),
        label=pl.col("family").replace_strict(FAMILIES, default=pl.col("family"), return_dtype=pl.String),
        panel=pl.col("set").replace_strict(SETS, default=pl.col("set"), return_dtype=pl.String),
    )


def with_learned(context: Results, frame: pl.DataFrame, table: str = "final") -> pl.DataFrame:
    """Return ``frame`` with ``learned``: whether the model ``replica`` of ``run`` learned what it was trained on."""
    known = context.table(table).select("run", "replica", "learned").unique()
    return frame.join(known, on=["run", "replica"], how="left", maintain_order="left")


def points(base: alt.Chart, **look: Any) -> Any:
    """Return a point for each model: full where it learned what it was trained on, else hollow."""
    return alt.layer(
        base.transform_filter("datum.learned").mark_point(filled=True, **look),
        base.transform_filter("!datum.learned").mark_point(filled=False, fill="white", strokeWidth=1.5, **look),
    )


def dashed() -> Any:
    """Return lines that are dashed where the model did not learn what it was trained on."""
    return alt.condition("datum.learned", alt.value([1, 0]), alt.value([4, 3]))


def log_axis(title: str, least: float = 1e-5) -> dict[str, Any]:
    """Return the arguments of an axis of errors on a log scale."""
    ticks = [10.0**n for n in range(-6, 1) if 10.0**n >= least / 1.5]
    return {
        "title": title,
        "scale": alt.Scale(type="log", domain=[least, 1], clamp=True),
        "axis": alt.Axis(values=ticks, format="~g"),
    }


def shaped(families: list[str]) -> alt.Shape:
    """Return the shapes of families, in the order of their colours, so that both have one legend."""
    subset = [family for family in FAMILIES if family in families]
    scale = alt.Scale(domain=[FAMILIES[family] for family in subset], range=[LOOKS[family][1] for family in subset])
    return alt.Shape("label:N", title=None, scale=scale, legend=_legend())


def coloured(families: list[str], **legend: Any) -> alt.Color:
    """Return the colours of families, some of which share one; beside `shaped` each has a mark of its own."""
    subset = [family for family in FAMILIES if family in families]
    scale = alt.Scale(domain=[FAMILIES[family] for family in subset], range=[LOOKS[family][0] for family in subset])
    return alt.Color("label:N", title=None, scale=scale, legend=_legend(**legend))


def _legend(**more: Any) -> alt.Legend:
    return alt.Legend(orient="top", columns=3, symbolOpacity=1, **more)
