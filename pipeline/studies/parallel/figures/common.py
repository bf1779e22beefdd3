"""What figures of this study share."""

from __future__ import annotations

from typing import Any

import altair as alt

from pipeline.kit import charts

# Numbers of masked positions, from few to many
SHADES = {1: charts.ORANGE, 2: charts.SKY, 3: charts.BLUE, 4: charts.BLACK}


def shades(least: int = 1) -> alt.Color:
    """Return the colours of k in a figure with up to four of them, from ``least`` on."""
    shown = {str(k): colour for k, colour in SHADES.items() if k >= least}
    scale = alt.Scale(domain=list(shown), range=list(shown.values()))
    legend = alt.Legend(orient="bottom", symbolOpacity=1)
    return alt.Color("masked:N", title="masked positions k", scale=scale, legend=legend)


def logarithmic(values: list[float], title: str, **axis: Any) -> dict[str, Any]:
    """Return title, scale and axis of a logarithmic channel that spans ``values``, a tick for each decade."""
    low, high = min(values), max(values)
    ticks = [10.0**e for e in range(-6, 16) if low / 2 <= 10.0**e <= high * 2]
    scale = alt.Scale(type="log", domain=[low / 1.3, high * 1.3], nice=False)
    return {"title": title, "scale": scale, "axis": alt.Axis(values=ticks, **({"format": "~s"} | axis))}
