"""Models trained on complete strings: accuracy, maps, and how much these vary (Wen et al. 2023, section 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.kit import stats
from pipeline.kit.comparisons import Measurements
from pipeline.kit.streams import one_thread
from pipeline.studies.dyck.comparisons import OVER_RANDOM, VARIATION
from pipeline.studies.dyck.measures import comparisons, rows
from pipeline.studies.dyck.measures.model import Model, measure
from pipeline.studies.dyck.names import PROBE

if TYPE_CHECKING:
    from pipeline.kit.inputs import Inputs


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of DYCK-E1, E2, E3 and E5."""
    datasets = {key: context.dataset(key) for key in context.datasets()}
    found = Measurements(context)
    with one_thread():
        models = {run: measure(context, run, datasets) for run in context.runs()}
        for model in models.values():
            comparisons.of_run(found, model)
        _variation(found, models, context.settings.confidence)
        comparisons.variation_ratios(context, found, models)
        return rows.tables_of(context, [rows.of_run(context, model) for model in models.values()], found)


def _variation(found: Measurements, models: dict[str, Model], confidence: float) -> None:
    """Measure variation on D4 (claims 5 and 7), and as a multiple of the closed form for random maps (claim 6)."""
    for (run, start), comparison in VARIATION.items():
        maps = models[run].layer(PROBE, start, models[run].entry["layers"]) if run in models else None
        if maps is None:
            continue
        (kept,), excluded, reason = comparisons.counting(comparison, models[run])
        mean = comparisons.variation(maps, kept, confidence)
        found.put(comparison, mean, excluded, reason)
        if run in OVER_RANDOM and not start:
            random = stats.causal_distance(maps.n_rows)
            over = mean._replace(value=mean.value / random, lo=mean.lo / random, hi=mean.hi / random)
            found.put(OVER_RANDOM[run], over, excluded, reason)
