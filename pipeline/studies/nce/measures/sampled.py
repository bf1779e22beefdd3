"""Descent on fresh samples of two Gaussians, many methods, step sizes and seeds together (Liu 2024, section 4.1.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.languages import exponential_families as families
from pipeline.studies.nce.exact import exponential_family as log_ratio
from pipeline.studies.nce.exact.exponential_family import ENCE, NCE, Array
from schemas.nce.tables import ADAM, GD, MOMENTUM, NGD

Loss = log_ratio.Nce | log_ratio.Ence
LOSSES: dict[str, type[Loss]] = {NCE: log_ratio.Nce, ENCE: log_ratio.Ence}
LARGEST_BATCH = 4_000_000  # numbers in one array of log-ratios: 32 MB
DECAY = 0.9  # of momentum (Polyak 1964), its usual value; the source has none
BETAS, EPS = (0.9, 0.999), 1e-8  # of Adam, as in Kingma & Ba 2015


@dataclass(frozen=True)
class Method:
    """An optimiser, and what is done to single samples: gradients no longer than ``limit`` (NCE-NUM3), log-ratios cut
    off at ``clip`` (NCE-NUM4); None: nothing."""

    optimizer: str
    limit: float | None = None
    clip: float | None = None


PLAIN = (Method(GD), Method(NGD))


@dataclass
class Pairs:
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


def together(methods: int, etas: int, n: int) -> int:
    """Return how many seeds may be walked side by side."""
    return max(LARGEST_BATCH // (methods * etas * 2 * n), 1)


def sample_slopes(problem: Loss, psi_PxKxN: Array) -> Array:
    """Return the derivative of each sample's loss by its log-ratio, (P, K, N)."""
    data = (problem.data_PxN > 0)[:, None]
    sign = np.where(data, -1.0, 1.0)
    if isinstance(problem, log_ratio.Nce):
        return sign / (1 + np.exp(-sign * psi_PxKxN))
    return sign * np.exp(sign * psi_PxKxN / 2) / 2


def guarded_gradient(problem: Loss, delta_PxKxD: Array, limit: float | None, clip: float | None) -> Array:
    """Return the gradient (P, K, D) in which no sample's part is longer than ``limit``, nor of a log-ratio beyond
    ``clip`` (section 4.1.6, per-sample gradient clipping and per-sample log ratio clipping)."""
    psi = problem.ratio(delta_PxKxD)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        slope = sample_slopes(problem, psi)
        if clip is not None:
            slope[np.abs(psi) > clip] = 0.0  # cut off there, so constant
        if limit is not None:
            length = np.linalg.norm(problem.statistics_PxDxN, axis=1)[:, None]
            # Where a slope overflows, its sign and the limit are what is left of it.
            slope = np.sign(slope) * np.minimum(np.abs(slope), limit / length)
        slope *= (problem.data_PxN + problem.noise_PxN)[:, None] / 2
        return problem.first_moment(slope)


