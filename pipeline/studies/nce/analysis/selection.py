"""N6: which step size each rule selects, and how far the methods then differ (Liu 2024, section 4.1.6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from pipeline.kit import stats
from pipeline.kit.streams import stream
from schemas.nce.tables import METHODS, S_DIST, S_LOSS

# What the source orders: the first of each pair comes closer.
PAIRS = [("eNCE-NGD", "NCE-NGD"), ("NCE-NGD", "NCE-GD"), ("eNCE-NGD", "NCE-GD")]
CRITERION = {S_LOSS: "fresh_loss", S_DIST: "mean_min_dist"}


def analyse(context: Any, final: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Tables ``gauss_selected`` and ``gauss_contrasts`` from ``gauss_final``."""
    chosen = selected(final)
    return {
        "gauss_selected": chosen,
        "gauss_contrasts": pl.DataFrame(
            [*_matched(context, final), *_by_rule(context, final, chosen)],
            schema_overrides={"eta": pl.Float64, "lo": pl.Float64, "hi": pl.Float64},
        ),
    }


def selected(final: pl.DataFrame) -> pl.DataFrame:
    """Rows of ``gauss_selected``: of the step sizes at which no seed diverged, the one with the lowest mean loss on
    fresh samples after the last update (S-loss), or the lowest mean running-minimum distance (S-dist)."""
    method = ["dim", "loss", "optimizer", "n"]
    means = final.group_by([*method, "eta"], maintain_order=True).agg(
        pl.col("diverged").any(),
        pl.col("min_dist").mean().alias("mean_min_dist"),
        pl.col("min_dist").std().alias("sd_min_dist"),
        pl.col("fresh_loss").mean(),
    )
    usable = means.filter(~pl.col("diverged"), pl.col("fresh_loss").is_finite())
    best = [
        usable.sort(column, "eta", maintain_order=True)
        .group_by(method, maintain_order=True)
        .first()
        .with_columns(rule=pl.lit(rule))
        for rule, column in CRITERION.items()
    ]
    return pl.concat(best).sort(*method, "rule")


def _matched(context: Any, final: pl.DataFrame) -> Iterator[dict[str, Any]]:
    for dim, n, eta in final.select("dim", "n", "eta").unique(maintain_order=True).iter_rows():
        same = final.filter(dim=dim, n=n, eta=eta)
        for pair in PAIRS:
            key = {"dim": dim, "n": n, "matched": "eta", "eta": eta}
            yield key | _contrast(context, key, pair, [_distances(same, method) for method in pair])


def _by_rule(context: Any, final: pl.DataFrame, chosen: pl.DataFrame) -> Iterator[dict[str, Any]]:
    for dim, n, rule in chosen.select("dim", "n", "rule").unique(maintain_order=True).iter_rows():
        same = final.filter(dim=dim, n=n).join(
            chosen.filter(dim=dim, n=n, rule=rule).select("loss", "optimizer", "eta"),
            on=["loss", "optimizer", "eta"],
        )
        for pair in PAIRS:
            samples = [_distances(same, method) for method in pair]
            if all(map(len, samples)):
                key = {"dim": dim, "n": n, "matched": rule, "eta": None}
                yield key | _contrast(context, key, pair, samples)


def _distances(frame: pl.DataFrame, method: str) -> list[float]:
    loss, optimizer = METHODS[method]
    return frame.filter(loss=loss, optimizer=optimizer).sort("seed")["min_dist"].to_list()


def _contrast(
    context: Any, key: dict[str, Any], pair: tuple[str, str], samples: list[list[float]]
) -> dict[str, Any]:
    analysis = context.entry.analysis
    rng = stream(context.seed, "nce", "contrast", *map(str, key.values()), *pair, "bootstrap")
    found = stats.bootstrap(
        stats.mean_difference, *samples, rng=rng, resamples=analysis.resamples, confidence=analysis.confidence
    )
    means = [sum(sample) / len(sample) for sample in samples]
    return {
        "first": pair[0], "second": pair[1], "first_mean": means[0], "second_mean": means[1],
        "value": found.value, "lo": found.lo, "hi": found.hi, "seeds": len(samples[0]),
    }  # fmt: skip
