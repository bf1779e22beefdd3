"""The figures of the depth study (Chen and Zou 2024)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline.studies.depth.figures.accuracy import final_accuracy, nested, random_start
from pipeline.studies.depth.figures.common import Figure
from pipeline.studies.depth.figures.curves import contextual_settings, fig2, fig4, fig5, fig6, fig7
from pipeline.studies.depth.figures.examples import fig1
from pipeline.studies.depth.figures.maps import agreement, fig3, fig3b
from pipeline.studies.depth.figures.rates import learning_rates

FIGURES: dict[str, Callable[[Any], Figure]] = {
    "fig1": fig1,
    "fig2": fig2,
    "final_accuracy": final_accuracy,
    "learning_rates": learning_rates,
    "fig3": fig3,
    "fig3b": fig3b,
    "agreement": agreement,
    "fig4": fig4,
    "fig5": fig5,
    "fig6": fig6,
    "fig7": fig7,
    "contextual_settings": contextual_settings,
    "random_start": random_start,
    "nested": nested,
}
