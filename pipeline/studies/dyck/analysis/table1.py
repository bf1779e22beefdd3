"""Table 1: variation by layer in four languages, trained on prefixes and on complete strings (DYCK-E8, E9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.streams import one_thread
from pipeline.studies.dyck.comparisons import BY_LAYER, FIRST_LAYER, LAYER_RATIO
from pipeline.studies.dyck.measures import comparisons, rows
from pipeline.studies.dyck.measures.model import Model, measure
from pipeline.studies.dyck.names import TABLE_1, TABLE_1_COMPLETE, TABLE_1_PROBE, THREE_LAYERS

if TYPE_CHECKING:
    from pipeline.kit.inputs import Inputs


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of DYCK-E8 and E9."""
    datasets = {key: context.dataset(key) for key in context.datasets()}
    cells = {run: cell for cell, run in TABLE_1.items()}
    found = Measurements(context)
    parts: list[rows.Rows] = []
    with one_thread():
        for run in context.runs():
            model = measure(context, run, datasets)
            parts.append(rows.of_run(context, model))
            comparisons.of_run(found, model)
            if run in {*cells, *TABLE_1_COMPLETE.values()}:
                parts.append({"variation_table1": rows.of_table1(context, model)})
            if run in cells:
                _by_layer(found, cells[run], model, context.settings.confidence)
        return rows.tables_of(context, parts, found)


def _by_layer(found: Measurements, cell: tuple[int, int, int], model: Model, confidence: float) -> None:
    """Measure a row of Table 1: the variation of each layer (claim 13), that of the third over that of the second
    (claims 13 and 14), and how far attention of the first is from uniform (DYCK-E9)."""
    layers = range(1, model.entry["layers"] + 1)
    maps = {layer: model.layer(TABLE_1_PROBE, True, layer) for layer in layers}
    by_layer = {layer: each for layer, each in maps.items() if each is not None}
    for layer, each in by_layer.items():
        (kept,), excluded, reason = comparisons.counting(BY_LAYER[cell, layer], model)
        found.put(BY_LAYER[cell, layer], comparisons.variation(each, kept, confidence), excluded, reason)
    if cell in LAYER_RATIO and by_layer:
        (kept,), excluded, reason = comparisons.counting(LAYER_RATIO[cell], model)
        ratio = comparisons.layer_ratio(by_layer[3], by_layer[2], kept, confidence)
        found.put(LAYER_RATIO[cell], ratio, excluded, reason)
    if model.run == THREE_LAYERS and model.stack:
        divergence = model.stack[0].filter(head=0)["kl_uniform"].to_numpy()
        comparisons.add(found, FIRST_LAYER, (model, divergence))
