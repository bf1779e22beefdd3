"""Models trained on prefixes: maps, their variation, and balance (Wen et al. 2023, appendix D.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.kit.streams import one_thread
from pipeline.studies.dyck.measures import rows
from pipeline.studies.dyck.measures.comparisons import arms, variation_ratios
from pipeline.studies.dyck.measures.model import measure
from pipeline.studies.dyck.names import PREFIX_MINIMAL, PREFIX_STANDARD, PREFIX_STANDARD_ALL

if TYPE_CHECKING:
    import polars as pl

    from pipeline.kit.inputs import Inputs


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of DYCK-E6 and E7."""
    datasets = {key: context.dataset(key) for key in context.datasets()}
    with one_thread():
        models = {run: measure(context, run, datasets) for run in context.runs()}
        parts: list[rows.Rows] = [rows.of_run(context, model) for model in models.values()]
        for run in (PREFIX_STANDARD, PREFIX_STANDARD_ALL):
            parts.append({"contrasts": variation_ratios(context, models, run, PREFIX_MINIMAL)})
        return rows.tables_of(context, [*parts, arms(context, models)])
