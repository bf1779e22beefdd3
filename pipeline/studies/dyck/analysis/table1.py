"""Table 1: variation by layer in four languages, trained on prefixes and on complete strings (DYCK-E8, E9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from pipeline.kit import stats
from pipeline.kit.streams import one_thread
from pipeline.studies.dyck.measures import rows
from pipeline.studies.dyck.measures.intervals import bootstrapped, contrast, pair_means, ratio
from pipeline.studies.dyck.measures.model import Model, measure
from pipeline.studies.dyck.names import TABLE_1, TABLE_1_COMPLETE, TABLE_1_PROBE

if TYPE_CHECKING:
    from pipeline.kit.inputs import Inputs


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of DYCK-E8 and E9."""
    datasets = {key: context.dataset(key) for key in context.datasets()}
    parts: list[rows.Rows] = []
    with one_thread():
        for run in context.runs():
            model = measure(context, run, datasets)
            parts.append(rows.of_run(context, model))
            if run in {*TABLE_1.values(), *TABLE_1_COMPLETE.values()}:
                parts.append({"variation_table1": rows.of_table1(context, model)})
            if run in TABLE_1.values() and model.entry["layers"] == 3:
                parts.append({"contrasts": [*_layer_ratio(context, model), *_uniform(context, model)]})
        return rows.tables_of(context, parts)


def _layer_ratio(context: Inputs, model: Model) -> Iterator[pl.DataFrame]:
    """Yield the variation of the third layer over that of the second (claims 13, 14)."""
    layers = [model.layer(TABLE_1_PROBE, True, layer) for layer in (3, 2)]
    parts = [pair_means(context, model, maps) for maps in layers if maps]
    if len(parts) == len(layers):
        interval = ratio(context, [mean.mean() for mean, _ in parts], [draws.mean(0) for _, draws in parts])
        quantity = ("layer_ratio", "ratio of means over sentences", "layer 3 over layer 2")
        yield contrast(context, quantity, interval, [model])


def _uniform(context: Inputs, model: Model) -> Iterator[pl.DataFrame]:
    """Yield how far attention of the first layer is from uniform, over replicas (DYCK-E9)."""
    if model.stack:
        kept, _ = model.kept(accurate=True)
        values = model.stack[0].filter(head=0)["kl_uniform"].to_numpy()[kept]
        quantity = ("uniform", "mean", "kl_uniform of layer 1")
        yield bootstrapped(context, quantity, stats.mean, [model], [values], accurate=True)
