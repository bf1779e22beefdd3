"""The figures of the Dyck study (Wen et al. 2023)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline.studies.dyck.figures.balance import fig3, fig10
from pipeline.studies.dyck.figures.common import Figure
from pipeline.studies.dyck.figures.copying import fig4, fig5, fig6
from pipeline.studies.dyck.figures.importance import head_importance
from pipeline.studies.dyck.figures.maps import fig1, fig2, fig7, fig8, fig9, fig13
from pipeline.studies.dyck.figures.readings import prefix_variation, training_length
from pipeline.studies.dyck.figures.stack import stack_score
from pipeline.studies.dyck.figures.theory import broken_solvers, exact_solvers, pruning_error, pruning_maps
from pipeline.studies.dyck.figures.variation import table1, variation

FIGURES: dict[str, Callable[[Any], Figure]] = {
    "fig1": fig1,
    "stack_score": stack_score,
    "fig2": fig2,
    "variation": variation,
    "fig3": fig3,
    "table1": table1,
    "training_length": training_length,
    "fig7": fig7,
    "fig8": fig8,
    "fig9": fig9,
    "prefix_variation": prefix_variation,
    "fig10": fig10,
    "fig13": fig13,
    "exact_solvers": exact_solvers,
    "broken_solvers": broken_solvers,
    "pruning_error": pruning_error,
    "pruning_maps": pruning_maps,
    "fig4": fig4,
    "fig5": fig5,
    "fig6": fig6,
    "head_importance": head_importance,
}
