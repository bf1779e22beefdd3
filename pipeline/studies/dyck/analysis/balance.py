"""Balance violation against length generalisation, with and without the contrastive term (Wen et al. 2023, 4.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.kit.comparisons import Measurements
from pipeline.kit.streams import one_thread
from pipeline.studies.dyck.measures import comparisons, rows
from pipeline.studies.dyck.measures.model import measure
from pipeline.studies.dyck.names import COMPLETE

if TYPE_CHECKING:
    import polars as pl

    from pipeline.kit.inputs import Inputs


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of DYCK-E4."""
    datasets = {key: context.dataset(key) for key in context.datasets()}
    found = Measurements(context)
    with one_thread():
        models = {run: measure(context, run, datasets) for run in context.runs()}
        comparisons.arms(found, models, COMPLETE, context.settings.confidence)
        parts: list[rows.Rows] = [rows.of_run(context, model) for model in models.values()]
        parts += [{"fig3": comparisons.points(model)} for model in models.values()]
        return rows.tables_of(context, parts, found)
