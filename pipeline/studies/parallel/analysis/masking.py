"""Error against sample size for each number of masked positions (Li 2025, Figures 4.1 and 4.2; EXP-1, EXP-2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import ising
from pipeline.languages.ising import Floats
from pipeline.studies.parallel.comparisons import APART, LEAST, ORDER, PUBLISHED, STEPS, SURER, TEN, TOGETHER
from pipeline.studies.parallel.datasets import samples
from pipeline.studies.parallel.exact import estimation, fits, laws
from pipeline.studies.parallel.exact.asymptotics import asymptotics
from pipeline.studies.parallel.names import DRAWS, FITS, SIZES
from schemas.parallel.tables import ALLMASK, DESCENT, FULL, J_ONLY, NEWTON, VARIANTS

Rows = list[dict[str, Any]]


def analyse(context: Inputs) -> dict[str, Any]:
    """Return laws and sets of masks as tables, ``par_asymp``, ``par_mple_fit``, ``par_mple_cell``, ``comparisons``."""
    found, asymp, cells, shown = Measurements(context), Rows(), Rows(), Rows()
    listed, states, masks = Rows(), Rows(), Rows()
    for target, dataset in DRAWS.items():
        frame = context.dataset(dataset)
        N, J = int(frame["spins"][0]), float(frame["J"][0])
        theta = ising.clique(N, N, J)
        listed.append(laws.law_row(target, theta, N, N, J))
        states += laws.state_rows(target, theta, N)
        rows, gammas = _asymptotics(target, N, J)
        asymp += rows
        errors = _simulated(context, target, N, J, gammas, cells, shown)
        _compare(found, target, errors)
        trained = _trained(context, target, frame, shown)
        for k, more in STEPS:
            found.add(PUBLISHED[target, k], trained[k], trained[more])
    for k in SIZES:
        masks += laws.mask_rows(f"k{k}", max(SIZES), ising.masks(max(SIZES), k))
    tables = {"par_dist": listed, "par_state_prob": states, "par_mask_scheme": masks}
    tables |= {"par_asymp": asymp, "par_mple_fit": shown, "par_mple_cell": cells}
    made: dict[str, Any] = {name: pl.DataFrame(rows, infer_schema_length=None) for name, rows in tables.items()}
    return made | {"comparisons": found.table()}


def _asymptotics(target: str, N: int, J: float) -> tuple[Rows, dict[tuple[str, int], Floats]]:
    """Return rows of ``par_asymp``, and the asymptotic covariance by variant and k."""
    p = ising.law(ising.clique(N, N, J), N)
    rows, gammas = Rows(), {}
    for variant in VARIANTS:
        phi = ising.statistics(N)[:, : columns(variant, N)]
        fisher = estimation.information(p, phi, estimation.uniform(N, N))
        for k in SIZES:
            scheme = estimation.uniform(N, k)
            if variant == ALLMASK:
                gamma = estimation.averaged_covariance(p, phi, scheme)
            else:
                gamma = np.linalg.inv(estimation.information(p, phi, scheme))
            gammas[variant, k] = gamma
            about = {"dist_id": target, "scheme_id": f"k{k}", "variant": variant, "N": N, "J": J, "k": k}
            rows.append(about | asymptotics(p, gamma, fisher, scheme, bounded=variant != ALLMASK))
    return rows, gammas


def columns(variant: str, N: int) -> int | None:
    """Return how many parameters a variant fits, the couplings first; None for all."""
    return N * (N - 1) // 2 if variant == J_ONLY else None


def _simulated(
    context: Inputs, target: str, N: int, J: float, gammas: dict[tuple[str, int], Floats], cells: Rows, shown: Rows
) -> dict[int, dict[int, Floats]]:
    """Fit all variants to new samples; return squared errors (R,) of the full one by n and k."""
    entry, theta = context.entry, ising.clique(N, N, J)
    law = ising.law(theta, N)
    errors: dict[int, dict[int, Floats]] = {}
    for n in entry.n:
        rng = stream(context.seed, context.study, context.experiment, target, n)
        states = ising.counts(rng, law, n, entry.repetitions)
        errors[n] = {}
        for k in SIZES:
            masks = ising.masks(N, k)
            one = ising.masked_counts(
                stream(context.seed, context.study, context.experiment, target, n, "masks", k), states, k, N
            )
            every = np.repeat(states[:, None] / len(masks), len(masks), 1)
            for variant in VARIANTS:
                width = columns(variant, N)
                problem = fits.Problem(every if variant == ALLMASK else one, masks, N, width)
                fit = fits.newton(problem)
                off = fit.theta_RxD - theta[: fit.theta_RxD.shape[1]]
                squares = (off**2).sum(1)
                gamma = gammas[variant, k]
                about = {"dist_id": target, "J": J, "k": k, "variant": variant, "n": n}
                whitened = n * np.einsum("rd,de,re->r", off, np.linalg.inv(gamma), off).mean() / len(gamma)
                cells.append(
                    about
                    | {
                        "repetitions": entry.repetitions,
                        "mse": float(squares.mean()),
                        "sd": float(squares.std(ddof=1)),
                        "tr_gamma": float(np.trace(gamma)),
                        "n_mse_ratio": float(n * squares.mean() / np.trace(gamma)),
                        "whitened": float(whitened),
                        "converged": int(fit.converged_R.sum()),
                    }
                )
                shown += [about | _fit_row(fit, squares, r, NEWTON) for r in range(min(entry.shown, entry.repetitions))]
                if variant == FULL:
                    errors[n][k] = squares
    return errors


def _fit_row(fit: fits.Fit, squares: Floats, r: int, optimiser: str, apart: float | None = None) -> dict[str, Any]:
    return {
        "rep": r,
        "optimiser": optimiser,
        "sq_err_sum": float(squares[r]),
        "sq_err_mean": float(squares[r]) / fit.theta_RxD.shape[1],
        "grad_inf": float(fit.gradient_R[r]),
        "iters": int(fit.steps_R[r]),
        "converged": bool(fit.converged_R[r]),
        "apart": apart,
    }


def _compare(found: Measurements, target: str, errors: dict[int, dict[int, Floats]]) -> None:
    """Compare k with k + 1: by all samples, and how often ten of them at the largest n have the order right."""
    scaled = {k: np.mean([n * by_k[k] for n, by_k in errors.items() if n >= LEAST], 0) for k in SIZES}
    last = errors[max(errors)]
    for k, more in STEPS:
        found.add(ORDER[target, k], scaled[k], scaled[more])
        first, second = (last[each].reshape(-1, 10).mean(1) for each in (k, more))
        other = np.roll(second, 1)
        found.add(TEN[target, k, TOGETHER], first - second)
        found.add(TEN[target, k, APART], first - other)
    found.add(SURER[target], first > second, first > other)  # of the last step


def _trained(context: Inputs, target: str, frame: pl.DataFrame, shown: Rows) -> dict[int, Floats]:
    """Return by k, of each published repetition, the mean over n of n times the squared error of the trained models.

    A row of each goes into ``shown``, with its distance from Newton's fit to the same sample.
    """
    errors = {}
    for k in SIZES:
        run = FITS[target, k]
        drawn, N, J = samples(frame, k)
        theta = np.asarray(context.model(run).params["theta"], float)
        problem = fits.Problem(np.stack(list(drawn.values())), ising.masks(N, k), N)
        exact = fits.newton(problem).theta_RxD
        squares = ((theta - ising.clique(N, N, J)) ** 2).sum(1)
        gradient = np.abs(problem.gradient(theta)[0]).max(1)
        steps = int(context.run_header(run)["entry"]["steps"])
        close = gradient < 1e-5  # single precision
        fit = fits.Fit(theta, gradient, np.full(len(theta), steps), close)
        by_repetition: dict[int, list[float]] = {}
        for r, (n, repetition) in enumerate(drawn):
            about = {"dist_id": target, "J": J, "k": k, "variant": FULL, "n": n}
            row = _fit_row(fit, squares, r, DESCENT, float(np.abs(theta[r] - exact[r]).max()))
            shown.append(about | row | {"rep": repetition})
            if n >= LEAST:
                by_repetition.setdefault(repetition, []).append(n * float(squares[r]))
        errors[k] = np.array([np.mean(values) for values in by_repetition.values()])
    return errors
