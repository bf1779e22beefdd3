"""N6 with momentum and Adam, and with gradients or log-ratios of single samples cut off (Liu 2024, sections 4.1.1 and
4.1.6; NCE-NUM3, NUM4)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.inputs import Inputs
from pipeline.studies.nce.comparisons import AGAINST_NGD, CLOSER, DIVERGES, GUARDS, LIMITED, LIMITED_BOTH
from pipeline.studies.nce.measures.edges import at_edge
from pipeline.studies.nce.measures.sampled import Method, Pairs, ends, together, walk
from pipeline.studies.nce.measures.seeds import compare
from pipeline.studies.nce.names import SAMPLES
from schemas.nce.tables import ENCE, FURTHER, GD, NCE, NGD

if TYPE_CHECKING:
    from pipeline.studies.nce.params import Variants

Row = dict[str, Any]  # what names a method: its optimizer, and a guard if it has one
KEY = ["dim", "loss", "optimizer", "limit", "clip", "n"]


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return tables ``gauss_variants``, ``gauss_variants_selected`` and ``comparisons``."""
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
    chosen = selected(results)
    comparisons = compared(context, results, chosen)
    return {"gauss_variants": results, "gauss_variants_selected": chosen, "comparisons": comparisons}


def _methods(settings: Variants) -> list[Method]:
    guards: list[dict[str, float]] = [{}, {"limit": settings.limit}, {"clip": settings.clip}]
    return [Method(name, **guard) for name in (GD, NGD) for guard in guards] + [Method(name) for name in FURTHER]


def selected(results: pl.DataFrame) -> pl.DataFrame:
    """Return rows of ``gauss_variants_selected``: each method at its step size.

    It is that with the smallest mean distance, of those at which no seed diverged.
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
    return at_edge(chosen, results, KEY)


def compared(context: Inputs, results: pl.DataFrame, chosen: pl.DataFrame) -> pl.DataFrame:
    """Return table ``comparisons``: smallest distances of two methods, and how many step sizes are too large."""
    found, confidence = Measurements(context), context.settings.confidence
    results = results.filter(n=SAMPLES)
    key = [*KEY, "eta"]
    best = results.join(chosen.select(key), on=key, nulls_equal=True)
    lost = results.group_by([*KEY, "seed"]).agg(pl.col("diverged").sum())

    def between(comparison: Comparison, loss: str, dim: int, first: Row, second: Row, counted: bool = False) -> None:
        tried, taken = (rows.filter(dim=dim, loss=loss) for rows in (results, lost if counted else best))
        one, two = (_of(taken, **method) for method in (first, second))
        compare(found, comparison, tried, one, two, "diverged" if counted else "min_dist", confidence)

    limits = {name: {"optimizer": GD, name: getattr(context.entry, name)} for name in GUARDS}
    for (dim, optimizer), comparison in AGAINST_NGD.items():
        between(comparison, NCE, dim, {"optimizer": optimizer}, {"optimizer": NGD})
    for (dim, guard), comparison in CLOSER.items():
        between(comparison, ENCE, dim, limits[guard], {"optimizer": GD})
    for (dim, guard), comparison in DIVERGES.items():
        between(comparison, ENCE, dim, limits[guard], {"optimizer": GD}, counted=True)
    for dim, comparison in LIMITED.items():
        between(comparison, ENCE, dim, limits["limit"], {"optimizer": NGD})
    for dim, comparison in LIMITED_BOTH.items():
        between(comparison, ENCE, dim, limits["limit"], limits["limit"] | {"optimizer": NGD})
    return found.table()


def _of(rows: pl.DataFrame, optimizer: str, limit: float | None = None, clip: float | None = None) -> pl.DataFrame:
    return rows.filter(pl.col("limit").eq_missing(limit), pl.col("clip").eq_missing(clip), optimizer=optimizer)
