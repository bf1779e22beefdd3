"""The training curve of one model as a small drawing: median loss over replicas, and the range of all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

WIDTH, HEIGHT = 360.0, 120.0  # pixels


@dataclass(frozen=True)
class Curve:
    """``line`` and ``band`` are points of an SVG of `WIDTH` by `HEIGHT`; the rest is what stands at its edges."""

    line: str
    band: str
    first: int
    last: int
    low: float
    high: float
    replicas: int

    @property
    def words(self) -> str:
        """Return what the drawing shows, for those who do not see it."""
        return (
            f"Training loss against steps {self.first:,} to {self.last:,}, between {self.low:.3g} and {self.high:.3g} "
            f"on a logarithmic scale: median and range of {self.replicas} replicas"
        )


def draw(curves: pl.DataFrame) -> Curve | None:
    """Return the drawing of the rows of one model in a table of `schemas.curves.Curves`.

    None where fewer than two steps have a positive loss.
    """
    loss = pl.col("loss")
    steps = (
        curves.filter(loss.is_finite() & (loss > 0))
        .group_by("step")
        .agg(loss.min().alias("low"), loss.median().alias("middle"), loss.max().alias("high"))
        .sort("step")
    )
    if steps.height < 2:
        return None
    first, last = int(steps["step"][0]), int(steps["step"][-1])
    low, high = float(steps["low"].min()), float(steps["high"].max())  # type: ignore[arg-type]
    span = math.log(high / low) or 1.0

    def points(column: str) -> list[str]:
        return [
            f"{WIDTH * (step - first) / (last - first):.1f},{HEIGHT * math.log(high / value) / span:.1f}"
            for step, value in steps.select("step", column).iter_rows()
        ]

    band = " ".join([*points("high"), *reversed(points("low"))])
    return Curve(" ".join(points("middle")), band, first, last, low, high, curves["replica"].n_unique())
