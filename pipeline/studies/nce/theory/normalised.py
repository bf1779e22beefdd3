"""Normalised gradients need steps by the condition number, not by the scale (Liu 2024, Lemma 51, Theorem 19,
Corollary 2; chapter 5.9, 5.10)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.languages.exponential_families import Array, mean_optimum
from pipeline.studies.nce.constructions import (
    LOSSES,
    NAMES,
    SOURCE,
    count,
    distances,
    grid,
    path,
    row,
    rows,
    slope,
    unit_vectors,
)
from pipeline.studies.nce.exact import exponential_family as log_ratio
from pipeline.studies.nce.exact.exponential_family import NCE

LEMMA_51, THEOREM_19, COROLLARY_2 = (SOURCE.format(at) for at in ("Lemma 51", "Theorem 19", "Corollary 2"))
ASYMPTOTIC = (8.0, 10.0, 12.0, 16.0, 20.0)  # R over which the exponent of the bound is read
SMALLER = 1000  # how much too small a step size is, to break the bound
LONGEST = 100  # times the bound: no path of these checks is cut off


@dataclass(frozen=True)
class Setting:
    """One loss at one R with delta = 1/beta_Z = 1/R: gamma and T of Theorem 19, from measured beta_u, beta_l."""

    loss: str
    mean: float
    gamma: float
    bound: float

    @property
    def delta(self) -> float:
        """Radius of the ball around tau_* that an iterate must enter."""
        return 1 / self.mean


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Lemma 51, Theorem 19 and Corollary 2."""
    checks = []
    for loss in LOSSES:
        settings = [_setting(loss, mean, entry) for mean in entry.means]
        rng = stream(seed, "nce", theory_id, loss)
        checks += [*_lemma(settings, entry.draws, rng), *_theorem(settings)]
    settings = [_setting(NCE, mean, entry) for mean in entry.means]
    checks += [
        *_printed_lemma(settings, stream(seed, "nce", theory_id, "printed")),
        *_printed_step(settings[1]),
        *_rate(settings[1]),
        *_corollary(),
    ]
    return rows(theory_id, "normalised gradients", THEOREM_19, checks)


def _setting(loss: str, mean: float, entry: Any) -> Setting:
    means = np.array([mean])
    kappa = log_ratio.curvature(loss, means)[2]
    upper, lower = log_ratio.stability(loss, means, 1 / means, entry.radii, entry.angles)
    distance = np.linalg.norm(mean_optimum(mean))
    gamma = np.sqrt(lower / (upper * kappa)) / means
    return Setting(loss, mean, float(gamma[0]), float((upper * kappa / lower)[0] * (distance * mean) ** 2))


def outside(setting: Setting, rng: np.random.Generator, draws: int) -> Array:
    """Return random delta (1, K, 2) outside the ball of radius delta around tau_*, most of them near it."""
    far = setting.delta * (1 + rng.exponential(1.0, (draws, 1)))
    return mean_optimum(setting.mean) + far * unit_vectors(rng, draws)


