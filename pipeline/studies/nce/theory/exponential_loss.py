"""The loss eNCE is well conditioned near its optimum (Liu 2024, Lemmas 53, 54, Theorem 21; chapter 5.11
to 5.13)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import stream
from pipeline.languages import exponential_families as families
from pipeline.languages.exponential_families import Array, mean_optimum
from pipeline.studies.nce.constructions import SOURCE, count, grid, path, row, rows
from pipeline.studies.nce.exact import exponential_family as log_ratio
from pipeline.studies.nce.exact.exponential_family import ENCE

DIMENSION, VARIANCES = 16, (6.0, 12.0)
LEMMA_53, LEMMA_54, THEOREM_21 = (SOURCE.format(at) for at in ("Lemma 53", "Lemma 54", "Theorem 21"))
RADII = 12
BETA_U = {1.0: 1.60, 2.0: 1.20, 4.0: 1.09, 8.0: 1.05}  # largest relative eigenvalue in the ball, by R
DEVIATIONS = 5.0  # standard errors within which Monte Carlo must agree with a closed form


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Lemmas 53, 54 and Theorem 21."""
    rng = stream(seed, "nce", theory_id)
    checks = [*_optimum(entry), *_sixteen(entry, rng), *_ball(entry), *_theorem_21(entry)]
    return rows(theory_id, "exponential loss", LEMMA_53, checks)


def _optimum(entry: Any) -> Iterator[dict[str, Any]]:
    means = np.array(entry.means, float)
    moments = families.mean_overlap(means)[:, None, None] / 4 * families.mean_moments(means / 2)
    size = np.linalg.norm(moments, axis=(-2, -1))
    for check, how, problem in (
        ("identity", "in closed form", log_ratio.mean_problem(ENCE, means)),
        ("identity-quadrature", "by quadrature", log_ratio.Ence(*families.mean_points(means))),
    ):
        apart = np.linalg.norm(problem.hessian(mean_optimum(means))[:, 0] - moments, axis=(-2, -1))
        yield row(
            check,
            f"H_* = BC/4 E[T T^T] at the midpoint of theta_* and theta_q, {how}: largest relative difference",
            grid(means),
            (apart / size).max(),
            "<=",
            1e-10,
        )
    kappa = log_ratio.curvature(ENCE, means)[2]
    bound = families.largest_moment(means) ** 2  # lambda_min = 1/lambda_max
    shown = "; ".join(f"R = {m:g}: {k:.4g} <= {b:.4g}" for m, k, b in zip(means, kappa, bound, strict=True))
    yield row(
        "kappa",
        "kappa <= lambda_max/lambda_min = ((R + sqrt(R^2 + 4))/2)^4: largest ratio of the sides",
        grid(means),
        (kappa / bound).max(),
        "<=",
        1.0,
        detail=shown,
    )


