"""N6: descent on fresh samples of two Gaussians, all methods, step sizes and seeds together; step sizes selected by
three rules, and how far the methods then differ (Liu 2024, section 4.1.6, Figure 4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import exponential_families as families
from pipeline.models.log_ratio import exponential_family as log_ratio
from pipeline.models.log_ratio.exponential_family import ENCE, NCE, Array
from pipeline.studies.nce.names import METHODS
from schemas.nce.tables import GD, NGD, S_BEST, S_DIST, S_LOSS

if TYPE_CHECKING:
    from pipeline.studies.nce.params import Sampled

Loss = log_ratio.Nce | log_ratio.Ence
LOSSES: dict[str, type[Loss]] = {NCE: log_ratio.Nce, ENCE: log_ratio.Ence}
OPTIMIZERS = (GD, NGD)
LARGEST_BATCH = 4_000_000  # numbers in one array of log-ratios: 32 MB
# What the source orders: the first of each pair comes closer.
PAIRS = [("eNCE-NGD", "NCE-NGD"), ("NCE-NGD", "NCE-GD"), ("eNCE-NGD", "NCE-GD")]
CRITERION = {S_LOSS: "fresh_loss", S_BEST: "lowest_loss", S_DIST: "mean_min_dist"}


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return the tables of N6."""
    settings, frames, rounded, without = context.entry, [], [], []
    every = [context.dataset(key) for key in context.datasets()]
    for pairs in every:
        for n, (dim, seeds) in product(settings.samples, pairs.group_by("dim", maintain_order=True)):
            together = max(LARGEST_BATCH // (len(OPTIMIZERS) * len(settings.etas) * 2 * n), 1)
            for part in seeds.iter_slices(together):
                frames.append(walk(_Pairs(part, n, context.seed), settings, LOSSES))
                if dim == (1,):
                    rounded.append(walk(_Pairs(part, n, context.seed), settings, {NCE: _Rounded}))
                else:
                    without.append(walk(_Pairs(part, n, context.seed, means=False), settings, LOSSES))
    runs = pl.concat(frames)
    ends = final(runs)
    chosen = selected(ends)
    contrasts = [*_matched(context, ends), *_by_rule(context, ends, chosen)]
    mean = distance(pl.concat(every))
    return {
        "gauss_runs": runs.drop("fresh_loss"),
        "gauss_final": ends,
        "gauss_without_means": final(pl.concat(without)),
        "gauss_selected": chosen,
        "gauss_contrasts": pl.DataFrame(
            contrasts, schema_overrides={"eta": pl.Float64, "lo": pl.Float64, "hi": pl.Float64}
        ),
        "gauss_precision": precision(ends, final(pl.concat(rounded))),
        "gauss_population": pl.concat(population(loss, settings, mean) for loss in LOSSES),
    }


@dataclass
class _Pairs:
    """Pairs of Gaussians of one dimension, P seeds, and their samples: n of P* and n of Q for every update.

    Without ``means`` a diagonal pair has no coordinates for them, 17 instead of 33.
    """

    frame: pl.DataFrame
    n: int
    root: int
    means: bool = True

    def __post_init__(self) -> None:
        self.dim, seeds = self.frame["dim"][0], self.frame["seed"].to_list()
        star, noise = (np.array(self.frame[name].to_list()) for name in ("tau_star", "tau_q"))
        coordinates = np.arange(star.shape[1])
        self.kept = coordinates if self.means else np.delete(coordinates, slice(self.dim, 2 * self.dim))
        self.optimum_Px1xD = (star - noise)[:, None, self.kept]
        self.scale_Pxd = np.sqrt(np.array(self.frame["s"].to_list()))
        # The mean family names its mean first; the diagonal pairs are centred.
        self.mean_P = star[:, 0] if self.dim == 1 else np.zeros(len(seeds))
        self.streams = [stream(self.root, "nce", "gauss", self.dim, self.n, s) for s in seeds]

    def sample(self, n: int) -> tuple[Array, Array, Array]:
        """Return statistics (P, D, 2n) of n points of P* and n of Q, and their weights (P, 2n)."""
        x = np.stack([rng.standard_normal((2 * n, self.dim)) for rng in self.streams])
        x[:, :n] = self.mean_P[:, None, None] + self.scale_Pxd[:, None] * x[:, :n]
        weights = np.zeros((2, len(x), 2 * n))
        weights[0, :, :n] = weights[1, :, n:] = 1 / n
        statistics = families.mean_statistics(x[..., 0]) if self.dim == 1 else families.diagonal_statistics(x)
        return statistics if self.means else statistics[:, self.kept], *weights


class _Rounded(log_ratio.Nce):
    """NCE with sigmoid(psi) taken as 1 - sigmoid(-psi) and the reverse: below 1e-16 both are 0."""

    def _sigmoids(self, delta_PxKxD: Array) -> tuple[Array, Array]:
        positive, negative = super()._sigmoids(delta_PxKxD)
        return 1 - negative, 1 - positive


def walk(pairs: _Pairs, settings: Sampled, losses: Mapping[str, type[Loss]]) -> pl.DataFrame:
    """Return rows of ``gauss_runs`` for the seeds of ``pairs``, with ``fresh_loss`` at the last step.

    All methods of a seed see the same samples. A path whose parameters are not finite any more has diverged.
    """
    eta = np.tile(np.array(settings.etas, float), len(OPTIMIZERS))[:, None]
    normalise = np.repeat([name == NGD for name in OPTIMIZERS], len(settings.etas))[:, None]
    shape = (settings.updates + 1, len(pairs.frame), len(eta))
    delta = {loss: np.zeros((*shape[1:], pairs.optimum_Px1xD.shape[2])) for loss in losses}
    dist, batch = ({loss: np.full(shape, np.nan) for loss in losses} for _ in range(2))
    skipped = {loss: np.zeros(shape, bool) for loss in losses}
    for step in range(settings.updates + 1):
        points = pairs.sample(pairs.n)
        for loss, problem in losses.items():
            at = delta[loss]
            with np.errstate(over="ignore", invalid="ignore"):
                dist[loss][step] = np.linalg.norm(at - pairs.optimum_Px1xD, axis=-1)
                batch[loss][step] = problem(*points).loss(at)
                if step < settings.updates:
                    gradient = problem(*points).gradient(at)
                    skipped[loss][step] = normalise[:, 0] & ~gradient.any(-1)
                    move = eta * np.where(normalise, log_ratio.normalised(gradient), gradient)
                    delta[loss] = np.where(np.isfinite(move).all(-1, keepdims=True), at - move, np.nan)
    points = pairs.sample(settings.fresh)
    with np.errstate(over="ignore", invalid="ignore"):
        fresh = {loss: problem(*points).loss(delta[loss]) for loss, problem in losses.items()}
    return pl.concat(
        _frame(pairs, loss, settings, dist[loss], batch[loss], skipped[loss], fresh[loss]) for loss in losses
    )


def _frame(
    pairs: _Pairs, loss: str, settings: Sampled, dist: Array, batch: Array, skipped: Array, fresh: Array
) -> pl.DataFrame:
    """Return the arrays (T, P, K) of a walk as one row per seed, path and step."""
    steps, seeds, paths = dist.shape
    dist, batch, skipped = (np.moveaxis(array, 0, -1).reshape(-1) for array in (dist, batch, skipped))
    known = np.where(np.isfinite(dist), dist, np.inf).reshape(seeds, paths, steps)
    best = np.minimum.accumulate(known, axis=-1)
    diverged = ~np.isfinite(known)  # later steps of such a path are not finite either
    columns = {
        "seed": np.repeat(pairs.frame["seed"].to_numpy(), paths * steps),
        "optimizer": np.tile(np.repeat(OPTIMIZERS, len(settings.etas) * steps), seeds),
        "eta": np.tile(np.repeat(settings.etas, steps), seeds * len(OPTIMIZERS)),
        "step": np.tile(np.arange(steps), seeds * paths),
        "dist": dist,
        "min_dist": best.reshape(-1),
        "batch_loss": batch,
        "diverged": diverged.reshape(-1),
        "skipped": skipped,
        "fresh_loss": np.repeat(fresh.reshape(-1), steps),
    }
    return pl.DataFrame(columns).with_columns(
        pl.lit(pairs.dim, pl.Int8).alias("dim"),
        pl.lit(loss).alias("loss"),
        pl.lit(pairs.n, pl.Int32).alias("n"),
    )


def final(runs: pl.DataFrame) -> pl.DataFrame:
    """Return rows of ``gauss_final``: how each path of ``runs`` ended."""
    key = ["dim", "loss", "optimizer", "eta", "n", "seed"]
    last = pl.col("step").max() == pl.col("step")
    return runs.group_by(key, maintain_order=True).agg(
        pl.col("fresh_loss", "min_dist", "diverged").filter(last).first(),
        pl.col("dist").filter(last).first().alias("final_dist"),
        pl.col("batch_loss").filter(pl.col("batch_loss").is_finite()).min().alias("lowest_loss"),
        pl.col("skipped").sum(),
    )


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
    method = ["dim", "loss", "optimizer", "n"]
    means = final.group_by([*method, "eta"], maintain_order=True).agg(
        pl.col("diverged").any(),
        pl.col("min_dist").mean().alias("mean_min_dist"),
        pl.col("min_dist").std().alias("sd_min_dist"),
        pl.col("fresh_loss", "lowest_loss").mean(),
    )
    usable = means.filter(~pl.col("diverged"), pl.col("fresh_loss").is_finite())
    best = [
        usable.sort(column, "eta", maintain_order=True)
        .group_by(method, maintain_order=True)
        .first()
        .with_columns(rule=pl.lit(rule))
        for rule, column in CRITERION.items()
    ]
    return pl.concat(best).drop("lowest_loss").sort(*method, "rule")


def _matched(context: Inputs, final: pl.DataFrame) -> Iterator[dict[str, Any]]:
    for dim, n, eta in final.select("dim", "n", "eta").unique(maintain_order=True).iter_rows():
        same = final.filter(dim=dim, n=n, eta=eta)
        for pair in PAIRS:
            key = {"dim": dim, "n": n, "matched": "eta", "eta": eta}
            yield key | _contrast(context, key, pair, [_distances(same, method) for method in pair])


def _by_rule(context: Inputs, final: pl.DataFrame, chosen: pl.DataFrame) -> Iterator[dict[str, Any]]:
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
    context: Inputs, key: dict[str, Any], pair: tuple[str, str], samples: list[list[float]]
) -> dict[str, Any]:
    settings = context.settings
    rng = stream(context.seed, "nce", "contrast", *map(str, key.values()), *pair, "bootstrap")
    found = stats.bootstrap(
        stats.mean_difference, *samples, rng=rng, resamples=settings.resamples, confidence=settings.confidence
    )
    means = [sum(sample) / len(sample) for sample in samples]
    return {
        "first": pair[0], "second": pair[1], "first_mean": means[0], "second_mean": means[1],
        "value": found.value, "lo": found.lo, "hi": found.hi, "seeds": len(samples[0]),
    }  # fmt: skip
