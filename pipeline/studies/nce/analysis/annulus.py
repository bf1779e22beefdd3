"""N2: gradients on circles around tau_*, that GD has to cross (Liu 2024, Lemma 49, Figure 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.languages.exponential_families import mean_optimum
from pipeline.studies.nce.exact import exponential_family as log_ratio
from pipeline.studies.nce.exact.exponential_family import NCE

if TYPE_CHECKING:
    from pipeline.studies.nce.params import Annulus


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return table ``annulus``."""
    grid = context.entry
    rows = [row for mean in grid.means for row in _circles(mean, grid)]
    return {"annulus": pl.DataFrame(rows)}


def _circles(mean: float, grid: Annulus) -> list[dict[str, float]]:
    problem, unit = log_ratio.mean_problem(NCE, mean), log_ratio.circle(grid.angles)
    rows = []
    for r in grid.radii:
        delta = mean_optimum(mean) + r * mean * unit
        inner = np.abs((problem.gradient(delta)[0] * unit).sum(-1))
        at = int(inner.argmax())
        rows.append(
            {
                "R": mean,
                "r": r,
                "max_ip": float(inner[at]),
                "kappa_min": float(-8 * np.log(inner[at]) / mean**2),
                "limit": float(log_ratio.decay_limit(r)),
                "b_over_R": float(delta[0, at, 0] / mean),
            }
        )
    return rows
