"""Comparisons that claims are about, each with a bootstrap interval over replicas."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit import stats
from pipeline.studies.dyck.analysis.measure import IN_DISTRIBUTION, LENGTH_GENERALISATION, Model
from pipeline.studies.dyck.analysis.per_run import bootstrap_stream, pair_means
from schemas.dyck.tables import (
    ARMS,
    MINIMAL,
    MODELS,
    PREFIX_MINIMAL,
    PREFIX_STANDARD,
    PREFIX_STANDARD_ALL,
    PROBE,
    STACK_LIKE,
    STANDARD,
    TABLE_1,
    TABLE_1_PROBE,
)

# Variation of the first over that of the second: claims 7 and 22.
RATIOS = [(MINIMAL, STANDARD), (PREFIX_STANDARD, PREFIX_MINIMAL), (PREFIX_STANDARD_ALL, PREFIX_MINIMAL)]


def contrasts(context: Any, models: dict[str, Model]) -> list[pl.DataFrame]:
    """Every comparison that the runs at hand allow."""
    rows = []
    for model in models.values():
        rows += _in_distribution(context, model)
        rows += _stack_like(context, model)
        rows += _layer_ratio(context, model)
        rows += _uniform(context, model)
        if model.run in MODELS:
            rows += _over_random(context, model)
    for first, second in RATIOS:
        if first in models and second in models:
            rows += _variation_ratios(context, models[first], models[second])
    for runs in ARMS.values():
        arms = {arm: models[run] for arm, run in runs.items() if run in models and models[run].balance}
        for model in arms.values():
            rows += _alone(context, model)
        if len(arms) == len(runs):
            rows += _compared(context, arms["contrastive"], arms["standard"])
    return [pl.DataFrame(rows, infer_schema_length=None)] if rows else []


def of_one_run(
    context: Any,
    model: Model,
    about: tuple[str, str, str],
    how: stats.Statistic,
    *values: NDArray[np.float64],
) -> pl.DataFrame:
    """One row about one run (``about``: contrast, statistic, metric), by resampling ``values`` together."""
    row = _bootstrap(context, about, how, [model], list(values))
    return pl.DataFrame([row], infer_schema_length=None)


def _in_distribution(context: Any, model: Model) -> list[dict[str, Any]]:
    """Accuracy on data like the training data, of all replicas that did not diverge (claims 3 and 12)."""
    values = model.column(IN_DISTRIBUTION.get(model.split, ""), "acc_close")
    if values is None:
        return []
    kept, _ = model.kept(accurate=False)
    about = ("in_distribution", "median", "acc_close")
    return [_bootstrap(context, about, stats.median, [model], [values[kept]])]


def _stack_like(context: Any, model: Model) -> list[dict[str, Any]]:
    """Stack score of the last layer, over replicas (claim 4)."""
    scores = model.last_stack("stack_argmax")
    if scores is None:
        return []
    kept, _ = model.kept(accurate=True)
    values = scores[kept]
    share = (values >= STACK_LIKE).astype(float)
    return [
        _bootstrap(context, ("stack", "mean", "stack_argmax"), stats.mean, [model], [values], accurate=True),
        _bootstrap(
            context,
            ("stack", "stack-like share", "stack_argmax"),
            stats.mean,
            [model],
            [share],
            accurate=True,
        ),
    ]


def _uniform(context: Any, model: Model) -> list[dict[str, Any]]:
    """DYCK-E9: how far attention of the first layer is from uniform, over replicas of three-layer models."""
    if model.run not in TABLE_1.values() or model.entry["layers"] != 3 or not model.stack:
        return []
    kept, _ = model.kept(accurate=True)
    values = model.stack[0].filter(head=0)["kl_uniform"].to_numpy()[kept]
    about = ("uniform", "mean", "kl_uniform of layer 1")
    return [_bootstrap(context, about, stats.mean, [model], [values], accurate=True)]


def _layer_ratio(context: Any, model: Model) -> list[dict[str, Any]]:
    """Table 1: variation of the last layer over that of the layer below, in models of three (claims 13, 14)."""
    layers = [model.layer(TABLE_1_PROBE, True, layer) for layer in (3, 2)]
    if model.run not in TABLE_1.values() or None in layers:
        return []
    means, draws = zip(*(pair_means(context, model, maps) for maps in layers if maps), strict=True)
    interval = _ratio(
        [mean_S.mean() for mean_S in means], [draws_SxB.mean(0) for draws_SxB in draws], context
    )
    about = ("layer_ratio", "ratio of means over sentences", "layer 3 over layer 2")
    return [_contrast(context, about, interval, [model])]


def _over_random(context: Any, model: Model) -> list[dict[str, Any]]:
    """Variation on D4 as a multiple of the closed form for random causal maps (claim 6)."""
    rows = []
    for start in (False, True):
        maps = model.layer(PROBE, start, model.entry["layers"])
        if maps is not None:
            mean_S, draws_SxB = pair_means(context, model, maps)
            baseline = stats.causal_distance(maps.n_rows)
            lo, hi = stats.percentiles(draws_SxB[0], context.entry.analysis.confidence)
            interval = stats.Interval(mean_S[0] / baseline, lo / baseline, hi / baseline)
            about = ("variation_over_random", "ratio to closed form", _convention(start))
            rows.append(_contrast(context, about, interval, [model]))
    return rows


def _variation_ratios(context: Any, first: Model, second: Model) -> list[dict[str, Any]]:
    """Variation on D4 of ``first`` over that of ``second``, replicas resampled independently (claims 7 and 22)."""
    rows = []
    for start in (False, True):
        found = []
        for model in (first, second):
            maps = model.layer(PROBE, start, model.entry["layers"])
            if maps is None:
                return []
            found.append(pair_means(context, model, maps))
        interval = _ratio([mean[0] for mean, _ in found], [draws[0] for _, draws in found], context)
        about = ("variation_ratio", "ratio of means over pairs", _convention(start))
        rows.append(_contrast(context, about, interval, [first, second]))
    return rows


def _ratio(
    values: Sequence[np.float64], draws: Sequence[NDArray[np.float64]], context: Any
) -> stats.Interval:
    """The first value over the second, with an interval from the ratio of their draws."""
    with np.errstate(divide="ignore", invalid="ignore"):  # maps that all agree
        value, ratio = np.divide(values[0], values[1]), np.divide(draws[0], draws[1])
    return stats.Interval(float(value), *stats.percentiles(ratio, context.entry.analysis.confidence))


def _convention(start: bool) -> str:
    return f"variation, start token {'included' if start else 'omitted'}"


def _alone(context: Any, model: Model) -> list[dict[str, Any]]:
    """One arm of Figure 3."""
    data = _columns(model)
    rows = [_bootstrap(context, ("beta", "median", "beta"), stats.median, [model], [data["beta"]])]
    for name in _accuracies(data):
        rows.append(_bootstrap(context, ("accuracy", "mean", name), stats.mean, [model], [data[name]]))
        about, pair = ("rank", "spearman", f"beta, {name}"), [data["beta"], data[name]]
        rows.append(_bootstrap(context, about, stats.spearman, [model], pair))
    return rows


def _compared(context: Any, first: Model, second: Model) -> list[dict[str, Any]]:
    """Both arms of Figure 3 (claims 8-10). Runs of one stream start alike, so their replicas are paired."""
    models = [first, second]
    paired = first.entry["stream"] == second.entry["stream"] and first.replicas == second.replicas
    arms = [_columns(model, models if paired else None) for model in models]
    rows = []

    def compare(contrast: str, statistic: str, how: stats.Statistic, name: str) -> None:
        values = [arm[name] for arm in arms]
        rows.append(_bootstrap(context, (contrast, statistic, name), how, models, values, paired=paired))

    compare("beta", "difference of medians", stats.median_difference, "beta")
    compare("beta", "ratio of medians", stats.median_ratio, "beta")
    for name in _accuracies(*arms):
        compare("accuracy", "difference of means", stats.mean_difference, name)
        pooled = [np.concatenate([arm[column] for arm in arms]) for column in ("beta", name)]
        about = ("rank", "spearman of both arms pooled", f"beta, {name}")
        rows.append(_bootstrap(context, about, stats.spearman, models, pooled) | {"paired": False})
    return rows


def _columns(model: Model, together: list[Model] | None = None) -> dict[str, NDArray[np.float64]]:
    """Beta and the accuracies at length, of the replicas that did not diverge (in any of ``together``)."""
    keep = reduce(np.intersect1d, (other.kept(accurate=False)[0] for other in together or [model]))
    found = {"beta": model.balance[0]["beta"].to_numpy()}
    for name in ("acc_close", "acc_thr80"):
        values = model.column(LENGTH_GENERALISATION, name)
        if values is not None:
            found[name] = values
    return {name: values[keep] for name, values in found.items()}


def _accuracies(*data: dict[str, NDArray[np.float64]]) -> list[str]:
    """Which accuracies all of ``data`` have."""
    return [name for name in ("acc_close", "acc_thr80") if all(name in columns for columns in data)]


def _bootstrap(
    context: Any,
    about: tuple[str, str, str],
    how: stats.Statistic,
    models: list[Model],
    values: list[NDArray[np.float64]],
    accurate: bool = False,
    paired: bool = True,
) -> dict[str, Any]:
    """A contrast by resampling the replicas behind ``values``."""
    analysis = context.entry.analysis
    rng = bootstrap_stream(context, *about[:2], *(model.run for model in models), about[2])
    interval = stats.bootstrap(
        how, *values, rng=rng, resamples=analysis.resamples, confidence=analysis.confidence, paired=paired
    )
    row = _contrast(context, about, interval, models, accurate)
    return row | {"n": len(values[0]), "paired": paired and len(models) > 1}


def _contrast(
    context: Any,
    about: tuple[str, str, str],
    interval: stats.Interval,
    models: list[Model],
    accurate: bool = True,
) -> dict[str, Any]:
    """One row of contrasts; ``about``: contrast, statistic, metric. Replicas that are not ``accurate`` count as
    left out where that is asked, else only diverged ones."""
    kept = [model.kept(accurate) for model in models]
    reasons = [f"{model.run}: {reason}" for model, (_, reason) in zip(models, kept, strict=True) if reason]
    return {
        "contrast": about[0],
        "statistic": about[1],
        "first": models[0].run,
        "second": models[1].run if len(models) > 1 else None,
        "metric": about[2],
        **interval._asdict(),
        "confidence": context.entry.analysis.confidence,
        "n": len(kept[0][0]),
        "n_excluded": sum(model.replicas - len(some) for model, (some, _) in zip(models, kept, strict=True)),
        "excluded_reason": "; ".join(reasons),
        "paired": False,
    }
