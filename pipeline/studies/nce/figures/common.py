"""What figures of this study share."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.studies.nce.names import LOSS_NAMES

LOSS_COLOURS = {"NCE": charts.VERMILLION, "eNCE": charts.BLUE}
# As published where it says: NCE with GD black, with NGD yellow; eNCE with NGD blue.
METHOD_COLOURS = {"NCE-GD": charts.BLACK, "NCE-NGD": charts.ORANGE, "eNCE-GD": charts.GREY, "eNCE-NGD": charts.BLUE}
METHOD_DASHES = {"NCE-GD": [1, 0], "NCE-NGD": [1, 0], "eNCE-GD": [5, 3], "eNCE-NGD": [1, 0]}
CROSS = "M-.4,-.4L.4,.4M.4,-.4L-.4,.4"  # the symbol ×
DECADES = [10.0**e for e in range(-40, 41)]


def largest(values: pl.Series, otherwise: float = 1.0) -> float:
    """Return the largest of ``values``; ``otherwise`` if there is none."""
    return float(values.to_numpy().max()) if len(values) else otherwise


def loss_name() -> pl.Expr:
    """Return an expression of the losses as readers know them, as column ``name``."""
    return pl.col("loss").replace_strict(LOSS_NAMES).alias("name")


def method_name() -> pl.Expr:
    """Return an expression of the methods, ``eNCE-NGD`` and the like, as column ``method``."""
    name = pl.concat_str(
        pl.col("loss").replace_strict(LOSS_NAMES), pl.col("optimizer").str.to_uppercase(), separator="-"
    )
    return name.alias("method")


def loss_colour(legend: alt.Legend | None = None) -> alt.Color:
    """Return the colour channel that has one colour for each loss."""
    scale = alt.Scale(domain=list(LOSS_COLOURS), range=list(LOSS_COLOURS.values()))
    return alt.Color("name:N", title="loss", scale=scale, legend=legend or alt.Legend(orient="bottom"))


def log_axis(values: list[float], every: int = 1) -> dict[str, Any]:
    """Return scale and axis of a logarithmic channel that spans ``values``, a tick every so many decades."""
    low, high = min(values), max(values)
    ticks = [tick for tick in DECADES[::every] if low / 1.01 <= tick <= high * 1.01]
    return {
        "scale": alt.Scale(type="log", domain=[low, high], nice=False),
        "axis": alt.Axis(values=ticks, format="~s" if low >= 0.5 else "~e" if low < 1e-6 else "~g"),
    }


def lines_legend(orient: Any = "bottom", **more: Any) -> alt.Legend:
    """Return a legend whose symbols are strong lines, however faint some of the lines are."""
    return alt.Legend(orient=orient, symbolType="stroke", symbolStrokeWidth=2.5, symbolOpacity=1, **more)


def panel_title(text: str, lines: list[str] | None = None) -> alt.TitleParams:
    """Return the title of one panel of a figure, aligned with its axes."""
    more: dict[str, Any] = {"subtitle": lines} if lines else {}
    return alt.TitleParams(text, fontSize=charts.SIZE, subtitleFontSize=12, offset=6, frame="group", **more)