def _lemma(settings: list[Setting], draws: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    worst = []
    for setting in settings:
        problem = log_ratio.mean_problem(setting.loss, setting.mean)
        inside = mean_optimum(setting.mean) + setting.gamma * unit_vectors(rng, draws)
        worst.append((problem.loss(inside) / problem.loss(outside(setting, rng, draws))).max())
    name, first = NAMES[settings[0].loss], settings[0].loss
    yield row(
        f"{first}-lemma-51",
        f"L(tau_* + gamma u) <= L(tau) outside the delta ball, {name}: largest ratio",
        f"{grid([s.mean for s in settings])}, {draws} unit vectors and parameters each",
        largest(worst),
        "<=",
        1.0,
        source=LEMMA_51,
    )


def _theorem(settings: list[Setting]) -> Iterator[dict[str, Any]]:
    excess = []
    for setting in settings:
        loss, mean = setting.loss, setting.mean
        walked = path(loss, mean, "ngd", setting.gamma, setting.delta, int(setting.bound) + 1)
        squared = distances(mean, walked) ** 2
        excess.append(float((np.diff(squared) + setting.gamma**2).max(initial=-np.inf)))
        steps = count(walked)
        yield row(
            f"{loss}-steps-{mean:g}",
            f"NGD on {NAMES[loss]} with eta = gamma enters the delta ball within T steps: steps over T",
            f"R = {mean:g}, delta = 1/R",
            steps / setting.bound,
            "<=",
            1.0,
            detail=f"{steps:.0f} steps, T = {setting.bound:.4g}",
        )
    yield row(
        f"{settings[0].loss}-progress",
        "Outside the delta ball every step brings the squared distance down by gamma^2: largest excess",
        grid([s.mean for s in settings]),
        largest(excess),
        "<=",
        1e-12,
    )


def _printed_lemma(settings: list[Setting], rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield rows on Lemma 51, which prints gamma delta/|g| where its proof uses gamma g/|g|: an evident misprint.

    With exponentially small gradients the printed form is no small step.
    """
    setting = settings[-1]
    problem = log_ratio.mean_problem(NCE, setting.mean)
    tau = outside(setting, rng, 100)
    gradient, loss = problem.gradient(tau), problem.loss(tau)
    unit = log_ratio.normalised(gradient)
    size = np.linalg.norm(gradient, axis=-1, keepdims=True)
    notes = {"erratum": "nce-lemma-51", "source": LEMMA_51}
    moves = {"printed": ("gamma delta/|g|", setting.delta / size), "corrected": ("gamma g/|g|", 1.0)}
    evident = {"printed": " (an evident misprint)", "corrected": ""}
    for form, (name, length) in moves.items():
        ratio = problem.loss(mean_optimum(setting.mean) + setting.gamma * length * unit) / loss
        yield notes | row(
            f"lemma-51-{form}",
            f"L(tau_* + {name}) <= L(tau), along g{evident[form]}: largest ratio",
            f"R = {setting.mean:g}, 100 parameters",
            float(ratio.max()),
            ">=" if form == "printed" else "<=",
            1.0,
            form=form,
        )


def _printed_step(setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield rows on the step size of Theorem 19, whose bound needs eta = gamma.

    Any smaller step size, which is allowed as printed, takes more steps.
    """
    notes = {"erratum": "nce-theorem-19-step", "size": f"NCE, R = {setting.mean:g}, delta = 1/R"}
    for form, factor in (("printed", SMALLER), ("corrected", 1)):
        eta = setting.gamma / factor
        walked = path(NCE, setting.mean, "ngd", eta, setting.delta, LONGEST * int(setting.bound))
        step = f"eta = gamma/{factor}, allowed by eta <= gamma" if factor > 1 else "eta = gamma"
        yield notes | row(
            f"theorem-19-{form}",
            f"NGD with {step}: steps over T",
            notes["size"],
            count(walked) / setting.bound,
            ">=" if factor > 1 else "<=",
            1.0,
            form=form,
        )


def _rate(setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield rows on the distance delta met within k steps, against k: gamma is proportional to delta."""
    deltas = setting.delta / np.array([1, 4, 16, 64])
    counts = [
        count(path(NCE, setting.mean, "ngd", setting.gamma * delta / setting.delta, float(delta), 100_000))
        for delta in deltas
    ]
    exponent = slope(np.log(counts), np.log(deltas))
    size = f"NCE, R = {setting.mean:g}, delta = {deltas[0]:g} to {deltas[-1]:g}"
    statement = "Exponent of k in the squared distance met within k steps, step size of Theorem 19: the printed -2"
    yield row(
        "rate",
        statement,
        size,
        2 * exponent,
        "within",
        -2.0,
        tolerance=0.2,
        source=SOURCE.format("section 4.1.2"),
        detail="steps " + ", ".join(f"{c:.0f}" for c in counts),
    )


def _corollary() -> Iterator[dict[str, Any]]:
    """Yield rows on Corollary 2.

    In it kappa |tau_0 - tau_*|^2 is the bound times delta^2, up to beta_u/beta_l = O(1).
    """
    means = np.array(ASYMPTOTIC)
    squared = (mean_optimum(means)[:, 0] ** 2).sum(-1)
    exponent = slope(np.log(means), np.log(log_ratio.curvature(NCE, means)[2] * squared))
    notes = {"erratum": "nce-corollary-2", "source": COROLLARY_2, "size": grid(means)}
    statement = "Exponent of R in the bound of Theorem 19 times delta^2, NCE"
    yield notes | row(
        "corollary-2-printed",
        f"{statement}: not the printed 6",
        notes["size"],
        exponent,
        "beyond",
        6.0,
        tolerance=2.0,
        form="printed",
    )
    yield notes | row(
        "corollary-2-corrected",
        f"{statement}: on its way to 10 = 6 + 4",
        notes["size"],
        exponent,
        "within",
        9.7,
        tolerance=0.4,
        form="corrected",
    )
