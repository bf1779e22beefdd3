"""N1: the population losses of N(R, 1) against N(0, 1), and their Hessians (Liu 2024, 4.1.3; Lemmas 46 to 48)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.languages import exponential_families as families
from pipeline.studies.nce.exact import exponential_family as log_ratio
from pipeline.studies.nce.exact.exponential_family import ENCE, NCE, Array, Problem
from pipeline.studies.nce.measures.rates import Rate, Series, fitted
from schemas.nce.tables import LOG_R

RATES = [  # the factor exp(-R^2/8) taken out
    Rate("loss_opt", NCE, LOG_R, -1.0),
    Rate("sig_max", NCE, LOG_R, 1.0),
    Rate("sig_max", ENCE, LOG_R, 2.0),
    Rate("sig_min", NCE, LOG_R, -5.0, -1.0),
    Rate("sig_min", ENCE, LOG_R, -2.0),
    Rate("kappa", NCE, LOG_R, 6.0, 2.0),
    Rate("kappa", ENCE, LOG_R, 4.0),
]


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return tables ``landscape``, ``hessian_q``, ``rates`` and ``rate_points``."""
    grid = context.entry
    means = np.array(grid.means, float)
    landscape = pl.concat(_landscape(loss, means, grid.points) for loss in (NCE, ENCE))
    tables = {"landscape": landscape, "hessian_q": _hessian_q(means, grid.points)}
    lines = fitted(series(landscape, grid.fitted))
    return {**tables, **lines}


def series(landscape: pl.DataFrame, fitted_R: list[float]) -> Iterator[Series]:
    """Yield each rate with its points from the first to the last R of ``fitted_R``."""
    first, last = fitted_R
    for rate in RATES:
        rows = landscape.filter(pl.col("R").is_between(first, last), loss=rate.loss).sort("R")
        r, value = rows["R"].to_numpy(), rows[rate.quantity].to_numpy()
        yield rate, r, np.log(value) + (0 if rate.quantity == "kappa" else r**2 / 8)


def summary(problem: Problem, means: Array) -> tuple[Array, Array, Array]:
    """Return the loss at tau_*, and the largest and smallest eigenvalue of its Hessian there, (P,) each."""
    optimum = families.mean_optimum(means)
    return (problem.loss(optimum)[:, 0], *log_ratio.extremes(problem.hessian(optimum)[:, 0]))


def asymptotics(loss: str, means: Array) -> tuple[Array, Array]:
    """Return the limits for large R of the loss at tau_* and of kappa; nan at R = 0.

    NCE: sqrt(2 pi)/R e^(-R^2/8), and R^6/(16 pi^2) with the terms of lower order of the Hessian
    [[R^2/4 + pi^2/R^2, -R/2], [-R/2, 1]]. eNCE: e^(-R^2/8) is exact, kappa tends to R^4/16.
    """
    r = np.where(means > 0, means, np.nan)
    if loss == ENCE:
        return families.mean_overlap(means), r**4 / 16
    return np.sqrt(2 * np.pi) / r * families.mean_overlap(means), r**6 / (16 * np.pi**2)


def _landscape(loss: str, means: Array, points: int) -> pl.DataFrame:
    problem = log_ratio.mean_problem(loss, means, points)
    # eNCE is in closed form: the other way to compute it is quadrature.
    other = log_ratio.mean_problem(loss, means, points // 2 + 1) if loss == NCE else _quadrature(means, points)
    values, again = summary(problem, means), summary(other, means)
    optimum = families.mean_optimum(means)
    loss_opt, largest, smallest = values
    asym_loss, asym_kappa = asymptotics(loss, means)
    return pl.DataFrame(
        {
            "R": means,
            "loss": [loss] * len(means),
            "loss_init": problem.loss(0 * optimum)[:, 0],
            "loss_opt": loss_opt,
            "sig_max": largest,
            "sig_min": smallest,
            "kappa": np.maximum(largest / smallest, 1),  # at R = 0 it is 1 up to rounding
            "asym_loss": asym_loss,
            "asym_kappa": asym_kappa,
            "grad_opt_norm": np.linalg.norm(problem.gradient(optimum)[:, 0], axis=-1),
            "lemma46_bound": means / np.sqrt(2 * np.pi) * families.mean_overlap(means),
            "bc": families.mean_overlap(means),
            "quadrature_error": np.max([abs(b / a - 1) for a, b in zip(values, again, strict=True)], axis=0),
        }
    )


def _quadrature(means: Array, points: int) -> Problem:
    return log_ratio.Ence(*families.mean_points(means, points))


def _hessian_q(means: Array, points: int) -> pl.DataFrame:
    problem = log_ratio.mean_problem(NCE, means, points)
    hessian = problem.hessian(0 * families.mean_optimum(means))[:, 0]
    largest, _ = log_ratio.extremes(hessian)
    entries = {"h11": hessian[:, 0, 0], "h12": hessian[:, 0, 1], "h22": hessian[:, 1, 1]}
    return pl.DataFrame({"R": means, **entries, "sig_max": largest})
