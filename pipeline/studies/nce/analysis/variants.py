"""N6 with momentum and Adam, and with gradients or log-ratios of single samples cut off (Liu 2024, sections 4.1.1 and
4.1.6; NCE-NUM3, NUM4)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.studies.nce.measures.edges import at_edge
from pipeline.studies.nce.measures.sampled import Method, Pairs, ends, together, walk
from schemas.nce.tables import FURTHER, GD, NGD

if TYPE_CHECKING:
    from pipeline.studies.nce.params import Variants

KEY = ["dim", "loss", "optimizer", "limit", "clip", "n"]


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return tables ``gauss_variants`` and ``gauss_variants_selected``."""
    settings, frames = context.entry, []
    methods = _methods(settings)
    for key in context.datasets():
        by_dim = context.dataset(key).group_by("dim", maintain_order=True)
        for n, (_, seeds) in product(settings.samples, list(by_dim)):
            for part in seeds.iter_slices(together(len(methods), len(settings.etas), n)):
                pairs = Pairs(part, n, context.seed)
                runs = walk(pairs, settings.etas, settings.updates, settings.fresh, methods=methods)
                frames.append(ends(runs))
    results = pl.concat(frames)
    return {"gauss_variants": results, "gauss_variants_selected": selected(context, results)}


def _methods(settings: Variants) -> list[Method]:
    guards: list[dict[str, float]] = [{}, {"limit": settings.limit}, {"clip": settings.clip}]
    return [Method(name, **guard) for name in (GD, NGD) for guard in guards] + [
        Method(name) for name in FURTHER
    ]


def selected(context: Inputs, results: pl.DataFrame) -> pl.DataFrame:
    """Return rows of ``gauss_variants_selected``: each method at its step size, and against another method.

    The step size is that with the smallest mean distance, of those at which no seed diverged.
    """
    means = results.group_by([*KEY, "eta"], maintain_order=True).agg(
        pl.col("diverged").any(),
        pl.col("min_dist").mean().alias("mean_min_dist"),
        pl.col("min_dist").std().alias("sd_min_dist"),
        pl.len().alias("seeds"),
    )
    chosen = (
        means.with_columns(pl.col("diverged").sum().over(KEY).alias("etas_diverged"))
        .filter(~pl.col("diverged"))
        .sort("mean_min_dist", "eta", maintain_order=True)
        .group_by(KEY, maintain_order=True)
        .first()
        .sort(KEY)
        .drop("diverged")
    )
    chosen = at_edge(chosen, results, KEY)
    return pl.DataFrame(
        [row | _difference(context, results, chosen, row) for row in chosen.iter_rows(named=True)],
        schema_overrides={"against": pl.String}
        | dict.fromkeys(("value", "lo", "hi", "limit", "clip"), pl.Float64),
    )


def _difference(
    context: Inputs, results: pl.DataFrame, chosen: pl.DataFrame, row: dict[str, Any]
) -> dict[str, Any]:
    guarded = row["limit"] is not None or row["clip"] is not None
    against = row["optimizer"] if guarded else NGD if row["optimizer"] in FURTHER else None
    plain = {"optimizer": against, "limit": None, "clip": None}
    other = next(_matching(chosen, row | plain, KEY).iter_rows(named=True), None) if against else None
    if other is None:
        return dict.fromkeys(("against", "value", "lo", "hi"))
    samples = [
        _matching(results, taken, [*KEY, "eta"]).sort("seed")["min_dist"].to_list() for taken in (row, other)
    ]
    rng = stream(context.seed, "nce", "variants", *(str(row[name]) for name in KEY), "bootstrap")
    interval = stats.bootstrap(
        stats.mean_difference, *samples, rng=rng,
        resamples=context.settings.resamples, confidence=context.settings.confidence,
    )  # fmt: skip
    return {"against": against, "value": interval.value, "lo": interval.lo, "hi": interval.hi}


def _matching(frame: pl.DataFrame, row: dict[str, Any], names: list[str]) -> pl.DataFrame:
    return frame.filter(*(pl.col(name).eq_missing(row[name]) for name in names))
