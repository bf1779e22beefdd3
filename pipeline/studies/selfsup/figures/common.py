"""What figures of this study share."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts

DECADES = [10.0**e for e in range(-40, 41)]


def panel_title(text: str, lines: list[str] | None = None) -> alt.TitleParams:
    """Return the title of one panel of a figure, aligned with its axes."""
    more: dict[str, Any] = {"subtitle": lines} if lines else {}
    return alt.TitleParams(text, fontSize=charts.SIZE, subtitleFontSize=12, offset=6, frame="group", **more)


def log_axis(low: float, high: float, every: int = 1) -> dict[str, Any]:
    """Return scale and axis of a logarithmic channel from ``low`` to ``high``, a tick every so many decades."""
    ticks = [tick for tick in DECADES[::every] if low / 1.01 <= tick <= high * 1.01]
    return {
        "scale": alt.Scale(type="log", domain=[low, high], nice=False, clamp=True),
        "axis": alt.Axis(values=ticks, format="~g" if low >= 1e-4 and high <= 1e5 else ".0e"),
    }


def most(values: pl.Series) -> float:
    """Return the largest of ``values``; NaN if one is NaN, 0 if there is none."""
    return float(values.cast(pl.Float64).to_numpy().max()) if len(values) else 0.0


def count(values: pl.Series) -> int:
    """Return the largest of whole numbers, 0 if there is none: how many models a point stands for."""
    return int(most(values))


def lines_legend(orient: Any = "bottom", **more: Any) -> alt.Legend:
    """Return a legend whose symbols are strong lines, however faint some of the lines are."""
    return alt.Legend(orient=orient, symbolType="stroke", symbolStrokeWidth=2.5, symbolOpacity=1, **more)
