"""N6: descent on fresh samples of two Gaussians, all methods, step sizes and seeds together; step sizes selected by
three rules, and how far the methods then differ (Liu 2024, section 4.1.6, Figure 4.2)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.inputs import Inputs
from pipeline.languages import exponential_families as families
from pipeline.studies.nce.comparisons import (
    AT_ETA,
    BY_RULE,
    FRACTION,
    LARGE,
    LARGE_STEP,
    NORMALISED,
    ONE,
    SIXTEEN,
    STANDARD,
    STANDARD_STEP,
)
from pipeline.studies.nce.exact import exponential_family as log_ratio
from pipeline.studies.nce.exact.exponential_family import NCE, Array
from pipeline.studies.nce.measures.edges import at_edge
from pipeline.studies.nce.measures.sampled import LOSSES, PLAIN, Pairs, ends, together, walk
from pipeline.studies.nce.measures.seeds import compare
from pipeline.studies.nce.names import METHODS, SAMPLES
from schemas.nce.tables import GD, NGD, S_BEST, S_DIST, S_LOSS

if TYPE_CHECKING:
    from pipeline.studies.nce.params import Sampled

OPTIMIZERS = (GD, NGD)
CRITERION = {S_LOSS: "fresh_loss", S_BEST: "lowest_loss", S_DIST: "mean_min_dist"}
GUARDS = ["limit", "clip"]  # of `sampled.walk`, which are not used here
METHOD = ["dim", "loss", "optimizer", "n"]


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return the tables of N6."""
    settings, frames, rounded, without = context.entry, [], [], []
    budget = settings.etas, settings.updates, settings.fresh
    every = [context.dataset(key) for key in context.datasets()]
    for pairs in every:
        for n, (dim, seeds) in product(settings.samples, pairs.group_by("dim", maintain_order=True)):
            for part in seeds.iter_slices(together(len(PLAIN), len(settings.etas), n)):
                frames.append(walk(Pairs(part, n, context.seed), *budget))
                if dim == (1,):
                    rounded.append(walk(Pairs(part, n, context.seed), *budget, {NCE: _Rounded}))
                else:
                    without.append(walk(Pairs(part, n, context.seed, means=False), *budget))
    runs = pl.concat(frames)
    last, plain = ends(runs).drop(GUARDS), ends(pl.concat(without)).drop(GUARDS)
    chosen = selected(last)
    mean = distance(pl.concat(every))
    return {
        "gauss_runs": runs.drop("fresh_loss", *GUARDS),
        "gauss_final": last,
        "gauss_without_means": plain,
        "gauss_selected": chosen,
        "gauss_precision": precision(last, ends(pl.concat(rounded))),
        "gauss_population": pl.concat(population(loss, settings, mean) for loss in LOSSES),
        "comparisons": compared(context, last, chosen),
    }


class _Rounded(log_ratio.Nce):
    """NCE with sigmoid(psi) taken as 1 - sigmoid(-psi) and the reverse: below 1e-16 both are 0."""

    def _sigmoids(self, delta_PxKxD: Array) -> tuple[Array, Array]:
        positive, negative = super()._sigmoids(delta_PxKxD)
        return 1 - negative, 1 - positive


def precision(exact: pl.DataFrame, rounded: pl.DataFrame) -> pl.DataFrame:
    """Return rows of ``gauss_precision``: NCE-NGD on the same samples, with sigmoids to all digits and rounded."""
    key = ["n", "eta", "seed"]
    parts = {"exact": exact.filter(dim=1, loss=NCE, optimizer=NGD), "rounded": rounded.filter(optimizer=NGD)}
    return pl.concat(
        part.select(*key, "min_dist", "final_dist", "fresh_loss", "skipped", sigmoid=pl.lit(name))
        for name, part in parts.items()
    ).sort(*key, "sigmoid")


def distance(pairs: pl.DataFrame) -> float:
    """Return R of the 1-d pairs, the same for every seed: at variance 1 the first coordinate of tau is the mean."""
    rows = pairs.filter(dim=1)
    return float(rows["tau_star"][0][0] - rows["tau_q"][0][0])


