"""Models trained on complete strings: accuracy, maps, and how much these vary (Wen et al. 2023, section 4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from pipeline.kit import stats
from pipeline.kit.streams import one_thread
from pipeline.studies.dyck.measures import rows
from pipeline.studies.dyck.measures.comparisons import variation_ratios
from pipeline.studies.dyck.measures.intervals import contrast, pair_means
from pipeline.studies.dyck.measures.model import Model, measure
from pipeline.studies.dyck.names import MINIMAL, MODELS, PROBE, STANDARD, convention

if TYPE_CHECKING:
    from pipeline.kit.inputs import Inputs


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of DYCK-E1, E2, E3 and E5."""
    datasets = {key: context.dataset(key) for key in context.datasets()}
    with one_thread():
        models = {run: measure(context, run, datasets) for run in context.runs()}
        parts: list[rows.Rows] = [rows.of_run(context, model) for model in models.values()]
        parts += [{"contrasts": _over_random(context, models[run])} for run in MODELS if run in models]
        parts.append({"contrasts": variation_ratios(context, models, MINIMAL, STANDARD)})
        return rows.tables_of(context, parts)


def _over_random(context: Inputs, model: Model) -> Iterator[pl.DataFrame]:
    """Yield variation on D4 as a multiple of the closed form for random causal maps (claim 6)."""
    for start in (False, True):
        maps = model.layer(PROBE, start, model.entry["layers"])
        if maps is not None:
            mean_S, draws_SxB = pair_means(context, model, maps)
            baseline = stats.causal_distance(maps.n_rows)
            lo, hi = stats.percentiles(draws_SxB[0], context.settings.confidence)
            interval = stats.Interval(mean_S[0] / baseline, lo / baseline, hi / baseline)
            quantity = ("variation_over_random", "ratio to closed form", convention(start))
            yield contrast(context, quantity, interval, [model])