class _State:
    """What the optimisers remember: first and second moments (P, K, D) of the paths of one loss."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.mean, self.square = np.zeros(shape), np.zeros(shape)

    def direction(self, optimizer: str, rows: slice, gradient: Array, step: int) -> Array:
        """Return what ``optimizer`` multiplies by the step size, at 0-based ``step``."""
        if optimizer == GD:
            return gradient
        if optimizer == NGD:
            return log_ratio.normalised(gradient)
        if optimizer == MOMENTUM:
            self.mean[:, rows] = DECAY * self.mean[:, rows] + gradient
            return self.mean[:, rows]
        assert optimizer == ADAM
        first, second = BETAS
        self.mean[:, rows] = first * self.mean[:, rows] + (1 - first) * gradient
        self.square[:, rows] = second * self.square[:, rows] + (1 - second) * gradient**2
        mean = self.mean[:, rows] / (1 - first ** (step + 1))
        return mean / (np.sqrt(self.square[:, rows] / (1 - second ** (step + 1))) + EPS)


def walk(
    pairs: Pairs,
    etas: Sequence[float],
    updates: int,
    fresh: int,
    losses: Mapping[str, type[Loss]] = LOSSES,
    methods: Sequence[Method] = PLAIN,
) -> pl.DataFrame:
    """Return rows of ``gauss_runs`` for the seeds of ``pairs``, with ``fresh_loss`` at the last step, and ``limit`` and
    ``clip`` of each method.

    All methods of a seed see the same samples. A path whose parameters are not finite any more has diverged.
    """
    eta = np.tile(np.array(etas, float), len(methods))[:, None]
    rows = [slice(i * len(etas), (i + 1) * len(etas)) for i in range(len(methods))]
    normalise = np.repeat([method.optimizer == NGD for method in methods], len(etas))
    shape = (updates + 1, len(pairs.frame), len(eta))
    delta = {loss: np.zeros((*shape[1:], pairs.optimum_Px1xD.shape[2])) for loss in losses}
    state = {loss: _State(delta[loss].shape) for loss in losses}
    dist, batch = ({loss: np.full(shape, np.nan) for loss in losses} for _ in range(2))
    skipped = {loss: np.zeros(shape, bool) for loss in losses}
    for step in range(updates + 1):
        points = pairs.sample(pairs.n)
        for loss, kind in losses.items():
            at, problem = delta[loss], kind(*points)
            with np.errstate(over="ignore", invalid="ignore"):
                dist[loss][step] = np.linalg.norm(at - pairs.optimum_Px1xD, axis=-1)
                batch[loss][step] = problem.loss(at)
                if step < updates:
                    gradient = _gradients(problem, at, methods, rows)
                    skipped[loss][step] = normalise & ~gradient.any(-1)
                    parts = zip(methods, rows, strict=True)
                    move = eta * np.concatenate(
                        [state[loss].direction(m.optimizer, row, gradient[:, row], step) for m, row in parts], axis=1
                    )
                    delta[loss] = np.where(np.isfinite(move).all(-1, keepdims=True), at - move, np.nan)
    points = pairs.sample(fresh)
    with np.errstate(over="ignore", invalid="ignore"):
        last = {loss: kind(*points).loss(delta[loss]) for loss, kind in losses.items()}
    return pl.concat(
        _frame(pairs, loss, etas, methods, dist[loss], batch[loss], skipped[loss], last[loss]) for loss in losses
    )


def _gradients(problem: Loss, at: Array, methods: Sequence[Method], rows: list[slice]) -> Array:
    if all(method.limit is None and method.clip is None for method in methods):
        return problem.gradient(at)
    return np.concatenate(
        [guarded_gradient(problem, at[:, row], m.limit, m.clip) for m, row in zip(methods, rows, strict=True)], axis=1
    )


def _frame(
    pairs: Pairs,
    loss: str,
    etas: Sequence[float],
    methods: Sequence[Method],
    dist: Array,
    batch: Array,
    skipped: Array,
    fresh: Array,
) -> pl.DataFrame:
    """Return the arrays (T, P, K) of a walk as one row per seed, path and step."""
    steps, seeds, paths = dist.shape
    dist, batch, skipped = (np.moveaxis(array, 0, -1).reshape(-1) for array in (dist, batch, skipped))
    known = np.where(np.isfinite(dist), dist, np.inf).reshape(seeds, paths, steps)
    best = np.minimum.accumulate(known, axis=-1)
    diverged = ~np.isfinite(known)  # later steps of such a path are not finite either

    def by_method(name: str, dtype: pl.DataType) -> pl.Series:
        values = [getattr(method, name) for method in methods for _ in range(len(etas) * steps)] * seeds
        return pl.Series(values, dtype=dtype)

    columns = {
        "seed": np.repeat(pairs.frame["seed"].to_numpy(), paths * steps),
        "optimizer": by_method("optimizer", pl.String()),
        "limit": by_method("limit", pl.Float64()),
        "clip": by_method("clip", pl.Float64()),
        "eta": np.tile(np.repeat(etas, steps), seeds * len(methods)),
        "step": np.tile(np.arange(steps), seeds * paths),
        "dist": dist,
        "min_dist": best.reshape(-1),
        "batch_loss": batch,
        "diverged": diverged.reshape(-1),
        "skipped": skipped,
        "fresh_loss": np.repeat(fresh.reshape(-1), steps),
    }
    return pl.DataFrame(columns).with_columns(
        pl.lit(pairs.dim, pl.Int8).alias("dim"), pl.lit(loss).alias("loss"), pl.lit(pairs.n, pl.Int32).alias("n")
    )


def ends(runs: pl.DataFrame) -> pl.DataFrame:
    """Return how each path of `walk` ended, rows of ``gauss_final`` with ``limit`` and ``clip``."""
    key = ["dim", "loss", "optimizer", "limit", "clip", "eta", "n", "seed"]
    last = pl.col("step").max() == pl.col("step")
    return runs.group_by(key, maintain_order=True).agg(
        pl.col("fresh_loss", "min_dist", "diverged").filter(last).first(),
        pl.col("dist").filter(last).first().alias("final_dist"),
        pl.col("batch_loss").filter(pl.col("batch_loss").is_finite()).min().alias("lowest_loss"),
        pl.col("skipped").sum(),
    )
