"""N2: gradients on circles around tau_*, that GD has to cross (Liu 2024, Lemma 49, Figure 4.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.models import log_ratio
from pipeline.models.log_ratio import NCE, Array


def analyse(context: Any) -> dict[str, pl.DataFrame]:
    """Table ``annulus``."""
    grid = context.entry.analysis.annulus
    return {"annulus": pl.DataFrame([row for mean in grid.means for row in _circles(mean, grid)])}


def circle(mean: float, radius: float, angles: int) -> tuple[Array, Array]:
    """Points (1, K, 2) at ``radius`` around tau_* as delta, and unit vectors (K, 2) from tau_* to them."""
    angle = np.linspace(0, 2 * np.pi, angles)
    unit = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    return log_ratio.mean_optimum(mean) + radius * unit, unit


def decay_limit(r: Array | float) -> Array:
    """Limit for large R of -8 log(max |<gradient, u>|)/R^2 on the circle of radius r R."""
    return 4 * ((0.5 - np.asarray(r)) / (1 - np.asarray(r))) ** 2


def _circles(mean: float, grid: Any) -> list[dict[str, float]]:
    problem = log_ratio.mean_problem(NCE, mean)
    rows = []
    for r in grid.radii:
        delta, unit = circle(mean, r * mean, grid.angles)
        inner = np.abs((problem.gradient(delta)[0] * unit).sum(-1))
        at = int(inner.argmax())
        rows.append(
            {
                "R": mean,
                "r": r,
                "max_ip": float(inner[at]),
                "kappa_min": float(-8 * np.log(inner[at]) / mean**2),
                "limit": float(decay_limit(r)),
                "b_over_R": float(delta[0, at, 0] / mean),
            }
        )
    return rows