def _sixteen(entry: Any, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield rows on closed forms in 33 coordinates, against Monte Carlo and over draws of the variances."""
    variances = rng.uniform(*VARIANCES, (entry.draws, DIMENSION))
    between = families.diagonal_between(variances[0])
    x = np.sqrt(between) * rng.standard_normal((entry.samples, DIMENSION))
    statistics_DxN = families.diagonal_statistics(x)
    closed = families.diagonal_moments(np.zeros(DIMENSION), between)
    sampled, squares = (_products(t_DxN) / entry.samples for t_DxN in (statistics_DxN, statistics_DxN**2))
    spread = np.sqrt(np.maximum(squares - sampled**2, 0) / entry.samples)
    exact = spread < 1e-12  # T_D T_D = 1
    deviations = np.abs(sampled - closed)[~exact] / spread[~exact]
    size = f"d = {DIMENSION}, {entry.samples} samples"
    yield row(
        "moments-16",
        "E[T T^T] between P* and Q in 33 coordinates, closed form against Monte Carlo: largest "
        "difference in standard errors",
        size,
        deviations.max(),
        "<=",
        DEVIATIONS,
    )
    noise = rng.standard_normal((entry.samples, DIMENSION))
    roots = np.exp((-(noise**2) * (1 / variances[0] - 1) - np.log(variances[0])).sum(-1) / 4)
    gap = (roots.mean() - families.diagonal_overlap(variances[0])) / (roots.std() / np.sqrt(entry.samples))
    yield row(
        "overlap-16",
        "BC of P* and Q, closed form against E_Q sqrt(p/q) by Monte Carlo: difference in standard errors",
        size,
        abs(gap),
        "<=",
        DEVIATIONS,
    )
    kappa = np.array([_condition(row_d) for row_d in variances])
    error = kappa.std(ddof=1) / np.sqrt(len(kappa))
    size = f"d = {DIMENSION}, {entry.draws} draws of the variances"
    yield row(
        "kappa-16",
        "kappa of eNCE at tau_*, mean over draws: in the hundreds, not exponential",
        size,
        kappa.mean(),
        "within",
        147.0,
        tolerance=15.0,
        detail=f"standard error {error:.2g}",
    )
    overlap = families.diagonal_overlap(variances)
    yield row(
        "bc-16",
        "BC of P* and Q, mean over draws",
        size,
        overlap.mean(),
        "within",
        0.018,
        tolerance=0.004,
        detail=f"from {overlap.min():.3g} to {overlap.max():.3g}",
    )


def _products(t_DxN: Array) -> Array:
    """Return sums of products of rows, (D, D), by loops: BLAS would add in an order that depends on its threads."""
    return np.einsum("in,jn->ij", t_DxN, t_DxN)


def _condition(variance: Array) -> float:
    moments = families.diagonal_moments(np.zeros(DIMENSION), families.diagonal_between(variance))
    return float(np.linalg.cond(moments))


def relative_eigenvalues(mean: float, angles: int) -> tuple[float, float]:
    """Return the smallest and the largest eigenvalue of H_*^-1 H(tau_* + c u) for c up to 1/beta_Z = 1/R."""
    problem = log_ratio.mean_problem(ENCE, mean)
    hessian = problem.hessian(log_ratio.ball(np.array([mean]), np.array([1 / mean]), RADII, angles))[0]
    root = np.linalg.inv(np.linalg.cholesky(problem.hessian(mean_optimum(mean))[0, 0]))
    values = np.linalg.eigvalsh(root @ hessian @ root.T)
    return float(values.min()), float(values.max())


def _ball(entry: Any) -> Iterator[dict[str, Any]]:
    lowest, highest, allowed = [], [], []
    for mean in entry.means:
        low, high = relative_eigenvalues(mean, entry.angles)
        lowest.append(low)
        highest.append(high)
        allowed.append(2 * np.e * float(families.largest_moment(mean)) ** 2)
        if mean in BETA_U:
            yield row(
                f"stability-{mean:g}",
                "Largest eigenvalue of H_*^-1 H(tau_* + c u), c <= 1/beta_Z",
                f"R = {mean:g}, {RADII} radii, {entry.angles} angles",
                high,
                "within",
                BETA_U[mean],
                tolerance=0.006 if entry.angles >= 48 else 0.05,
                source=LEMMA_54,
            )
    size = f"{grid(entry.means)}, {RADII} radii, {entry.angles} angles"
    yield row(
        "stability-upper",
        "beta_u = 2e lambda_max/lambda_min is enough: largest ratio of eigenvalue to it",
        size,
        largest(np.divide(highest, allowed)),
        "<=",
        1.0,
        source=LEMMA_54,
        detail="2e alone would do",
    )
    yield row(
        "stability-lower",
        "The Hessian is nowhere below H_*, so beta_l = 1, stronger than the printed "
        "lambda_min/(2e lambda_max): smallest eigenvalue",
        size,
        smallest(lowest),
        ">=",
        1 - 1e-9,
        source=LEMMA_54,
    )


def _theorem_21(entry: Any) -> Iterator[dict[str, Any]]:
    """Yield rows on Theorem 21: the step size of Theorem 19 with the constants of Lemmas 53 and 54."""
    for mean in entry.steps:
        ratio, delta = float(families.largest_moment(mean)) ** 2, 1 / mean
        eta = delta / (2 * np.e * ratio**1.5)  # kappa and beta_u/beta_l at their bounds
        bound = 4 * np.e**2 * ratio**3 * float((mean_optimum(mean) ** 2).sum()) / delta**2
        steps = count(path(ENCE, mean, "ngd", eta, delta, int(bound) + 1))
        yield row(
            f"theorem-21-{mean:g}",
            "NGD on eNCE takes at most 4 e^2 (lambda_max/lambda_min)^3 "
            "|tau_0 - tau_*|^2/delta^2 steps: steps over bound",
            f"R = {mean:g}, delta = 1/R",
            steps / bound,
            "<=",
            1.0,
            source=THEOREM_21,
            detail=f"{steps:.0f} steps, bound {bound:.4g}",
        )
