"""Losses, gradients and Hessians against each other; minimiser and convexity (Liu 2024, Definitions 19, 20,
Lemmas 44, 45; chapter 5.1, 5.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from scipy import integrate

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import stream
from pipeline.languages import exponential_families as families
from pipeline.languages.exponential_families import Array, mean_optimum
from pipeline.studies.nce.constructions import LOSSES, NAMES, SOURCE, grid, near_segment, row, rows
from pipeline.studies.nce.exact import exponential_family as log_ratio
from pipeline.studies.nce.exact.exponential_family import ENCE, NCE, Problem

STEP = 1e-4  # of central differences
DIMENSION, SAMPLES = 16, 200  # of the sampled problem in 33 coordinates
MINIMISER, CONVEXITY = SOURCE.format("Lemma 44"), SOURCE.format("Lemma 45")


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Definitions 19, 20 and Lemmas 44, 45."""
    rng = stream(seed, "nce", theory_id)
    checks = [*_derivatives(entry, rng), *_two_ways(entry), *_minimiser(entry, rng), *_printed()]
    return rows(theory_id, "formulas", SOURCE.format("Definitions 19 and 20"), checks)


def differences(problem: Problem, delta_1xKxD: Array) -> tuple[float, float]:
    """Return the largest relative error of the gradient and of the Hessian against central differences."""
    d = delta_1xKxD.shape[-1]
    steps = STEP * np.eye(d)
    ahead, back = ([problem.loss(delta_1xKxD + sign * e) for e in steps] for sign in (1, -1))
    slope = np.stack([(a - b) / (2 * STEP) for a, b in zip(ahead, back, strict=True)], axis=-1)
    ahead, back = ([problem.gradient(delta_1xKxD + sign * e) for e in steps] for sign in (1, -1))
    bend = np.stack([(a - b) / (2 * STEP) for a, b in zip(ahead, back, strict=True)], axis=-1)
    gradient, hessian = problem.gradient(delta_1xKxD), problem.hessian(delta_1xKxD)
    first = np.linalg.norm(gradient - slope, axis=-1) / np.linalg.norm(gradient, axis=-1)
    second = np.linalg.norm(hessian - bend, axis=(-2, -1)) / np.linalg.norm(hessian, axis=(-2, -1))
    return float(first.max()), float(second.max())


