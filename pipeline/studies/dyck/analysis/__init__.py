"""From trained models to result tables (Wen et al. 2023, section 4; chapter section 3.4)."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit.streams import one_thread
from pipeline.store import tables
from pipeline.studies.dyck.analysis import contrasts, copying, importance, per_run, pruning, readings
from pipeline.studies.dyck.analysis.measure import measure
from schemas.dyck.tables import SCHEMAS


def analyse(context: Any) -> dict[str, pl.DataFrame]:
    """Every table of the study (`schemas.dyck.tables.SCHEMAS`).

    Runs and datasets that params.yaml does not list leave no rows; a run is measured on the evaluation sets
    and probes of its own language. Replicas that diverged, or whose accuracy on data like their training data
    is below ``analysis.min_accuracy``, are left out of the variation and counted.

    Raises SandglassError if a run was trained on a dataset that the study does not list.
    """
    datasets = {key: context.dataset(key) for key in context.entry.datasets}
    rows: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    models = {}
    with one_thread():
        for run in context.runs():
            models[run] = model = measure(context, run, datasets)
            rows["runs"].append(per_run.runs(context, model))
            rows["accuracy"] += model.accuracy
            rows["stack_score"] += model.stack
            rows["attention"] += per_run.attention(context, model)
            rows["variation"] += [per_run.variation(context, model, maps) for maps in model.maps]
            rows["variation_table1"] += per_run.table1(context, model)
            rows["balance"] += model.balance
            rows["balance_detail"] += model.balance_detail
            rows["fig3"] += per_run.fig3(model)
            for found in (
                copying.analyse(context, model, datasets),
                importance.analyse(context, model, datasets),
            ):
                for name, frames in found.items():
                    rows[name] += frames
        rows["readings"] = readings.readings(context, models)
        rows["contrasts"] += contrasts.contrasts(context, models)
        rows |= pruning.analyse(context, datasets)
    stamp = {"scale": context.scale, "params_hash": context.params_hash}
    return {name: tables.conform(frames, SCHEMAS[name], **stamp) for name, frames in rows.items()}
