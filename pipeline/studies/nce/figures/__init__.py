"""The figures of the NCE study (Liu 2024, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline.studies.nce.figures.common import Figure
from pipeline.studies.nce.figures.gauss import fig42, step_sizes
from pipeline.studies.nce.figures.geometry import annulus, fig41
from pipeline.studies.nce.figures.images import fig43
from pipeline.studies.nce.figures.landscape import kappa, landscape
from pipeline.studies.nce.figures.steps import bounds, newton, residuals, steps

FIGURES: dict[str, Callable[[Any], Figure]] = {
    "landscape": landscape,
    "kappa": kappa,
    "fig41": fig41,
    "annulus": annulus,
    "steps": steps,
    "bounds": bounds,
    "newton": newton,
    "residuals": residuals,
    "fig42": fig42,
    "step_sizes": step_sizes,
    "fig43": fig43,
}
