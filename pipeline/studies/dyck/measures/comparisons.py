"""What declared comparisons (`pipeline.studies.dyck.comparisons`) are measured on: which models count, and how."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import rankdata

from pipeline.kit import intervals
from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.intervals import Interval
from pipeline.studies.dyck import comparisons as declared
from pipeline.studies.dyck.measures.model import LENGTH_GENERALISATION, Maps, Model
from pipeline.studies.dyck.names import ARM_OF, ARMS, PROBE
from schemas.comparisons import SEEDS

if TYPE_CHECKING:
    from pipeline.kit.inputs import Inputs

Floats = NDArray[np.float64]


def counting(comparison: Comparison, *models: Model) -> tuple[list[NDArray[np.int64]], int, str]:
    """Return the replicas of each model's run that count, how many are left out (pairs of them, where replicas belong
    together), and why."""
    by_run = {model.run: model for model in models}
    kept = {run: model.kept(comparison.learned) for run, model in by_run.items()}
    reason = "; ".join(f"{run}: {why}" for run, (_, why) in kept.items() if why)
    if comparison.in_common == SEEDS:
        both = reduce(np.intersect1d, (replicas for replicas, _ in kept.values()))
        return [both] * len(models), min(model.replicas for model in models) - len(both), reason
    excluded = sum(model.replicas - len(kept[run][0]) for run, model in by_run.items())
    return [kept[model.run][0] for model in models], excluded, reason


def add(found: Measurements, comparison: Comparison, *samples: tuple[Model, Floats | None]) -> None:
    """Measure a comparison on one value for each replica of an arm, (R,); not at all where an arm was not measured."""
    replicas, excluded, reason = counting(comparison, *(model for model, _ in samples))
    values = [part[kept] for (_, part), kept in zip(samples, replicas, strict=True) if part is not None]
    if len(values) == len(samples):
        found.add(comparison, *values, excluded=excluded, reason=reason)


def of_run(found: Measurements, model: Model) -> None:
    """Measure what is declared of a single run: accuracy on strings like its training data, and stack scores."""
    for of, name in ((declared.ACCURACY, "acc_close"), (declared.UNSEEN, "acc_close_unseen")):
        if model.run in of:
            add(found, of[model.run], (model, model.in_distribution(name)))
    for of in (declared.STACK_SHARE, declared.STACK_MEAN):
        if model.run in of:
            add(found, of[model.run], (model, model.last_stack("stack_argmax")))


# Variation of attention


def variation(maps: Maps, kept: NDArray[np.int64], confidence: float) -> Interval:
    """Return the mean distance between the maps of ``kept`` replicas, averaged over the sequences of the probe."""
    return intervals.pair_mean(maps.distances_SxRxR.mean(0)[np.ix_(kept, kept)], confidence)


def variation_ratios(context: Inputs, found: Measurements, models: dict[str, Model]) -> None:
    """Measure how many times the variation on D4 of one run is that of another (claims 7 and 22)."""
    for (first, second, start), comparison in declared.VARIATION_RATIO.items():
        if comparison.experiment != context.experiment or not {first, second} <= models.keys():
            continue
        pair = [models[first], models[second]]
        maps = [model.layer(PROBE, start, model.entry["layers"]) for model in pair]
        replicas, excluded, reason = counting(comparison, *pair)
        if maps[0] is not None and maps[1] is not None:
            distances = [maps[0].distances_SxRxR[0], maps[1].distances_SxRxR[0]]
            found.put(comparison, _quotient(distances, replicas, context.settings.confidence), excluded, reason)


def _quotient(distances: list[Floats], replicas: list[NDArray[np.int64]], confidence: float) -> Interval:
    """Return a mean over pairs of models over another, of independent models."""

    def ratio(*kept: Floats) -> float:
        upper, lower = map(intervals.mean_over_pairs, distances, kept)
        return float(np.divide(upper, lower))

    return intervals.jackknife(ratio, *replicas, confidence=confidence, log=True)


def layer_ratio(upper: Maps, lower: Maps, kept: NDArray[np.int64], confidence: float) -> Interval:
    """Return the variation of one layer over that of another, of the same models and sentences."""
    means = [maps.distances_SxRxR.mean(0) for maps in (upper, lower)]

    def ratio(replicas: Floats) -> float:
        first, second = (intervals.mean_over_pairs(each, replicas) for each in means)
        return float(np.divide(first, second))

    return intervals.jackknife(ratio, kept, confidence=confidence, log=True)


# Balance violation against length generalisation (Figures 3 and 10)


def points(model: Model) -> list[pl.DataFrame]:
    """Return the points of a run in the table ``fig3``; none if it is no arm, or was not measured at length."""
    lengen = {name: model.column(LENGTH_GENERALISATION, name) for name in declared.ACCURACIES}
    if model.run not in ARM_OF or not model.balance or lengen["acc_close"] is None:
        return []
    data, arm = ARM_OF[model.run]
    diverged = [replica in model.diverged for replica in range(model.replicas)]
    metadata = {"arm": arm, "data": data, "diverged": diverged, "learned": model.learned}
    return [pl.DataFrame({**model.balance[0].to_dict(), **lengen, **metadata})]


def arms(found: Measurements, models: dict[str, Model], data: str, confidence: float) -> None:
    """Measure both arms of one kind of data, each alone and one against the other (claims 8 to 11)."""
    at_length = {arm: (models[run], points(models[run])) for arm, run in ARMS[data].items() if run in models}
    measured = {arm: (model, frames[0]) for arm, (model, frames) in at_length.items() if frames}

    def column(arm: str, name: str) -> tuple[Model, Floats]:
        model, frame = measured[arm]
        return model, frame[name].to_numpy()

    for arm in measured:
        for name in declared.ACCURACIES:
            add(found, declared.RANK[data, arm, name], column(arm, "beta"), column(arm, name))
    if len(measured) < len(ARMS[data]):
        return
    both = ("contrastive", "standard")
    for comparison in (declared.VIOLATION_RATIO[data], declared.VIOLATION_SHIFT[data]):
        add(found, comparison, *(column(arm, "beta") for arm in both))
    for name in declared.ACCURACIES:
        add(found, declared.GAINED[data, name], *(column(arm, name) for arm in both))
        for of, correlation in ((declared.RANK_WITHIN, _within), (declared.RANK_POOLED, _pooled)):
            comparison = of[data, name]
            replicas, excluded, reason = counting(comparison, *(measured[arm][0] for arm in both))
            samples = [
                column(arm, which)[1][kept]
                for arm, kept in zip(both, replicas, strict=True)
                for which in ("beta", name)
            ]
            interval = intervals.jackknife(correlation, *samples, confidence=confidence, paired=True)
            found.put(comparison, interval.within(*comparison.span), excluded, reason)


def _pooled(*columns: Floats) -> float:
    """Return the rank correlation of two quantities of all models together; columns alternate, arm by arm."""
    return intervals.spearman(np.concatenate(columns[::2]), np.concatenate(columns[1::2]))


def _within(*columns: Floats) -> float:
    """Return the rank correlation of two quantities within arms, all arms counted together.

    Ranks are taken within each arm, so that the distance between the arms adds nothing to it.
    """
    ranks = [rankdata(column) - (len(column) + 1) / 2 for column in columns]
    first, second = np.concatenate(ranks[::2]), np.concatenate(ranks[1::2])
    return float((first * second).sum() / np.sqrt((first**2).sum() * (second**2).sum()))
