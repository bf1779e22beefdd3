"""E1 and E6: the population optimum, mixing beside its bound, and inequalities of section 2.1.3 on random instances."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages.diffusions import (
    CONDITIONAL,
    LOGCOSH,
    MARGINAL,
    OU,
    Contrast,
    LogCosh,
    OrnsteinUhlenbeck,
    perturbed,
    random_chain,
)
from pipeline.studies.selfsup.measures import diffusion_bounds as bounds
from pipeline.studies.selfsup.measures import diffusion_recovery as recovery
from schemas.selfsup.diffusions import CURVATURE, EQ_2_2, LEMMA_4, LEMMA_5, LOCAL, OVERALL, REMARK_1, SCALING, UNCAPPED

FAR = 5.0  # standard deviations, where Lemma 5 fails as printed
SIZES = 3, 12  # states of a random chain, the second excluded
STATES = 6  # of the chains for Lemma 4
DEVIATIONS = (0.01, 0.25, 0.95)  # of p/p* from 1: the least, the most within the cap's reach, the most without a cap
HALF = 0.08  # how far a local slope of Eq. 2.32's second factor is from -1/2 at most
GRID = 601, 6.0  # of the log-cosh process, for its moments
ROUNDING = 1e-12


def analyse(context: Inputs) -> dict[str, Any]:
    """Return tables ``sde_process``, ``sde_population``, ``sde_beta`` and ``sde_bounds``."""
    entry = context.entry
    processes = {f"ou-rho{rho:g}": OrnsteinUhlenbeck(rho) for rho in entry.rhos}
    sides = [
        *_random_chains(context),
        *_curvature(context),
        *_pairs(context),
        *_mixing(entry, processes),
        *_mean_norms(processes),
        *_scaling(entry),
    ]
    draws: dict[str, int] = {}
    for each in sides:
        each["draw"] = draws.get(each["check"], 0)
        draws[each["check"]] = each["draw"] + 1
    first = next(iter(processes))
    return {
        "sde_process": pl.DataFrame(_processes(entry, processes)),
        "sde_population": pl.DataFrame(_population(entry, first, processes[first])),
        "sde_beta": pl.DataFrame(_beta(entry, processes)),
        "sde_bounds": pl.DataFrame(sides),
    }


def _processes(entry: Any, processes: dict[str, OrnsteinUhlenbeck]) -> Iterator[dict[str, Any]]:
    for name, process in processes.items():
        yield {
            "process_id": name,
            "kind": OU,
            "d": process.d,
            "rho": process.rho,
            "alpha": 0.0,
            "B": process.mean_norm,
            "variance": 1 / process.rho,
        }
    rho = entry.rhos[0]
    chain = LogCosh(rho, entry.alpha).grid(entry.etas[0], *GRID)
    yield {
        "process_id": "logcosh",
        "kind": LOGCOSH,
        "d": 1,
        "rho": rho,
        "alpha": entry.alpha,
        "B": float(chain.stationary @ np.abs(chain.x)),
        "variance": float(chain.stationary @ chain.x**2),
    }


def _population(entry: Any, name: str, process: OrnsteinUhlenbeck) -> Iterator[dict[str, Any]]:
    scale = 1 / math.sqrt(process.rho)
    z, z_prime = scale * np.linspace(-6, 6, entry.points), scale * np.linspace(-7, 7, 2 * entry.points - 1)
    noise = Contrast(MARGINAL, 0.0, scale)
    for eta in entry.etas:
        reference = recovery.of_ou(process, eta, noise, z, z_prime)
        yield {
            "process_id": name,
            "eta": eta,
            "eps_star": reference.bayes_risk,
            "height": float((reference.joint * reference.p).sum()),
            "height_exact": process.height(eta),
        }


def _beta(entry: Any, processes: dict[str, OrnsteinUhlenbeck]) -> Iterator[dict[str, Any]]:
    for name, process in processes.items():
        far = FAR / math.sqrt(process.rho)
        for t in entry.times:
            yield {
                "process_id": name,
                "t": t,
                "beta": process.mixing(t),
                "bound": bounds.mixing_bound(process, t),
                "tv_z0": float(process.distance_to_stationary(0.0, t)),
                "tv_z5": float(process.distance_to_stationary(far, t)),
            }


def row(check: str, case: str, lhs: float, rhs: float, *, expected: bool = True) -> dict[str, Any]:
    """Return a row of `schemas.selfsup.diffusions.Bounds`, without its number."""
    holds = lhs <= rhs + ROUNDING * (1 + abs(rhs))
    return {
        "check": check,
        "case": case,
        "lhs": lhs,
        "rhs": rhs,
        "ratio": lhs / rhs if rhs else None,
        "holds": holds,
        "expected": expected,
    }


def _random_chains(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield Theorem 2 (chapter 5.3), Eq. 2.32 (5.4) and Remark 1 on random chains and kernels p.

    Until there are enough draws within the theorem's cap on p/p*; as many draws without it stand beside them.
    """
    rng = stream(context.seed, context.study, context.experiment, "chains")
    kept = 0
    while kept < context.entry.draws:
        chain = random_chain(rng, int(rng.integers(*SIZES)))
        kernel = perturbed(rng, chain.kernel, rng.uniform(*DEVIATIONS[:2]))
        if (kernel / chain.kernel).max() > bounds.CAP:
            continue
        case = f"{len(kernel)} states"
        yield row(LOCAL, case, *bounds.local(chain, kernel))
        yield row(OVERALL, case, *bounds.overall(chain, kernel))
        yield row(REMARK_1, case, *bounds.bounded(chain, kernel))
        kernel = perturbed(rng, chain.kernel, rng.uniform(DEVIATIONS[1], DEVIATIONS[2]))
        yield row(UNCAPPED, case, *bounds.local(chain, kernel))
        yield row(OVERALL, f"{case}, p/p* not capped", *bounds.overall(chain, kernel))
        kept += 1


