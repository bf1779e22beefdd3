"""Strongly ferromagnetic models, and the finite-sample bound (Li 2025, sections 4.1.3, 4.1.4.2, 4.3.5, 4.3.6).

Chapter 5.8 to 5.12. The grids of EXP-4 are tables (`analysis.propositions`); here are statements on random and on
boundary cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy import stats

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import stream
from pipeline.languages import ising
from pipeline.studies.parallel import checks
from pipeline.studies.parallel.checks import corrected, near, of, printed, row, zero
from pipeline.studies.parallel.exact import chains, entropy, estimation, finite, propositions
from pipeline.studies.parallel.exact.propositions import Clique
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.parallel.params import CliquesCheck

SEPARATIONS = ((0.5, 10, 44, 15.25, 1.320), (0.1, 1000, 93, 32.23, 2.178), (0.9, 1, 20, 6.93, 0.965))  # chapter, EXP-4
ROUND = 0.005


def check(entry: CliquesCheck, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` that decide parts of claims 12 and 22."""
    rows = [
        *_modes(stream(seed, entry.study, key, "models"), entry.models),
        *_stuck(entry),
        *_separation(),
        *_figure(),
        *_bound(),
        *_joint(stream(seed, entry.study, key, "joint"), entry.models),
    ]
    return theory.rows(entry.study, key, "Li 2025, section 4.1.4.2", rows)


def _modes(rng: np.random.Generator, models: int) -> Iterator[dict[str, Any]]:
    up, down, mirror = [], [], []
    for _ in range(models):
        theta, N, c, h_G, J0 = propositions.compliant(rng)
        found = propositions.modes(theta, N, c)
        up.append(found.up_down)
        down.append(found.down_rest / math.exp(2 * J0))
        mirror += [abs(ratio / math.exp(2 * h_G) - 1) for ratio in found.mirror]
    size, where, part = f"{models} random models", "Proposition 4.3.3", of("12", checks.MODES)
    yield row(
        "modes-up",
        "Least probability in R_1 over the most in R_-1, smallest",
        size,
        smallest(up),
        ">=",
        1,
        where,
        **part,
    )
    yield row(
        "modes-down",
        "Least probability in R_-1 over e^(2 J_0) times the most in R_0, smallest",
        size,
        smallest(down),
        ">=",
        1 - 1e-12,
        where,
        **part,
        **corrected("proposition-4-3-3"),
    )
    yield zero(
        "modes-mirror",
        "Probability in R_1 over that of its mirror image in R_-1, over e^(2 h_G), minus 1",
        size,
        largest(mirror),
        where,
        bound=1e-10,
        **part,
    )
    a, J0 = 0.3, 0.7
    p = ising.law(ising.clique(2, 2, a + J0, [a, 0.0]), 2)
    yield near(
        "modes-boundary",
        "p(-1,-1) / p(+1,-1) over e^(2 J_0), where more than 1 is stated",
        "c = N = 2, h = (0.3, 0), J_0 = 0.7",
        p[0] / p[2] / math.exp(2 * J0),
        1,
        1e-12,
        where,
        **of("12", checks.CONTROLS),
        **printed("proposition-4-3-3"),
    )


def _stuck(entry: CliquesCheck) -> Iterator[dict[str, Any]]:
    """Yield Proposition 4.1.5 on a grid beyond EXP-4, and where it fails without r > 0."""
    short, cells = [], 0
    for c in entry.sizes:
        for J0 in entry.gaps:
            rate = propositions.stuck_rate(c, J0)
            for h_G in (0.05, 0.5, 2.0):
                model = Clique(c, c, J0, h_G)
                for delta in entry.deltas:
                    steps = min(propositions.stuck_steps(rate, delta), 10**7)
                    if steps:
                        cells += 1
                        short.append(propositions.stuck_stay(model, steps) - (1 - delta))
    where = "Proposition 4.1.5"
    yield row(
        "stuck-grid",
        "Probability to stay at a sum of at most -2 for T steps, minus 1 - delta, smallest",
        f"{cells} cells with r > 0 and T >= 1",
        smallest(short),
        ">=",
        0,
        where,
        **of("12", checks.STUCK),
        **corrected("proposition-4-1-5"),
    )
    c, J0, h_G = 2, 0.001, 1e-4
    rate = propositions.unguarded_rate(c, J0)
    delta = 2 * math.exp(-rate) * (1 + 1e-12)
    steps = propositions.stuck_steps(rate, delta)
    size = f"c = 2, J_0 = 0.001, h_G = 0.0001, delta = {delta:.4f}, r < 0"
    yield near(
        "stuck-control-steps", "T of the proposition as printed", size, steps, 1, 0, where, **of("12", checks.CONTROLS)
    )
    stay = propositions.stuck_stay(Clique(c, c, J0, h_G), steps)
    yield row(
        "stuck-control",
        "Probability to stay for T steps minus the stated 1 - delta",
        size,
        stay - (1 - delta),
        "<=",
        -0.01,
        where,
        **of("12", checks.CONTROLS),
        **printed("proposition-4-1-5"),
    )


