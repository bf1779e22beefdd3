"""What the choices that the texts leave open do to the numbers (chapter sections 3 and 4)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.kit import intervals
from pipeline.kit.comparisons import Measurements
from pipeline.kit.intervals import Interval
from pipeline.kit.streams import one_thread
from pipeline.studies.dyck.measures import comparisons, rows
from pipeline.studies.dyck.measures.model import LENGTH_GENERALISATION, Model, measure
from pipeline.studies.dyck.names import MINIMAL, PROBE, PUBLISHED_VARIATION, READINGS

if TYPE_CHECKING:
    from pipeline.kit.inputs import Inputs


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the table ``readings`` and, of the runs that no other experiment measures, those on single runs."""
    datasets = {key: context.dataset(key) for key in context.datasets()}
    own = [run for run in context.runs() if context.run_header(run)["job"] not in context.entry.repeated]
    found = Measurements(context)
    compared = {run for runs in READINGS.values() for run in runs.values()}
    with one_thread():
        models = {run: measure(context, run, datasets) for run in context.runs() if run in {*own, *compared}}
        parts: list[rows.Rows] = [rows.of_run(context, models[run]) for run in own]
        for run in own:
            comparisons.of_run(found, models[run])
        return rows.tables_of(context, [*parts, {"readings": _readings(context, models)}], found)


def _readings(context: Inputs, models: dict[str, Model]) -> list[pl.DataFrame]:
    """Return, for every choice that has two readings among ``models``, the quantities that each reading gives."""
    quantities = []
    for choice, runs in READINGS.items():
        readings = {reading: models[run] for reading, run in runs.items() if run in models}
        if len(readings) < 2:
            continue
        recommended = next(iter(runs))
        for reading, model in readings.items():
            metadata = {"choice": choice, "reading": reading, "recommended": reading == recommended}
            metadata |= {"run": model.run, "steps": model.entry["steps"]}
            quantities += [metadata | row for row in _quantities(context, model, runs[recommended])]
    return [pl.DataFrame(quantities, infer_schema_length=None)] if quantities else []


def _quantities(context: Inputs, model: Model, recommended: str) -> Iterator[dict[str, Any]]:
    """Yield accuracy, of all models, and of those that learned their task stack score, variation and, with a minimal
    first layer, balance and accuracy at length."""
    confidence = context.settings.confidence
    kept, _ = model.kept(learned=True)
    for causal, start in itertools.product((True, False), (False, True)):
        if (maps := model.layer(PROBE, start, model.entry["layers"], causal)) is not None:
            name = f"variation on D4, start token {'included' if start else 'omitted'}"
            name += "" if causal else ", no causal mask"
            # Whether the start token counts is open for M4 alone (claim 7); without it M1 comes out as published.
            published = None if start and recommended != MINIMAL else PUBLISHED_VARIATION.get(recommended)
            found = comparisons.variation(maps, kept, confidence)
            yield _row(context, model, name, found) | {"published": published}
    columns = {
        "acc_close in distribution": model.in_distribution("acc_close"),
        "stack_argmax": model.last_stack("stack_argmax"),
    }
    if model.balance:
        columns |= {"balance violation": model.balance[0]["beta"].to_numpy()}
        for name in ("acc_close", "acc_thr80"):
            columns[f"{name} at length"] = model.column(LENGTH_GENERALISATION, name)
    for name, values in columns.items():
        if values is not None:
            counted = model.kept(learned=False)[0] if name.endswith("in distribution") else kept
            yield _row(context, model, name, intervals.mean(values[counted], confidence))


def _row(context: Inputs, model: Model, quantity: str, found: Interval) -> dict[str, Any]:
    return {
        "quantity": quantity,
        "value": found.value,
        "lo": found.lo,
        "hi": found.hi,
        "interval": found.kind,
        "confidence": context.settings.confidence,
        "n": found.n,
        "n_excluded": model.replicas - found.n,
        "published": None,
    }