def _curvature(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield 2/(1 + c)^5 <= r'' for ratios p*/q within c of 1 (chapter 5.2)."""
    rng = stream(context.seed, context.study, context.experiment, "curvature")
    for _ in range(context.entry.draws):
        c = float(np.exp(rng.uniform(0, 5)))
        ratio = float(np.exp(rng.uniform(-1, 1) * math.log(c)))
        u, delta = np.array(ratio / (1 + ratio)), np.array(rng.uniform(-1, 1 / 6))
        yield row(CURVATURE, f"c = {c:.3g}", 2 / (1 + c) ** bounds.POWER, float(bounds.excess_curvature(delta, u)))


def _pairs(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield Lemma 4 in its corrected form, and as printed, on random chains (chapter 5.5)."""
    rng = stream(context.seed, context.study, context.experiment, "pairs")
    for _ in range(context.entry.chains):
        chain = random_chain(rng, STATES)
        for i in (1, 2, 3):
            far, unlabelled, labelled, near = bounds.mixing_of_pairs(chain, i)
            yield row(LEMMA_4, f"points, then pairs, {i} apart", far, unlabelled)
            yield row(LEMMA_4, f"pairs, then with labels, {i} apart", unlabelled, labelled)
            yield row(LEMMA_4, f"with labels, then the mean of both times, {i} apart", labelled, (far + near) / 2)
            yield row(LEMMA_4, f"the mean of both times, then with labels, {i} apart", (far + near) / 2, labelled)
            yield row(LEMMA_4, f"printed: pairs, then points, {i} apart", unlabelled, far, expected=False)


def _mixing(entry: Any, processes: dict[str, OrnsteinUhlenbeck]) -> Iterator[dict[str, Any]]:
    """Yield Lemma 5 for the mean over z and for z = 0, and at a far start where the bound is below the distance."""
    for process in processes.values():
        for t in entry.times:
            bound = bounds.mixing_bound(process, t)
            case = f"rho = {process.rho:g}, t = {t:g}"
            yield row(LEMMA_5, f"mean, {case}", process.mixing(t), bound)
            yield row(LEMMA_5, f"z = 0, {case}", float(process.distance_to_stationary(0.0, t)), bound)
    # Chapter 3.4, item 4: the printed form at one start and time.
    process = OrnsteinUhlenbeck(1.0)
    far = float(process.distance_to_stationary(FAR, 1.0))
    yield row(LEMMA_5, "printed: z = 5, rho = 1, t = 1", far, bounds.mixing_bound(process, 1.0), expected=False)


def _mean_norms(processes: dict[str, OrnsteinUhlenbeck]) -> Iterator[dict[str, Any]]:
    """Yield Eq. 2.2 corrected, and as printed for rho = 1 (chapter 3.4, item 9)."""
    for process in processes.values():
        yield row(EQ_2_2, f"rho = {process.rho:g}, d = 1", *bounds.mean_norm_bound(process, printed=False))
    printed = bounds.mean_norm_bound(OrnsteinUhlenbeck(1.0), printed=True)
    yield row(EQ_2_2, "printed: rho = 1, d = 1", *printed, expected=False)


def _scaling(entry: Any) -> Iterator[dict[str, Any]]:
    """Yield how far the slope of Eq. 2.32's second factor between neighbouring eta is from -1/2."""
    process = OrnsteinUhlenbeck(1.0)
    factors = [
        bounds.second_factor(process, eta, Contrast(CONDITIONAL, 0.0, math.sqrt(2 * eta))) for eta in entry.scaling
    ]
    slopes = np.diff(np.log(factors)) / np.diff(np.log(entry.scaling))
    for eta, slope in zip(entry.scaling, slopes.tolist(), strict=False):
        yield row(SCALING, f"from eta = {eta:g}", abs(slope + 0.5), HALF)
