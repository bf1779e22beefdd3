"""What figures of the toy study share."""

from __future__ import annotations

import altair as alt
import polars as pl

Figure = tuple[alt.Chart, pl.DataFrame]


def bars(data: pl.DataFrame, value: str) -> Figure:
    """Return one bar per run."""
    return alt.Chart(data).mark_bar().encode(x="run:N", y=f"{value}:Q"), data
