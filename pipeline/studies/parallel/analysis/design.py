"""Sets of masks, total correlations, and finite samples (EXP-6, EXP-7; chapter 5.14)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import ising
from pipeline.studies.parallel.exact import chains, estimation, finite
from pipeline.studies.parallel.exact.asymptotics import asymptotics
from pipeline.studies.parallel.exact.estimation import Scheme
from schemas.parallel.tables import ALIGNED, ALL, FULL, MISALIGNED, PAIRS, SINGLES


def analyse(context: Inputs) -> dict[str, Any]:
    """Return tables ``par_asymp``, ``par_tc`` and ``par_finite_sample``."""
    made = {
        "par_asymp": [*_designs(context), *_random(context)],
        "par_tc": list(_correlations(context)),
        "par_finite_sample": list(_finite(context)),
    }
    return {name: pl.DataFrame(rows, infer_schema_length=None) for name, rows in made.items()}


def schemes() -> dict[str, Scheme]:
    """Return the five sets of masks of EXP-6."""
    blocks: dict[str, list[tuple[int, ...]]] = {
        SINGLES: [(0,), (1,), (2,), (3,)],
        MISALIGNED: [(0, 2), (1, 3)],
        PAIRS: [*ising.pairs(4)],
        ALIGNED: [(0, 1), (2, 3)],
        ALL: [(0, 1, 2, 3)],
    }
    return {name: estimation.fixed(4, [ising.mask_of(4, block) for block in chosen]) for name, chosen in blocks.items()}


def two_pairs(inside: float, outside: float) -> np.ndarray:
    """Return theta of PAR-D7: coupling ``inside`` within the pairs (1, 2) and (3, 4), ``outside`` between them."""
    J = np.full((4, 4), outside)
    J[0, 1] = J[2, 3] = inside
    return ising.parameters(J, np.zeros(4))


def _designs(context: Inputs) -> Iterator[dict[str, Any]]:
    for inside in context.entry.J_in:
        p, phi = ising.law(two_pairs(inside, context.entry.J_out), 4), ising.statistics(4)
        fisher = estimation.information(p, phi, estimation.uniform(4, 4))
        for name, scheme in schemes().items():
            gamma = np.linalg.inv(estimation.information(p, phi, scheme))
            size = len(ising.positions(4, scheme.masks[0]))
            about = {"dist_id": f"pairs-{inside:g}", "scheme_id": name, "variant": FULL, "N": 4, "J": inside, "k": size}
            yield about | asymptotics(p, gamma, fisher, scheme)


def _random(context: Inputs) -> Iterator[dict[str, Any]]:
    N = 4
    for sigma in context.entry.sigma:
        for draw in range(context.entry.random):
            rng = stream(context.seed, context.study, context.experiment, "random", f"{sigma:g}", draw)
            p, phi = ising.law(ising.random_parameters(rng, N, sigma), N), ising.statistics(N)
            fisher = estimation.information(p, phi, estimation.uniform(N, N))
            for k in range(1, N + 1):
                scheme = estimation.uniform(N, k)
                gamma = np.linalg.inv(estimation.information(p, phi, scheme))
                about = {"dist_id": f"random-{sigma:g}-{draw}", "scheme_id": f"k{k}", "variant": FULL, "N": N}
                yield about | {"J": sigma, "k": k} | asymptotics(p, gamma, fisher, scheme)


def _correlations(context: Inputs) -> Iterator[dict[str, Any]]:
    N = 4
    for J in context.entry.couplings:
        theta = ising.clique(N, N, J)
        p = ising.law(theta, N)
        other = chains.independent_parallel(theta, N)
        product = chains.product_of_marginals(p[None], N)[0]
        for k in range(1, N + 1):
            P = chains.block_dynamics(p, estimation.uniform(N, k))
            loss = chains.total_correlation(P, N)
            apart = chains.total_variation(P, chains.product_of_marginals(P, N))
            yield {
                "dist_id": f"clique-{J:g}",
                "J": J,
                "k": k,
                "tc_nats": float(p @ loss),
                "tc_most": float(loss.max()),
                "tv_prod": float(p @ apart),
                "indep_kl": float(p @ chains.divergence(P, other)),
                "modes": float(p[0] + p[-1]),
                "modes_prod": float(product[0] + product[-1]),
            }


def _finite(context: Inputs) -> Iterator[dict[str, Any]]:
    entry = context.entry.finite
    for family in finite.FAMILIES:
        about = {
            "family": family,
            "N": finite.N,
            "k": finite.MASKED[family],
            "C_AT": finite.TENSORISATION[family],
            "beta": finite.least_conditional(family),
            "C_eps": finite.cells(entry.eps),
        }
        for n in entry.n:
            for m in entry.m:
                rng = stream(context.seed, context.study, context.experiment, "finite", family, n, m)
                parts = finite.terms(n, m, entry.delta, entry.eps)
                for rep in range(entry.repetitions):
                    fit = finite.fit(rng, family, entry.truth, n, m)
                    bounds = [finite.bound(family, loss, parts, entry.eps) for loss in (fit.nll, fit.kl)]
                    yield about | {
                        "n": n,
                        "m": m,
                        "rep": rep,
                        "tv": fit.tv,
                        "loss_nll": fit.nll,
                        "loss_kl": fit.kl,
                        "term_mask": parts.masks,
                        "term_sample": parts.samples,
                        "term_emp": parts.empirical,
                        "bound_nll": bounds[0],
                        "bound_kl": bounds[1],
                        "violated": fit.tv > min(bounds),
                    }
