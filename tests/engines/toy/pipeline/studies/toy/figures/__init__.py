"""Figures of the toy study."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl


def means(results: Any) -> tuple[alt.Chart, pl.DataFrame]:
    """One bar per replica."""
    data = results.table("means")
    return alt.Chart(data).mark_bar().encode(x="run:N", y="mean:Q", xOffset="replica:N"), data


FIGURES = {"means": means}
