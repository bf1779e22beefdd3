"""What figures of this study share: maps of matrices of words."""

from __future__ import annotations

from typing import Any, NamedTuple

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure

SHOWN = 4  # topics in a map: their blocks can be seen word by word
# From blue over white to orange, which readers with any colour vision tell apart; white is 0.
BELOW, ZERO, ABOVE = charts.BLUE, "#FFFFFF", charts.VERMILLION


class Panel(NamedTuple):
    """A map of the matrix of the first seed of a cell."""

    title: str
    run: str
    cell: str
    matrix: str


def maps(
    matrices: pl.DataFrame, panels: list[Panel], title: str, words: int, axes: tuple[str, str], columns: int = 2
) -> Figure:  # fmt: skip
    """Return maps of the words of the first topics, side by side, each with a scale of colours of its own.

    ``axes`` names rows and columns. Panels without a matrix at this scale are left out.
    """
    drawn, data = [], []
    side = SHOWN * words
    for panel in panels:
        rows = matrices.filter(run=panel.run, cell=panel.cell, matrix=panel.matrix).filter(
            pl.col("row") <= side
        )
        if not rows.height:
            continue
        frame = rows.select(
            pl.lit(panel.title).alias("panel"),
            "row",
            pl.int_ranges(1, pl.col("values").list.len() + 1, dtype=pl.Int16).alias("column"),
            pl.col("values").alias("entry"),
        ).explode("column", "entry")
        frame = frame.filter(pl.col("column") <= side)
        data.append(frame)
        drawn.append(_map(frame, panel.title, axes))
    if not drawn:
        return charts.empty(title, "no model was trained at this scale")
    chart: Any = alt.concat(*drawn, columns=columns).resolve_scale(color="independent")
    note = f"Words of the first {SHOWN} of 10 topics, first seed; white is 0."
    return chart.properties(title=alt.Title(title, subtitle=note)), pl.concat(data)


def _map(frame: pl.DataFrame, title: str, axes: tuple[str, str]) -> Any:
    largest = float(frame.select(pl.col("entry").abs().max()).item())
    axis = alt.Axis(values=list(range(10, 10 * SHOWN + 1, 10)), labelAngle=0, ticks=False, domain=False)
    scale = alt.Scale(domain=[-largest, 0, largest], range=[BELOW, ZERO, ABOVE], interpolate="lab")
    return (
        alt.Chart(frame.select("row", "column", "entry"))
        .mark_rect()
        .encode(
            x=alt.X("column:O", title=axes[1], axis=axis),
            y=alt.Y("row:O", title=axes[0], axis=axis),
            color=alt.Color("entry:Q", title="entry", scale=scale, legend=alt.Legend(gradientLength=150)),
            tooltip=["row:O", "column:O", alt.Tooltip("entry:Q", format=".4f")],
        )
        .properties(width=200, height=200, title=alt.Title(title, fontSize=charts.SIZE))
    )
