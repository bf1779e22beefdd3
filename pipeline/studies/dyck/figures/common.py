"""What figures of this study share."""

from __future__ import annotations

import altair as alt
import polars as pl

UNIT = [0, 0.2, 0.4, 0.6, 0.8, 1]  # ticks of shares

Figure = tuple[alt.TopLevelMixin, pl.DataFrame]


def log_domain(
    data: pl.DataFrame, low: str, highs: list[str], least: tuple[float, float]
) -> tuple[float, float]:
    """Ends of a logarithmic axis that ``least`` and every value fit on, with its interval down to a hundredth of it."""
    value = pl.col("value")
    low_end = pl.max_horizontal(pl.coalesce(low, value), value / 100) / 1.2
    high_end = pl.max_horizontal(value, *highs) * 1.2
    ends = data.filter(value > 0).select(low=low_end, high=high_end)
    return min([least[0], *ends["low"]]), max([least[1], *ends["high"]])


def number(value: float | None, digits: int = 2) -> str:
    """``value`` as figures print it; an en dash where it is not defined."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")
