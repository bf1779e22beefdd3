"""What figures of this study share."""

from __future__ import annotations

from pipeline.kit import charts
from pipeline.kit.plots import Kinds, Look

# Numbers of masked positions, from few to many
SHADES = {1: charts.ORANGE, 2: charts.SKY, 3: charts.BLUE, 4: charts.BLACK}


def shades(least: int = 1) -> Kinds:
    """Return the looks of k in a figure with up to four of them, from ``least`` on."""
    looks = {str(k): Look(colour) for k, colour in SHADES.items() if k >= least}
    return Kinds("masked", looks, title="masked positions k", columns=4)
