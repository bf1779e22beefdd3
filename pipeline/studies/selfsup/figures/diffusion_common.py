"""What figures of diffusions share: quartiles over trajectories, looks of laws of noise, numbers with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.comparisons import Comparison
from pipeline.kit.plots import Kinds, Look
from pipeline.kit.results import Results

# Laws of noise in the order of the chapter: shifts of one width, a wide one, two around z.
LOOKS = {
    "N(0, 1)": Look(charts.BLUE),
    "N(1, 1)": Look(charts.GREEN),
    "N(2, 1)": Look(charts.ORANGE),
    "N(3, 1)": Look(charts.VERMILLION),
    "N(0, 4)": Look(charts.PURPLE, plots.DASHED),
    "N(z, 0.49)": Look(charts.BLACK, plots.DOTTED),
    "N(z, 1)": Look(charts.GREY, plots.DOTTED),
}
QUARTILES = ("low", "high")
BAND = "Points: medians; bars: quartiles"


def quartiles(frame: pl.DataFrame, by: Sequence[str], columns: Sequence[str]) -> pl.DataFrame:
    """Return median and quartiles of columns over trajectories, long: columns ``quantity``, ``value``, ``low`` and
    ``high`` beside those of ``by``, and ``n``."""
    parts = [
        frame.group_by(*by)
        .agg(
            pl.lit(column).alias("quantity"),
            pl.col(column).median().alias("value"),
            pl.col(column).quantile(0.25, "linear").alias("low"),
            pl.col(column).quantile(0.75, "linear").alias("high"),
            pl.col(column).count().alias("n"),
        )
        .sort(*by)
        for column in columns
    ]
    return pl.concat(parts)


def noises(names: Iterable[str]) -> Kinds:
    """Return the looks of laws of noise, the known ones in their order."""
    present = set(names)
    others = {name: Look(charts.SKY) for name in sorted(present - set(LOOKS))}
    return Kinds("q_id", LOOKS | others, title="q", columns=7).among(present)


def value(context: Results, comparison: Comparison) -> dict[str, Any]:
    """Return the row of a comparison."""
    return comparisons.read(context, [comparison]).row(0, named=True)


def shown(number: float | None, digits: int = 3) -> str:
    """Return a number with so many significant digits, an en dash where there is none.

    >>> shown(0.012345), shown(40.84), shown(1234567.0)
    ('0.0123', '40.8', '1.2 × 10^6')
    """
    if number is None or not math.isfinite(number):
        return "–"
    if number and 1e-6 <= abs(number) < 1e-4:  # which the general format would write with an exponent
        return f"{number:.{digits - 1 - math.floor(math.log10(abs(number)))}f}".replace("-", "−")
    if number and not 1e-6 <= abs(number) < 1e5:
        exponent = math.floor(math.log10(abs(number)))
        return f"{number / 10.0**exponent:.{digits - 2}f} × 10^{exponent}".replace("-", "−")
    return f"{number:.{digits}g}".replace("-", "−")


def with_interval(row: dict[str, Any]) -> str:
    """Return a comparison's value with its interval, as titles say it."""
    if row["lo"] is None:
        return shown(row["value"])
    return f"{shown(row['value'])} ({shown(row['lo'])} to {shown(row['hi'])})"
