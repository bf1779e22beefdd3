"""What figures of diffusions share: logarithmic axes, quartiles over trajectories, looks of laws of noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons
from pipeline.kit.comparisons import Comparison
from pipeline.kit.results import Results

# Laws of noise in the order of the chapter: shifts of one width, a wide one, two around z.
LOOKS = {
    "N(0, 1)": (charts.BLUE, [1, 0]),
    "N(1, 1)": (charts.GREEN, [1, 0]),
    "N(2, 1)": (charts.ORANGE, [1, 0]),
    "N(3, 1)": (charts.VERMILLION, [1, 0]),
    "N(0, 4)": (charts.PURPLE, [6, 3]),
    "N(z, 0.49)": (charts.BLACK, [2, 2]),
    "N(z, 1)": (charts.GREY, [2, 2]),
}
BAND = "Points: medians; bars: quartiles"
DECADES = [10.0**e for e in range(-9, 20)]


def log_axis(values: Iterable[float | None], every: int = 1, room: float = 1.3, **more: Any) -> dict[str, Any]:
    """Return scale and axis of a logarithmic channel that spans ``values``, a tick every so many decades; where fewer
    than two decades are spanned, also at 2 and 5 times each."""
    known = [value for value in values if value is not None and value > 0 and math.isfinite(value)] or [1.0, 10.0]
    low, high = min(known) / room, max(known) * room
    between = (1, 2, 5) if high / low < 60 else (1,)
    ticks = [factor * tick for tick in DECADES[::every] for factor in between if low <= factor * tick <= high]
    return {"scale": alt.Scale(type="log", domain=[low, high], nice=False), "axis": alt.Axis(values=ticks, **more)}


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


def noise_scales(names: Iterable[str]) -> dict[str, Any]:
    """Return colour and dash of laws of noise, the known ones in their order."""
    present = set(names)
    known = [name for name in LOOKS if name in present] + sorted(present - set(LOOKS))
    looks = [LOOKS.get(name, (charts.SKY, [1, 0])) for name in known]
    legend = alt.Legend(
        orient="bottom", columns=7, symbolType="stroke", symbolStrokeWidth=2.5, symbolSize=300, symbolOpacity=1
    )
    return {
        "color": alt.Color(
            "q_id:N", title="q", sort=known, legend=legend, scale=alt.Scale(domain=known, range=[c for c, _ in looks])
        ),
        "strokeDash": alt.StrokeDash(
            "q_id:N", title="q", sort=known, legend=legend, scale=alt.Scale(domain=known, range=[d for _, d in looks])
        ),
    }


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


def panel_title(text: str, *lines: str) -> alt.TitleParams:
    """Return the title of one panel."""
    more: dict[str, Any] = {"subtitle": list(lines)} if lines else {}
    return alt.TitleParams(text, fontSize=charts.SIZE, subtitleFontSize=12, offset=6, frame="group", **more)


def guide(xs: Sequence[float], power: float, through: tuple[float, float]) -> alt.Chart:
    """Return a dashed grey line of this power of x through a point; the panel's axes are its own."""
    x0, y0 = through
    data = pl.DataFrame({"x": list(xs), "y": [y0 * (x / x0) ** power for x in xs]})
    return alt.Chart(data).mark_line(color=charts.GREY, strokeDash=[4, 3], strokeWidth=1.5, clip=True)
