"""What figures of this study share: names and marks of families, and log scales on which no error has a place."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl
from scipy import stats

from pipeline.kit import charts
from pipeline.studies.flipflop.names import FAMILIES

SETS = {"sparse": "sparse", "dense": "dense", "val": "training language", "mix": "mixture"}
# Every family has a mark of its own: no two share both colour and shape.
LOOKS = {
    "baseline": (charts.BLUE, "circle"), "middle": (charts.BLUE, "square"), "seeds": (charts.BLUE, "diamond"),
    "lstm": (charts.VERMILLION, "circle"), "data": (charts.GREEN, "circle"), "symbols": (charts.GREEN, "square"),
    "scale_data": (charts.SKY, "circle"), "scale_epochs": (charts.SKY, "square"),
    "scale_size": (charts.SKY, "diamond"), "position": (charts.ORANGE, "circle"),
    "activation": (charts.ORANGE, "square"), "sharpen": (charts.PURPLE, "circle"), "combo": (charts.PURPLE, "square"),
    "generative": (charts.BLACK, "circle"), "wd": (charts.GREY, "circle"), "optimiser": (charts.GREY, "square"),
    "dropout_attn": (charts.GREY, "diamond"), "dropout_ff": (charts.GREY, "triangle-up"),
    "dropout_emb": (charts.GREY, "triangle-down"),
}  # fmt: skip


def drawn(frame: pl.DataFrame, column: str = "error") -> pl.DataFrame:
    """Return ``frame`` with ``shown``, errors for a log axis: none at half an error among the reads of the set."""
    floor = 0.5 / pl.col("n_reads")
    return frame.with_columns(
        shown=pl.max_horizontal(pl.col(column), floor),
        label=pl.col("family").replace_strict(FAMILIES, default=pl.col("family"), return_dtype=pl.String),
        panel=pl.col("set").replace_strict(SETS, default=pl.col("set"), return_dtype=pl.String),
    )


def bounded(frame: pl.DataFrame, confidence: float) -> pl.DataFrame:
    """Return ``frame`` with ``lo`` and ``hi``, the exact binomial interval of the error behind ``n_err`` wrong answers
    among ``n_reads`` (Clopper and Pearson 1934): no observed error is not an error of 0."""
    wrong, reads = (frame[name].to_numpy().astype(float) for name in ("n_err", "n_reads"))
    tail = (1 - confidence) / 2
    with np.errstate(invalid="ignore"):
        lo = np.where(wrong == 0, 0.0, stats.beta.ppf(tail, wrong, reads - wrong + 1))
        hi = np.where(wrong == reads, 1.0, stats.beta.ppf(1 - tail, wrong + 1, reads - wrong))
    return frame.with_columns(lo=lo, hi=hi)


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
    scale = alt.Scale(
        domain=[FAMILIES[family] for family in subset], range=[LOOKS[family][1] for family in subset]
    )
    return alt.Shape("label:N", title=None, scale=scale, legend=_legend())


def coloured(families: list[str], **legend: Any) -> alt.Color:
    """Return the colours of families, some of which share one; beside `shaped` each has a mark of its own."""
    subset = [family for family in FAMILIES if family in families]
    scale = alt.Scale(
        domain=[FAMILIES[family] for family in subset], range=[LOOKS[family][0] for family in subset]
    )
    return alt.Color("label:N", title=None, scale=scale, legend=_legend(**legend))


def _legend(**more: Any) -> alt.Legend:
    return alt.Legend(orient="top", columns=3, symbolOpacity=1, **more)
