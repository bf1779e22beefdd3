"""Comparisons that claims are about, made by more than one experiment."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import rankdata

from pipeline.kit import stats
from pipeline.studies.dyck.measures.intervals import bootstrapped, contrast, pair_means, ratio
from pipeline.studies.dyck.measures.model import LENGTH_GENERALISATION, Model
from pipeline.studies.dyck.names import ARM_OF, ARMS, PROBE, convention

if TYPE_CHECKING:
    from pipeline.kit.inputs import Inputs


def variation_ratios(
    context: Inputs, models: dict[str, Model], first: str, second: str
) -> Iterator[pl.DataFrame]:
    """Yield the variation on D4 of ``first`` over that of ``second``, replicas resampled independently (claims 7
    and 22); nothing where one of them is not there."""
    if first not in models or second not in models:
        return
    pair = [models[first], models[second]]
    for start in (False, True):
        maps = [model.layer(PROBE, start, model.entry["layers"]) for model in pair]
        parts = [pair_means(context, model, each) for model, each in zip(pair, maps, strict=True) if each]
        if len(parts) == len(pair):
            interval = ratio(context, [mean[0] for mean, _ in parts], [draws[0] for _, draws in parts])
            quantity = ("variation_ratio", "ratio of means over pairs", convention(start))
            yield contrast(context, quantity, interval, pair)


# Balance violation against length generalisation (Figures 3 and 10)


def arms(context: Inputs, models: dict[str, Model]) -> dict[str, list[pl.DataFrame]]:
    """Return the points of the arms among ``models`` (``fig3``), and each arm alone and both compared
    (``contrasts``)."""
    points = [frame for model in models.values() for frame in _points(model)]
    rows: list[pl.DataFrame] = []
    for runs in ARMS.values():
        arm_models = {arm: models[run] for arm, run in runs.items() if run in models and models[run].balance}
        for model in arm_models.values():
            rows += _alone(context, model)
        if len(arm_models) == len(runs):
            rows += _compared(context, arm_models["contrastive"], arm_models["standard"])
    return {"fig3": points, "contrasts": rows}


def _points(model: Model) -> list[pl.DataFrame]:
    lengen = {name: model.column(LENGTH_GENERALISATION, name) for name in ("acc_close", "acc_thr80")}
    if model.run not in ARM_OF or not model.balance or lengen["acc_close"] is None:
        return []
    data, arm = ARM_OF[model.run]
    metadata = {
        "arm": arm,
        "data": data,
        "diverged": [replica in model.diverged for replica in range(model.replicas)],
    }
    return [pl.DataFrame({**model.balance[0].to_dict(), **lengen, **metadata})]


def _alone(context: Inputs, model: Model) -> Iterator[pl.DataFrame]:
    """Yield the contrasts of one arm: its balance violation, its accuracies at length and their correlation."""
    data = _columns(model)
    yield bootstrapped(context, ("beta", "median", "beta"), stats.median, [model], [data["beta"]])
    for name in _accuracies(data):
        yield bootstrapped(context, ("accuracy", "mean", name), stats.mean, [model], [data[name]])
        quantity, pair = ("rank", "spearman", f"beta, {name}"), [data["beta"], data[name]]
        yield bootstrapped(context, quantity, stats.spearman, [model], pair)


def _compared(context: Inputs, first: Model, second: Model) -> Iterator[pl.DataFrame]:
    """Yield the contrasts between both arms (claims 8-11). Runs of one stream start alike, so their replicas
    are paired."""
    models = [first, second]
    paired = first.entry["stream"] == second.entry["stream"] and first.replicas == second.replicas
    both = [_columns(model, models if paired else None) for model in models]

    def compare(name: str, statistic: str, how: stats.Statistic, column: str) -> pl.DataFrame:
        values = [arm[column] for arm in both]
        return bootstrapped(context, (name, statistic, column), how, models, values, paired=paired)

    yield compare("beta", "difference of medians", stats.median_difference, "beta")
    yield compare("beta", "ratio of medians", stats.median_ratio, "beta")
    for name in _accuracies(*both):
        yield compare("accuracy", "difference of means", stats.mean_difference, name)
        pooled = [np.concatenate([arm[column] for arm in both]) for column in ("beta", name)]
        quantity = ("rank", "spearman of both arms pooled", f"beta, {name}")
        row = bootstrapped(context, quantity, stats.spearman, models, pooled)
        yield row.with_columns(paired=pl.lit(False))
        yield _within_arms(context, models, [(arm["beta"], arm[name]) for arm in both], name, paired)


def _within_arms(
    context: Inputs, models: list[Model], arms: list[tuple[NDArray, NDArray]], name: str, paired: bool
) -> pl.DataFrame:
    """Return the rank correlation of balance violation and accuracy within arms, both arms counted together.

    Ranks are taken within each arm, so that the distance between the arms adds nothing to it.
    """

    def correlation(*replicas: NDArray, axis: int = -1) -> NDArray[np.float64]:
        products, beta_squares, accuracy_squares = 0.0, 0.0, 0.0
        for (beta, accuracy), chosen in zip(arms, replicas, strict=True):
            ranks = [rankdata(each[chosen.astype(int)], axis=axis) for each in (beta, accuracy)]
            x, y = (each - each.mean(axis=axis, keepdims=True) for each in ranks)
            products = products + (x * y).sum(axis=axis)
            beta_squares = beta_squares + (x * x).sum(axis=axis)
            accuracy_squares = accuracy_squares + (y * y).sum(axis=axis)
        scale = np.sqrt(beta_squares * accuracy_squares)
        return products / np.where(scale > 0, scale, np.nan)

    quantity = ("rank", "spearman within arms", f"beta, {name}")
    replicas = [np.arange(len(beta), dtype=float) for beta, _ in arms]
    return bootstrapped(context, quantity, correlation, models, replicas, paired=paired)


def _columns(model: Model, together: list[Model] | None = None) -> dict[str, NDArray[np.float64]]:
    """Return beta and the accuracies at length, of the replicas that did not diverge (in any of ``together``)."""
    keep = reduce(np.intersect1d, (other.kept(accurate=False)[0] for other in together or [model]))
    values = {"beta": model.balance[0]["beta"].to_numpy()}
    for name in ("acc_close", "acc_thr80"):
        column = model.column(LENGTH_GENERALISATION, name)
        if column is not None:
            values[name] = column
    return {name: column[keep] for name, column in values.items()}


def _accuracies(*data: dict[str, NDArray[np.float64]]) -> list[str]:
    """Return which accuracies all of ``data`` have."""
    return [name for name in ("acc_close", "acc_thr80") if all(name in columns for columns in data)]
