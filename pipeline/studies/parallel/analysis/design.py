"""Sets of masks, total correlations, and finite samples (EXP-6, EXP-7; chapter 5.14)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import ising
from pipeline.languages.ising import Floats
from pipeline.studies.parallel import constructions
from pipeline.studies.parallel.exact import chains, estimation, finite, laws
from pipeline.studies.parallel.exact import schemes as designs
from pipeline.studies.parallel.exact.asymptotics import asymptotics
from schemas.parallel.tables import ALLMASK, DETERMINISTIC, FULL, INDEPENDENT, MARGINALS, PRODUCT_KERNEL

COMPARED = 4  # passes: the fewest of the published tables


def analyse(context: Inputs) -> dict[str, Any]:
    """Return laws and sets of masks as tables, ``par_kernel``, ``par_asymp``, ``par_tc``, ``par_decoding`` and
    ``par_finite_sample``."""
    listed = list(_laws(context))
    made = {
        "par_dist": [laws.law_row(*about) for about in listed],
        "par_state_prob": [row for name, theta, N, *_ in listed for row in laws.state_rows(name, theta, N)],
        "par_mask_scheme": list(_masks(context)),
        "par_kernel": list(_kernels(context)),
        "par_asymp": [*_designs(context), *_averaged(context), *_random(context)],
        "par_tc": list(_correlations(context)),
        "par_decoding": list(_decoded(context)),
        "par_finite_sample": list(_finite(context)),
    }
    return {name: pl.DataFrame(rows, infer_schema_length=None) for name, rows in made.items()}


def _laws(context: Inputs) -> Iterator[tuple[str, Floats, int, int, float]]:
    """Yield id, theta, spins, clique and coupling of the laws of this experiment."""
    N = designs.N
    for J in context.entry.couplings:
        yield f"clique-{J:g}", ising.clique(N, N, J), N, N, J
    for inside in context.entry.J_in:
        yield f"pairs-{inside:g}", designs.two_pairs(inside, context.entry.J_out), N, 0, inside
    for sigma in context.entry.sigma:
        for draw in range(context.entry.random):
            yield f"random-{sigma:g}-{draw}", _drawn(context, sigma, draw), N, 0, sigma


def _drawn(context: Inputs, sigma: float, draw: int) -> Floats:
    rng = stream(context.seed, context.study, context.experiment, "random", f"{sigma:g}", draw)
    return ising.random_parameters(rng, designs.N, sigma)


def _masks(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield the sets of masks of four spins, and Lemma 4.3.1's, which depend on the state; its labels are observed."""
    for name, blocks in context.entry.sets.items():
        yield from laws.mask_rows(name, designs.N, designs.masks(blocks))
    for state, first in ((0b00, 1 / 2), (0b01, 1 / 3), (0b10, 1 / 4)):
        for observed, weight in enumerate((first, 1 - first)):
            row = {"scheme_id": "lemma-4-3-1", "N": 2, "mask": ising.mask_of(2, (1 - observed,)), "weight": weight}
            yield row | {"adaptive": True, "state": state}


def _kernels(context: Inputs) -> Iterator[dict[str, Any]]:
    for N, V in context.entry.decoders:
        rng = stream(context.seed, context.study, context.experiment, "decoder", N, V)
        off, wrong = constructions.tried(rng, N, V, context.entry.compositions)
        width, inner = constructions.sizes(V, N)
        about = {"N": N, "vocab": V, "d_model": width, "ffn": inner}
        right = int((off <= 1e-12).sum())
        yield about | {"kind": PRODUCT_KERNEL, "max_err": float(off.max()), "states_ok": right, "steps": 1}
        found = {"kind": DETERMINISTIC, "max_err": float(wrong.mean()), "states_ok": int((~wrong.any(0)).sum())}
        yield about | found | {"steps": context.entry.compositions}


def _designs(context: Inputs) -> Iterator[dict[str, Any]]:
    for inside in context.entry.J_in:
        p, phi = ising.law(designs.two_pairs(inside, context.entry.J_out), 4), ising.statistics(4)
        fisher = estimation.information(p, phi, estimation.uniform(4, 4))
        for name, blocks in context.entry.sets.items():
            scheme = designs.scheme(blocks)
            gamma = np.linalg.inv(estimation.information(p, phi, scheme))
            size = len(ising.positions(4, scheme.masks[0]))
            about = {"dist_id": f"pairs-{inside:g}", "scheme_id": name, "variant": FULL, "N": 4, "J": inside, "k": size}
            yield about | asymptotics(p, gamma, fisher, scheme)


def _averaged(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield asymptotics of cliques where each sample is averaged over all masks of k."""
    N = designs.N
    phi, whole = ising.statistics(N), estimation.uniform(N, N)
    for J in context.entry.couplings:
        p = ising.law(ising.clique(N, N, J), N)
        fisher = estimation.information(p, phi, whole)
        for k in range(1, N + 1):
            scheme = estimation.uniform(N, k)
            gamma = estimation.averaged_covariance(p, phi, scheme)
            about = {"dist_id": f"clique-{J:g}", "scheme_id": f"k{k}", "variant": ALLMASK, "N": N, "J": J, "k": k}
            yield about | asymptotics(p, gamma, fisher, scheme, bounded=False)


def _random(context: Inputs) -> Iterator[dict[str, Any]]:
    N = 4
    for sigma in context.entry.sigma:
        for draw in range(context.entry.random):
            p, phi = ising.law(_drawn(context, sigma, draw), N), ising.statistics(N)
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
                "lost": float(chains.total_variation(p, decoded(other, COMPARED))) if k == N else None,
            }


def decoded(P: Floats, passes: int) -> Floats:
    """Return the law after so many passes of a sampler from uniform states, as PaDIR starts from random tokens."""
    start = np.full(len(P), 1 / len(P))
    return start @ np.linalg.matrix_power(P, passes)


def _decoded(context: Inputs) -> Iterator[dict[str, Any]]:
    N = 4
    for J in context.entry.couplings:
        theta = ising.clique(N, N, J)
        p = ising.law(theta, N)
        laws = {(MARGINALS, 1): chains.product_of_marginals(p[None], N)[0]}
        other = chains.independent_parallel(theta, N)
        laws |= {(INDEPENDENT, T): decoded(other, T) for T in context.entry.passes}
        for (decoder, T), law in laws.items():
            yield {
                "dist_id": f"clique-{J:g}",
                "J": J,
                "tc_nats": float(chains.total_correlation(p[None], N)[0]),
                "decoder": decoder,
                "T": T,
                "kl": float(chains.divergence(p, law)),
                "tv": float(chains.total_variation(p, law)),
                "modes_lost": float(p[0] + p[-1] - law[0] - law[-1]),
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
