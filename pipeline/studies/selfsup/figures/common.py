"""What figures of this study share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.plots import Axis

DECADES = [10.0**e for e in range(-40, 41)]
GUIDE = [4, 3]  # dashes of the lines that a law would have


def spanning(
    field: str, title: str, values: Iterable[float | None], every: int = 1, room: float = 1.3, form: str = "~g"
) -> Axis:
    """Return a logarithmic axis that just spans ``values``, a tick every so many decades; where fewer than two decades
    are spanned, also at 2 and 5 times each."""
    known = [value for value in values if value is not None and value > 0 and math.isfinite(value)] or [1.0, 10.0]
    low, high = min(known) / room, max(known) * room
    between = (1, 2, 5) if high / low < 60 else (1,)
    ticks = [
        factor * tick for tick in DECADES[::every] for factor in between if low <= 1.01 * factor * tick <= high * 1.02
    ]
    return Axis(field, f"{title} (log)", log=True, domain=[low, high], values=ticks, form=form)


def guide(x: Axis, y: Axis, xs: Sequence[float], power: float, through: tuple[float, float]) -> plots.Layers:
    """Return a dashed grey line of this power of x through a point."""
    x0, y0 = through
    line = pl.DataFrame({x.field: [float(at) for at in xs], y.field: [y0 * (at / x0) ** power for at in xs]})
    return plots.lines(line, x, y, charts.GREY, strokeDash=GUIDE, strokeWidth=1.5)


def most(values: pl.Series) -> float:
    """Return the largest of ``values``; NaN if one is NaN, 0 if there is none."""
    return float(values.cast(pl.Float64).to_numpy().max()) if len(values) else 0.0