def _separation() -> Iterator[dict[str, Any]]:
    """Yield the algebra behind Corollary 4.1.1, and two forms of it that are misprinted."""
    part, where = of("12", checks.ALGEBRA), "Corollary 4.1.1"
    for delta, M, *expected in SEPARATIONS:
        found = propositions.separating(delta, M)
        c, J0, h_G = found
        name, size = f"{delta:g}-{M}", f"delta = {delta:g}, M = {M}"
        off = largest([abs(one - two) for one, two in zip(found, expected, strict=True)])
        yield row(
            f"separation-{name}",
            "Smallest c, J_0, h_G of Assumption 4.1.6 minus those of the chapter, largest",
            size,
            off,
            "<=",
            ROUND,
            "Assumption 4.1.6",
            **part,
        )
        rate = propositions.stuck_rate(c, J0)
        yield row(
            f"separation-stuck-{name}",
            "c_stuck over ln(4 M / delta)",
            size,
            (rate or 0) / math.log(4 * M / delta),
            ">=",
            1,
            where,
            **part,
        )
        N = c  # the whole clique is masked
        both = {
            form: propositions.reach_rate(Clique(c, N, J0, h_G), c, form == "printed")
            for form in ("printed", "corrected")
        }
        yield row(
            f"separation-reach-{name}",
            "c_R1 over delta / 2",
            size,
            2 * both["corrected"] / delta,
            "<=",
            1,
            where,
            **part,
            **corrected("proposition-4-1-4"),
        )
        yield row(
            f"separation-reach-printed-{name}",
            "c_R1 with the main text's e^(2 J_0 + 2 c - 2), over delta / 2: not at most 1",
            size,
            2 * both["printed"] / delta,
            ">=",
            1,
            where,
            **printed("proposition-4-1-4"),
        )
        r = -1 + math.tanh(J0) * c / 2
        yield row(
            f"bracket-printed-{name}",
            "r^2 over |C|^2/4, where the proof has at least 1",
            size,
            r**2 / (c**2 / 4),
            "<=",
            1 - 1e-3,
            where,
            **printed("corollary-4-1-1"),
        )
        yield row(
            f"bracket-corrected-{name}",
            "r^2 over |C|^2/16",
            size,
            r**2 / (c**2 / 16),
            ">=",
            1,
            where,
            **corrected("corollary-4-1-1"),
        )
    # The condition on k is the same as (N - k) c / (k + 1) <= delta / (4 - delta).
    differ = 0
    for N in (10, 50, 500, 5000):
        for c in (2, 5, 10):
            for delta in (0.05, 0.5, 0.95):
                least = N - delta * (N + 1) / ((4 - delta) * c + delta)
                differ += sum(
                    (k >= least) != ((N - k) * c / (k + 1) <= delta / (4 - delta) * (1 + 1e-12))
                    for k in range(c, N + 1)
                )
    yield zero(
        "separation-k",
        "k at which both forms of the condition on k differ",
        "36 settings, all k",
        differ,
        "Assumption 4.1.7",
        **part,
    )


def _figure() -> Iterator[dict[str, Any]]:
    """Yield that Figure 4.3's fields do not meet the assumption, and a variant that does."""
    h, c, J = np.full(10, 5.0), 4, 26.0
    inside, outside = h[:c].sum(), np.abs(h[c:]).sum()
    yield row(
        "figure-printed",
        "h_G minus the fields outside, which the assumption wants positive",
        "h = 5 on ten spins",
        inside - outside,
        "<=",
        0,
        "Figure 4.3, Assumption 4.1.5",
        **printed("figure-4-3"),
    )
    strict = np.where(np.arange(10) < c, 5.0, 0.0)
    yield near(
        "figure-corrected",
        "h_G with fields on the clique alone, J = 20 + J_0",
        "h = 5 on four of ten spins",
        ising.assumption(J, strict, c)[0],
        20,
        0,
        "Figure 4.3, Assumption 4.1.5",
        **corrected("figure-4-3"),
    )
    same = [
        np.abs(chains.lumped_gibbs(10, c, k, J, 5.0) - Clique(c, 10, J - 20, 20.0).gibbs(k)).max() for k in (1, 4, 10)
    ]
    yield zero(
        "figure-same", "Lumped chains of both at equal J, largest difference", "J = 26", largest(same), "Figure 4.3"
    )


