"""Bootstrap intervals over replicas, and the rows of the table ``contrasts`` that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit import stats
from pipeline.kit.streams import stream
from pipeline.studies.dyck.measures.model import Maps, Model

if TYPE_CHECKING:
    from pipeline.kit.inputs import Inputs

Quantity = tuple[str, str, str]  # what a row is about: contrast, statistic, metric


def bootstrap_stream(context: Inputs, *names: str | int) -> np.random.Generator:
    """Return the random stream of the intervals called ``names``."""
    return stream(context.seed, context.study, "analysis", "bootstrap", *names)


def pair_means(context: Inputs, model: Model, maps: Maps) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean distance between the replicas that count, (S,), and its bootstrap draws, (S, resamples).

    All maps of a run see the same resamples of its replicas, so differences and ratios of layers and means
    over sentences can be taken draw by draw.
    """
    kept, _ = model.kept(accurate=True)
    rng = bootstrap_stream(context, "variation", model.run)
    counts = stats.resample_counts(rng, len(kept), context.settings.resamples)
    distances = maps.distances_SxRxR[:, kept[:, None], kept]
    means = stats.pair_mean_draws(distances, np.ones((1, len(kept)), int))
    draws = stats.pair_mean_draws(distances, counts)
    return means[:, 0], draws if len(kept) > 1 else np.full_like(draws, np.nan)


def ratio(
    context: Inputs, values: Sequence[np.float64], draws: Sequence[NDArray[np.float64]]
) -> stats.Interval:
    """Return the first value over the second, with an interval from the ratio of their draws."""
    with np.errstate(divide="ignore", invalid="ignore"):  # maps that all agree
        value, drawn = np.divide(values[0], values[1]), np.divide(draws[0], draws[1])
    return stats.Interval(float(value), *stats.percentiles(drawn, context.settings.confidence))


def bootstrapped(
    context: Inputs,
    quantity: Quantity,
    how: stats.Statistic,
    models: list[Model],
    values: list[NDArray[np.float64]],
    accurate: bool = False,
    paired: bool = True,
) -> pl.DataFrame:
    """Return a contrast by resampling the replicas behind ``values``: together where they are ``paired``."""
    settings = context.settings
    rng = bootstrap_stream(context, *quantity[:2], *(model.run for model in models), quantity[2])
    interval = stats.bootstrap(
        how, *values, rng=rng, resamples=settings.resamples, confidence=settings.confidence, paired=paired
    )
    row = contrast(context, quantity, interval, models, accurate)
    return row.with_columns(n=pl.lit(len(values[0])), paired=pl.lit(paired and len(models) > 1))


def contrast(
    context: Inputs, quantity: Quantity, interval: stats.Interval, models: list[Model], accurate: bool = True
) -> pl.DataFrame:
    """Return one row of ``contrasts``. Replicas that are not ``accurate`` count as left out where that is asked, else
    only diverged ones."""
    kept = [model.kept(accurate) for model in models]
    reasons = [f"{model.run}: {reason}" for model, (_, reason) in zip(models, kept, strict=True) if reason]
    row: dict[str, Any] = {
        "contrast": quantity[0],
        "statistic": quantity[1],
        "first": models[0].run,
        "second": models[1].run if len(models) > 1 else None,
        "metric": quantity[2],
        **interval._asdict(),
        "confidence": context.settings.confidence,
        "n": len(kept[0][0]),
        "n_excluded": sum(model.replicas - len(some) for model, (some, _) in zip(models, kept, strict=True)),
        "excluded_reason": "; ".join(reasons),
        "paired": False,
    }
    return pl.DataFrame([row])