def _derivatives(entry: Any, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for loss in LOSSES:
        errors = [
            differences(log_ratio.mean_problem(loss, mean), near_segment(rng, mean, entry.points))
            for mean in entry.means
        ]
        size = f"{grid(entry.means)}, {entry.points} parameters near the segment"
        for name, values in zip(("gradient", "hessian"), zip(*errors, strict=True), strict=True):
            statement = f"The {name} of {NAMES[loss]} agrees with central differences: largest relative error"
            yield row(f"{loss}-{name}", statement, size, largest(values), "<=", 1e-6)
        first, second = differences(_sampled(loss, rng), 0.02 * rng.standard_normal((1, 5, 2 * DIMENSION + 1)))
        size = f"d = {DIMENSION}, {2 * DIMENSION + 1} coordinates, {SAMPLES} samples of each distribution"
        statement = f"So do those of {NAMES[loss]} on samples of diagonal Gaussians"
        yield row(f"{loss}-sampled", statement, size, largest(first, second), "<=", 1e-6)


def _sampled(loss: str, rng: np.random.Generator) -> Problem:
    x = rng.standard_normal((1, 2 * SAMPLES, DIMENSION))
    x[:, :SAMPLES] *= 3
    data = np.repeat([1 / SAMPLES, 0.0], SAMPLES)[None]
    kind = log_ratio.Nce if loss == NCE else log_ratio.Ence
    return kind(families.diagonal_statistics(x), data, 1 / SAMPLES - data)


def _two_ways(entry: Any) -> Iterator[dict[str, Any]]:
    means = np.array(entry.means, float)
    closed = log_ratio.mean_problem(ENCE, means)
    quadrature = log_ratio.Ence(*families.mean_points(means))
    share = np.linspace(0, 1, 11)[:, None]
    delta = mean_optimum(means) * share
    exact, estimates = (
        [getattr(problem, name)(delta).reshape(*delta.shape[:2], -1) for name in ("loss", "gradient", "hessian")]
        for problem in (closed, quadrature)
    )
    # The gradient vanishes at tau_*: there it is compared with the loss.
    size = [np.maximum(np.linalg.norm(one, axis=-1), exact[0][..., 0]) for one in exact]
    worst = largest(
        (np.linalg.norm(a - b, axis=-1) / scale).max() for a, b, scale in zip(exact, estimates, size, strict=True)
    )
    yield row(
        "ence-closed-form",
        "Loss, gradient and Hessian of eNCE by quadrature agree with their closed forms: largest relative error",
        f"{grid(means)}, 11 places from tau_q to tau_*",
        worst,
        "<=",
        1e-8,
        source=SOURCE.format("Eq. 4.11, 4.12"),
    )
    trapezoid = log_ratio.mean_problem(NCE, means).loss(mean_optimum(means))[:, 0]
    adaptive = np.array([_adaptive(mean) for mean in means])
    yield row(
        "nce-adaptive",
        "The NCE loss at tau_* by the trapezoid rule agrees with adaptive quadrature: largest relative difference",
        grid(means),
        float(np.abs(trapezoid / adaptive - 1).max()),
        "<=",
        1e-9,
    )


def _adaptive(mean: float) -> float:
    def density(x: float) -> float:
        psi = mean * x - mean**2 / 2
        data = families.normal_density(x, mean) * np.logaddexp(0, -psi)
        return float(data + families.normal_density(x, 0) * np.logaddexp(0, psi)) / 2

    limits = (-families.TAIL, mean + families.TAIL)
    return float(integrate.quad(density, *limits, points=[mean / 2], epsabs=0, epsrel=1e-11, limit=200)[0])


def _minimiser(entry: Any, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    size = f"{grid(entry.means)}, {entry.pairs} pairs of parameters each"
    for loss in LOSSES:
        gradients, convexity, above, eigenvalues = [], [], [], []
        for mean in entry.means:
            problem, optimum = log_ratio.mean_problem(loss, mean), mean_optimum(mean)
            gradients.append(float(np.linalg.norm(problem.gradient(optimum))))
            first, second = (near_segment(rng, mean, entry.pairs) for _ in range(2))
            average = (problem.loss(first) + problem.loss(second)) / 2
            convexity.append((problem.loss((first + second) / 2) - average).max())
            above.append((problem.loss(first) - problem.loss(optimum)).min())
            eigenvalues.append(log_ratio.extremes(problem.hessian(first))[1].min())
        name = NAMES[loss]
        yield row(
            f"{loss}-stationary",
            f"The gradient of {name} vanishes at tau_*: largest norm",
            grid(entry.means),
            largest(gradients),
            "<=",
            1e-12,
            source=MINIMISER,
        )
        yield row(
            f"{loss}-minimum",
            f"{name} is smallest at tau_*: smallest L(tau) - L(tau_*)",
            size,
            smallest(above),
            ">=",
            0.0,
            source=MINIMISER,
        )
        yield row(
            f"{loss}-convex",
            f"{name} is convex: largest L(midpoint) - average",
            size,
            largest(convexity),
            "<=",
            1e-12,
            source=CONVEXITY,
        )
        yield row(
            f"{loss}-positive",
            f"The Hessian of {name} is positive: smallest eigenvalue",
            size,
            smallest(eigenvalues),
            ">=",
            0.0,
            source=CONVEXITY,
        )
    same = log_ratio.mean_problem(NCE, 0.0).hessian(mean_optimum(0.0))[0, 0]
    yield row(
        "nce-equal",
        "If P* = Q, the Hessian of NCE is E[T T^T]/4: largest difference",
        "R = 0",
        np.abs(same - families.mean_moments(0.0) / 4).max(),
        "<=",
        1e-12,
    )


def _printed() -> Iterator[dict[str, Any]]:
    """Yield rows on misprints of signs and factors."""
    mean = 2.0
    printed = np.array([mean, -(mean**2) / 2 - families.LOG_NORMALISER])
    notes = {"size": "R = 2", "erratum": "nce-optimum-sign", "source": SOURCE.format("section 4.1.3")}
    for form, tau in (("printed", printed), ("corrected", families.mean_point(mean))):
        mass = tau[0] ** 2 / 2 + families.LOG_NORMALISER - tau[1]  # log of the integral of exp(tau . T) h
        signs = ("-", "-") if form == "printed" else ("", "+")
        what = f"tau_* = [R, {signs[0]}R^2/2 {signs[1]} log sqrt(2 pi)]"
        comparison = ("beyond", 1e-9) if form == "printed" else ("within", 1e-12)
        yield notes | row(
            f"optimum-{form}",
            f"{what} as a density: logarithm of its integral, 0 if normalised",
            "R = 2",
            mass,
            comparison[0],
            0.0,
            tolerance=comparison[1],
            form=form,
        )
    at_noise = float(log_ratio.mean_problem(NCE, mean).loss(np.zeros((1, 1, 2)))[0, 0])
    notes = {"erratum": "nce-definition-20-sign", "source": SOURCE.format("remark after Definition 20")}
    yield notes | row(
        "loss-sign-printed",
        "log 1/(1 + exp(-y psi)) is the NCE loss: its value at tau_q over that of the loss",
        "R = 2",
        -np.log(2) / at_noise,
        "beyond",
        1.0,
        tolerance=0.5,
        form="printed",
    )
    yield notes | row(
        "loss-sign-corrected",
        "log(1 + exp(-y psi)) is the NCE loss: its value at tau_q over that of the loss",
        "R = 2",
        np.log(2) / at_noise,
        "within",
        1.0,
        tolerance=1e-12,
        form="corrected",
    )
    problem, optimum = log_ratio.mean_problem(ENCE, mean), mean_optimum(mean)
    moments = families.mean_overlap(mean) * families.mean_moments(mean / 2)
    traces = float(np.trace(problem.hessian(optimum)[0, 0]) / np.trace(moments))
    notes = {"erratum": "nce-eq-4-85-factor", "source": SOURCE.format("Eq. 4.85")}
    statement = "The Hessian of eNCE at tau_*, over E_*[exp(-psi/2) T T^T] + E_Q[exp(psi/2) T T^T] = 2 BC E[T T^T]"
    yield notes | row(
        "hessian-factor-printed",
        f"{statement}: printed without a factor",
        "R = 2",
        traces / 2,
        "beyond",
        1.0,
        tolerance=0.5,
        form="printed",
    )
    yield notes | row(
        "hessian-factor-corrected",
        f"{statement}: 1/8 by the chain rule",
        "R = 2",
        traces / 2,
        "within",
        1 / 8,
        tolerance=1e-12,
        form="corrected",
    )
