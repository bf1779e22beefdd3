"""Models trained on prefixes: maps, their variation and families, and balance (Wen et al. 2023, appendix D.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from pipeline.kit.comparisons import Measurements
from pipeline.kit.streams import one_thread
from pipeline.studies.dyck.comparisons import VIOLATION_BY_LENGTH
from pipeline.studies.dyck.measures import comparisons, metrics, rows
from pipeline.studies.dyck.measures.model import Model, measure
from pipeline.studies.dyck.names import FAMILIES, FAMILY_RUNS, PREFIX, PREFIX_LENGTHS, PREFIX_MINIMAL, PROBE

if TYPE_CHECKING:
    from pipeline.kit.inputs import Inputs

OTHER_LENGTHS = {*PREFIX_LENGTHS.values()} - {PREFIX_MINIMAL}
LEAST = 4  # models from which on the bimodality coefficient is defined


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of DYCK-E6 and E7, and of TH5 what is measured on trained models."""
    datasets = {key: context.dataset(key) for key in context.datasets()}
    found = Measurements(context)
    with one_thread():
        models = {run: measure(context, run, datasets) for run in context.runs()}
        parts: list[rows.Rows] = []
        for run, model in models.items():
            made = rows.of_run(context, model)
            if run in OTHER_LENGTHS:  # what is held out is of another length, so no more is said of them
                made = {name: made[name] for name in ("runs", "accuracy", "balance", "balance_detail")}
            parts += [made, {"fig3": comparisons.points(model)}]
            comparisons.of_run(found, model)
        comparisons.variation_ratios(context, found, models)
        comparisons.arms(found, models, PREFIX, context.settings.confidence)
        for length, run in PREFIX_LENGTHS.items():
            if run in models:  # the mean balance violation after training on prefixes of one length (Theorem 3)
                violation = models[run].balance[0]["beta"].to_numpy()
                comparisons.add(found, VIOLATION_BY_LENGTH[length], (models[run], violation))
        for start in (False, True):
            maps = {run: _last_maps(models[run], start) for run in FAMILY_RUNS if run in models}
            maps = {run: each for run, each in maps.items() if len(each)}
            parts.append({"families": [_shares(models[run], each, start) for run, each in maps.items()]})
            parts.append({"family_distances": _distances(maps, start)})
        return rows.tables_of(context, parts, found)


# The two families of maps that appendix D.2 tells of


def _last_maps(model: Model, start: bool) -> NDArray[np.float64]:
    """Return the last-layer maps on D4 of the replicas that learned, (R, N, N); none if they were not recorded."""
    maps = model.layer(PROBE, start, model.entry["layers"])
    kept, _ = model.kept(learned=True)
    if maps is None or maps.pattern_SxRxNxN is None:
        return np.empty((0, 0, 0))
    return maps.pattern_SxRxNxN[0, kept].double().numpy()


def _current_and_first(maps_RxNxN: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean weight on the current and on the first position, (2, R), over the queries behind the first."""
    later = maps_RxNxN[:, 1:]
    current = later[:, np.arange(later.shape[1]), np.arange(1, later.shape[2])]
    return np.stack([current.mean(1), later[:, :, 0].mean(1)])


def _shares(model: Model, maps_RxNxN: NDArray[np.float64], start: bool) -> pl.DataFrame:
    """Return a row for each model: its weight on the current and on the first position, and which is larger."""
    current, first = _current_and_first(maps_RxNxN)
    kept, _ = model.kept(learned=True)
    return pl.DataFrame(
        {
            "run": model.run,
            "replica": kept,
            "start_included": start,
            "current": current,
            "first": first,
            "family": [FAMILIES[int(each)] for each in first > current],
        }
    )


def _distances(maps: dict[str, NDArray[np.float64]], start: bool) -> Iterator[pl.DataFrame]:
    """Yield, of each run and of all together, how far maps of one family are apart and how far those of both."""
    groups = {"all": list(maps.values())} | {run: [each] for run, each in maps.items()}
    for run, parts in groups.items() if maps else ():
        maps_RxNxN = np.concatenate(parts)
        current, first = _current_and_first(maps_RxNxN)
        distances_RxR = metrics.variation_distances(torch.from_numpy(maps_RxNxN)).numpy()
        pair = np.triu(np.ones_like(distances_RxR, dtype=bool), 1)
        same = (first > current)[:, None] == (first > current)[None]
        within, between = distances_RxR[pair & same], distances_RxR[pair & ~same]
        yield pl.DataFrame(
            {
                "run": run,
                "start_included": start,
                "n_models": len(maps_RxNxN),
                "n_first": int((first > current).sum()),
                "bimodality": bimodality(first - current),
                "within": float(within.mean()) if len(within) else None,
                "between": float(between.mean()) if len(between) else None,
                "n_within": len(within),
                "n_between": len(between),
            }
        )


def bimodality(values: NDArray[np.float64]) -> float | None:
    """Return Sarle's bimodality coefficient, (skewness^2 + 1) / kurtosis with corrections for small samples: 5/9 for
    a uniform law, 1 for two points, 1/3 for a normal law; None for fewer than four values or no spread."""
    n = len(values)
    if n < LEAST or np.ptp(values) == 0:
        return None
    skew = scipy_stats.skew(values, bias=False)
    kurtosis = scipy_stats.kurtosis(values, bias=False)
    return float((skew**2 + 1) / (kurtosis + 3 * (n - 1) ** 2 / ((n - 2) * (n - 3))))