def _bound() -> Iterator[dict[str, Any]]:
    """Yield the numbers of Theorem 4.1.4 that are known, and two of its lemmas' misprints."""
    part, where = of("22", checks.FINITE), "Theorem 4.1.4"
    yield near(
        "beta",
        "Least conditional probability, J in [-1, 1]",
        "N = 2",
        finite.least_conditional(finite.COUPLED),
        0.0596,
        5e-5,
        where,
        **part,
    )
    yield near("cells", "Cells of the parameter", "N = 2, eps = 0.01", finite.cells(0.01), 800, 0, where, **part)
    N, delta = 2, 0.1
    # Lemma 4.3.5 fails with a probability of at most 2^(N-2) |Omega|^N / (eps^2 m), which is to be delta / 2.
    m = 10**6
    for form, power in (("printed", 3 * N - 1), ("corrected", N - 1)):
        eps = math.sqrt(2**power * 2**N / (m * delta))
        share = 2 ** (N - 2) * 2**N / (eps**2 * m) / delta
        make = printed if form == "printed" else corrected
        yield row(
            f"corollary-{form}",
            "Probability that the lemma's first part fails, over delta: one half is meant",
            "N = 2, m = 10^6",
            share,
            "beyond" if form == "printed" else "within",
            0.5,
            "Corollary 4.3.1",
            tolerance=1e-9,
            **make("corollary-4-3-1"),
        )
    # Chebyshev's bound on a frequency is 1 / (4 eps^2 n); the lemma prints m, which is the number of masks.
    n, eps = 100, 0.05
    exact = 1 - float(stats.binom(n, 0.5).cdf(54) - stats.binom(n, 0.5).cdf(45))
    size = "n = 100, m = 10,000, eps = 0.05, probability 1/2"
    statement = "Probability that a frequency is off by eps over its bound, 1 / (4 eps^2 {})"
    yield row(
        "frequency-printed",
        statement.format("m"),
        size,
        exact * 4 * eps**2 * 10**4,
        ">=",
        1,
        "Lemma 4.3.6",
        **printed("lemma-4-3-6"),
    )
    yield row(
        "frequency-corrected",
        statement.format("n"),
        size,
        exact * 4 * eps**2 * n,
        "<=",
        1,
        "Lemma 4.3.6",
        **corrected("lemma-4-3-6"),
    )


def _joint(rng: np.random.Generator, models: int) -> Iterator[dict[str, Any]]:
    """Yield Proposition 4.3.1 where C_AT is known: masks of all positions, and models under which they are independent.

    A sample is any law, here with some states that do not come.
    """
    whole, product, pinsker, form = [], [], [], []
    for i in range(models):
        N = 2 + i % 3
        k = int(rng.integers(1, N + 1))
        sample = rng.dirichlet(np.full(2**N, 0.3))
        model = ising.law(ising.random_parameters(rng, N, 0.6), N)
        apart = float(chains.divergence(sample, model))
        masked = entropy.conditional_divergence(sample, model, estimation.uniform(N, N))
        whole.append(abs(apart - masked))
        pinsker.append(float(chains.total_variation(sample, model)) / math.sqrt(apart / 2))
        independent = entropy.products(rng, N)
        scheme = estimation.uniform(N, k)
        below = entropy.conditional_divergence(sample, independent, scheme)
        product.append(float(chains.divergence(sample, independent)) / (N / k * below))
        form.append(_likelihood(sample, independent, scheme) - below)
    size, part, where = f"{models} random samples and models, N = 2 to 4", of("22", checks.JOINT), "Proposition 4.3.1"
    statement = "KL of the joint law minus that of conditional ones, masks of all positions, largest difference"
    yield zero("joint-whole", statement, size, largest(whole), where, **part)
    statement = "KL of the joint law over N / k times the mean of conditional ones, models with independent positions"
    yield row("joint-product", f"{statement}, largest", size, largest(product), "<=", 1 + 1e-9, where, **part)
    statement = "Total variation over the root of half the divergence, largest"
    yield row("joint-pinsker", statement, size, largest(pinsker), "<=", 1, where, **part)
    statement = "Loss as likelihood minus loss as divergence, smallest: the bound holds with both"
    yield row("joint-likelihood", statement, size, smallest(form), ">=", 0, "Theorem 4.1.4", **part)


def _likelihood(sample: np.ndarray, model: np.ndarray, scheme: estimation.Scheme) -> float:
    """Return E_K E_{x ~ sample} -log model(x_K | x_-K), masks independent of the state."""
    total = 0.0
    for mask, given in zip(scheme.masks, scheme.given_MxS, strict=True):
        near_ = ising.contexts(scheme.N, mask)
        logs = np.log(model[near_] / model[near_].sum(1, keepdims=True))
        total -= float(given[0]) * float((sample[near_] * logs).sum())
    return total