def population(loss: str, settings: Sampled, mean: float) -> pl.DataFrame:
    """Return rows of ``gauss_population``: 1-d, R = ``mean``, without samples."""
    return pl.DataFrame(list(_population(loss, settings, mean)))


def _population(loss: str, settings: Sampled, mean: float) -> Iterator[dict[str, Any]]:
    means = np.array([mean])
    problem, optimum = log_ratio.mean_problem(loss, means), families.mean_optimum(means)
    eta = np.array(settings.population_etas, float)[:, None]
    for optimizer in OPTIMIZERS:
        delta = np.zeros((1, len(eta), 2))
        best = np.full(len(eta), np.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(settings.updates + 1):
                dist = np.linalg.norm(delta - optimum, axis=-1)[0]
                best = np.fmin(best, dist)
                delta = log_ratio.RULES[optimizer](problem, delta, eta)
        for rate, smallest, last in zip(eta[:, 0], best, dist, strict=True):
            yield {
                "loss": loss,
                "optimizer": optimizer,
                "eta": float(rate),
                "min_dist": float(smallest),
                "diverged": not np.isfinite(last),
            }


# Which step size each rule selects, and how far the methods then differ


def selected(final: pl.DataFrame) -> pl.DataFrame:
    """Return rows of ``gauss_selected``: the step size that each rule selects for each method.

    Of the step sizes at which no seed diverged, it is the one with the lowest mean loss on fresh samples
    after the last update (S-loss), with the lowest mean of the lowest losses during the runs (S-best), or with the
    lowest mean running-minimum distance (S-dist).
    """
    means = final.group_by([*METHOD, "eta"], maintain_order=True).agg(
        pl.col("diverged").any(),
        pl.col("min_dist").mean().alias("mean_min_dist"),
        pl.col("min_dist").std().alias("sd_min_dist"),
        pl.col("fresh_loss", "lowest_loss").mean(),
    )
    usable = means.filter(~pl.col("diverged"), pl.col("fresh_loss").is_finite())
    best = [
        usable.sort(column, "eta", maintain_order=True)
        .group_by(METHOD, maintain_order=True)
        .first()
        .with_columns(rule=pl.lit(rule))
        for rule, column in CRITERION.items()
    ]
    chosen = pl.concat(best).drop("lowest_loss").sort(*METHOD, "rule")
    return at_edge(chosen, final, METHOD)


def compared(context: Inputs, final: pl.DataFrame, chosen: pl.DataFrame) -> pl.DataFrame:
    """Return table ``comparisons``: smallest distances at the same step size, at that which a rule selects, and at that
    which is standard."""
    found, confidence = Measurements(context), context.settings.confidence
    final = final.filter(n=SAMPLES)

    def between(comparison: Comparison, pair: tuple[str, str], tried: pl.DataFrame, taken: pl.DataFrame) -> None:
        first, second = (_of(taken, method) for method in pair)
        compare(found, comparison, tried, first, second, "min_dist", confidence)

    for (dim, eta, pair), comparison in AT_ETA.items():
        same = final.filter(dim=dim, eta=eta)
        between(comparison, pair, same, same)
    key = [*METHOD, "eta"]
    for (dim, rule, pair), comparison in [*BY_RULE.items(), ((ONE, S_LOSS, NORMALISED), FRACTION)]:
        tried = final.filter(dim=dim)
        between(comparison, pair, tried, tried.join(chosen.filter(rule=rule).select(key), on=key))
    many = final.filter(dim=SIXTEEN)
    slow = _of(many, "NCE-GD").filter(pl.col("eta") <= STANDARD_STEP).group_by("seed").agg(pl.col("min_dist").min())
    for comparison, rows in ((STANDARD, slow), (LARGE, _of(many, "NCE-NGD").filter(eta=LARGE_STEP))):
        if rows.height:
            found.add(comparison, rows["min_dist"])
        else:
            found.not_run(comparison)
    return found.table()


def _of(rows: pl.DataFrame, method: str) -> pl.DataFrame:
    loss, optimizer = METHODS[method]
    return rows.filter(loss=loss, optimizer=optimizer)
