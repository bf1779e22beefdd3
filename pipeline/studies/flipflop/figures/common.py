"""What figures of this study share: names and colours of families, and log scales on which no error has a place."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.studies.flipflop.names import FAMILIES

SETS = {"sparse": "sparse", "dense": "dense", "val": "training language", "mix": "mixture"}
COLOURS = {
    "baseline": charts.BLUE, "lstm": charts.VERMILLION, "data": charts.GREEN, "scale_data": charts.SKY,
    "sharpen": charts.PURPLE, "position": charts.ORANGE, "generative": charts.BLACK,
}  # fmt: skip


SHAPES = (
    "circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "triangle-left", "triangle-right",
)  # fmt: skip


def drawn(frame: pl.DataFrame, column: str = "error") -> pl.DataFrame:
    """Return ``frame`` with ``shown``, errors for a log axis: none at half an error among the reads of the set."""
    floor = 0.5 / pl.col("n_reads")
    return frame.with_columns(
        shown=pl.max_horizontal(pl.col(column), floor),
        label=pl.col("family").replace_strict(FAMILIES, default=pl.col("family"), return_dtype=pl.String),
        panel=pl.col("set").replace_strict(SETS, default=pl.col("set"), return_dtype=pl.String),
    )


def log_axis(title: str, least: float = 1e-5) -> dict[str, Any]:
    """Return the arguments of an axis of errors on a log scale."""
    ticks = [10.0**n for n in range(-6, 1) if 10.0**n >= least / 1.5]
    return {
        "title": title,
        "scale": alt.Scale(type="log", domain=[least, 1], clamp=True),
        "axis": alt.Axis(values=ticks, format="~g"),
    }


def shaped(families: list[str]) -> alt.Shape:
    """Return the marks of families, in the order of their colours, so that both have one legend."""
    domain = [FAMILIES[family] for family in FAMILIES if family in families]
    marks = [SHAPES[place % len(SHAPES)] for place in range(len(domain))]
    return alt.Shape(
        "label:N", title=None, scale=alt.Scale(domain=domain, range=marks),
        legend=alt.Legend(orient="top", columns=3, symbolOpacity=1),
    )  # fmt: skip


def coloured(families: list[str], **legend: Any) -> alt.Color:
    """Return the colours of families, those without one of their own in grey."""
    there = [family for family in FAMILIES if family in families]
    domain = [FAMILIES[family] for family in there]
    colours = [COLOURS.get(family, charts.GREY) for family in there]
    return alt.Color(
        "label:N", title=None, scale=alt.Scale(domain=domain, range=colours),
        legend=alt.Legend(orient="top", columns=3, symbolOpacity=1, **legend),
    )  # fmt: skip
