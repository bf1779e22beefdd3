"""What figures of this study share."""

from __future__ import annotations

import altair as alt
import polars as pl

UNIT = [0, 0.2, 0.4, 0.6, 0.8, 1]  # ticks of shares

Figure = tuple[alt.TopLevelMixin, pl.DataFrame]


def number(value: float | None, digits: int = 2) -> str:
    """``value`` as figures print it; an en dash where it is not defined."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")
