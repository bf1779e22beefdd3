"""Markov chains that redraw several positions, as matrices over all states (Li 2025, Definitions 4.1.6 to 4.1.11).

And the two that count the +1 spins of a clique alone: with one field on the clique its law is exchangeable, so that the
number u of +1 spins is itself a Markov chain (chapter 3.5), exact for any number of spins.
"""

from __future__ import annotations

from functools import cache
from math import comb, inf

import numpy as np
from scipy import special, stats

from pipeline.languages import ising
from pipeline.languages.ising import Floats, Ints
from pipeline.studies.parallel.exact.estimation import Scheme, fixed

# Of a gap: smaller ones cannot be told from 0 in double precision.
ROUNDING = 1e-9


def block_dynamics(p_S: Floats, scheme: Scheme) -> Floats:
    """Return (S, S) sum_K p(K | x) 1[x, y agree off K] p(y_K | x_-K, K), the chain on states.

    With fixed weights that is Definition 4.1.6; where masks depend on the state it is the marginal of the chain that
    draws K anew at each step, since the chain of Eq. 4.26 keeps K for ever.
    """
    P = np.zeros((len(p_S), len(p_S)))
    rows = np.arange(len(p_S))[:, None]
    for mask, given in zip(scheme.masks, scheme.given_MxS, strict=True):
        near = ising.companions(scheme.N, mask)
        weight = (p_S * given)[near]
        total = weight.sum(1, keepdims=True)
        P[rows, near] += given[:, None] * np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
    return P


def kept_mask_chain(p_S: Floats, scheme: Scheme) -> Floats:
    """Return (M S, M S) the chain of Eq. 4.26 as printed: on pairs (K, x), it keeps K and redraws x_K."""
    S, M = len(p_S), len(scheme.masks)
    P = np.zeros((M, S, M, S))
    for m, (mask, given) in enumerate(zip(scheme.masks, scheme.given_MxS, strict=True)):
        near = ising.companions(scheme.N, mask)
        weight = (p_S * given)[near]
        P[m, np.arange(S)[:, None], m, near] = weight / weight.sum(1, keepdims=True)
    return P.reshape(M * S, M * S)


def symmetrised(P: Floats, mu: Floats) -> Floats:
    """Return D^(1/2) P D^(-1/2), which is symmetric where the chain is reversible under ``mu``."""
    root = np.sqrt(mu)
    return root[:, None] * P / root


def gap(P: Floats, mu: Floats) -> float:
    """Return 1 minus the second largest eigenvalue of a reversible chain; its inverse is the Poincare constant."""
    A = symmetrised(P, mu)
    return float(1 - np.linalg.eigvalsh((A + A.T) / 2)[-2])


def dirichlet(P: Floats, mu: Floats, f: Floats) -> float:
    """Return <f, (I - P) f> under ``mu``."""
    return float(mu @ (f * (f - P @ f)))


def single_probabilities(theta: Floats, N: int) -> Floats:
    """Return (S, N) the probability of +1 at each position given all others, from the log odds 2 h_i + 2 sum J x."""
    J, h = ising.couplings(theta, N)
    return special.expit(2 * (ising.states(N) @ J + h))


def independent_parallel(theta: Floats, N: int) -> Floats:
    """Return (S, S) the sampler that redraws all positions at once, each given the old others (Definition 4.1.11)."""
    plus = single_probabilities(theta, N)
    up = ising.states(N) > 0
    P = np.ones((len(plus), len(plus)))
    for i in range(N):
        P *= np.where(up[:, i][None, :], plus[:, [i]], 1 - plus[:, [i]])
    return P


def independent_parallel_law(theta: Floats, N: int) -> Floats:
    """Return (S,) the stationary law of that sampler: proportional to e^(h x) prod_i 2 cosh f_i(x).

    f_i = h_i + sum_j J_ij x_j. Derived here; it settles footnote 12.
    """
    J, h = ising.couplings(theta, N)
    x = ising.states(N).astype(float)
    f = x @ J + h
    logs = x @ h + np.logaddexp(f, -f).sum(1)
    return special.softmax(logs)


def sweep(theta: Floats, N: int, site: int) -> Floats:
    """Return (S, S) the step of Gibbs sampling that redraws one given site."""
    p = ising.law(theta, N)
    mask = ising.mask_of(N, (site,))
    return block_dynamics(p, fixed(N, [mask, (1 << N) - 1], [1.0, 0.0]))  # a scheme covers all positions


def marginals(rows_RxS: Floats, N: int) -> Floats:
    """Return (R, N) the probability of +1 at each position under each law."""
    return rows_RxS @ (ising.states(N) > 0)


def product_of_marginals(rows_RxS: Floats, N: int) -> Floats:
    """Return (R, S) the product law with the same marginals as each law."""
    plus = marginals(rows_RxS, N)
    up = ising.states(N) > 0
    result = np.ones((len(rows_RxS), 2**N))
    for i in range(N):
        result *= np.where(up[:, i], plus[:, [i]], 1 - plus[:, [i]])
    return result


def divergence(p: Floats, q: Floats) -> Floats:
    """Return KL(p || q) along the last axis, in nats."""
    return special.rel_entr(p, q).sum(-1)


def total_variation(p: Floats, q: Floats) -> Floats:
    """Return half the sum of differences along the last axis."""
    return np.abs(p - q).sum(-1) / 2


def total_correlation(rows_RxS: Floats, N: int) -> Floats:
    """Return (R,) what the best product law loses on each law: the divergence from the product of its marginals."""
    return divergence(rows_RxS, product_of_marginals(rows_RxS, N))


# Chains on the number of +1 spins in a clique


def clique_log_weights(c: int, J: float, h: float) -> Floats:
    """Return (c + 1,) the log weight of one state of the clique with u spins +1: h m + J (m^2 - c)/2, m = 2u - c."""
    m = 2.0 * np.arange(c + 1) - c
    return h * m + J * (m**2 - c) / 2


def clique_law(c: int, J: float, h: float) -> Floats:
    """Return (c + 1,) the stationary law of the number of +1 spins under k-Gibbs."""
    return special.softmax(log_choose(c) + clique_log_weights(c, J, h))


def log_choose(m: int) -> Floats:
    """Return (m + 1,) log C(m, b) for b = 0 .. m."""
    b = np.arange(m + 1)
    return special.gammaln(m + 1) - special.gammaln(b + 1) - special.gammaln(m - b + 1)


def lumped_gibbs(N: int, c: int, k: int, J: float, h: float) -> Floats:
    """Return (c + 1, c + 1) k-Gibbs on the number of +1 spins of a clique of ``c`` among ``N`` spins.

    How many clique spins are masked is hypergeometric, and so is how many of these were +1.
    """
    if not 1 <= k <= N or not 1 <= c <= N:
        raise ValueError(f"k = {k} and c = {c} must both lie between 1 and N = {N}")
    logs = clique_log_weights(c, J, h)
    P = np.zeros((c + 1, c + 1))
    for m, chance in hypergeometric(N, c, k):
        redrawn = [special.softmax(log_choose(m) + logs[base : base + m + 1]) for base in range(c - m + 1)]
        for u in range(c + 1):
            for a, share in hypergeometric(c, u, m):
                P[u, u - a : u - a + m + 1] += chance * share * redrawn[u - a]
    return P


@cache
def hypergeometric(N: int, c: int, k: int) -> list[tuple[int, float]]:
    """Return how many of ``c`` marked among ``N`` are in a choice of ``k``, each number with its probability.

    By whole numbers, exact before they are divided: for any N.
    """
    everything = comb(N, k)
    return [(m, comb(c, m) * comb(N - c, k - m) / everything) for m in range(max(0, k - (N - c)), min(c, k) + 1)]


def lumped_independent(c: int, J: float, h: float) -> Floats:
    """Return (c + 1, c + 1) independent parallel sampling on the number of +1 spins: a sum of two binomials."""
    rows = []
    for u in range(c + 1):
        m = 2 * u - c
        stay, turn = special.expit(2 * (h + J * (m - 1))), special.expit(2 * (h + J * (m + 1)))
        kept = stats.binom.pmf(np.arange(u + 1), u, stay)
        rows.append(np.convolve(kept, stats.binom.pmf(np.arange(c - u + 1), c - u, turn)))
    return np.array(rows)


def relaxation_time(P: Floats, logs_U: Floats) -> float:
    """Return 1/gap of a lumped chain that is reversible under the law with these log weights; infinite where the gap
    is below rounding."""
    half = (logs_U[:, None] - logs_U[None, :]) / 2
    A = np.exp(half + np.log(np.maximum(P, 1e-300)))
    found = float(1 - np.linalg.eigvalsh((A + A.T) / 2)[-2])
    return 1 / found if found > ROUNDING else inf


def lumped_logs(c: int, J: float, h: float) -> Floats:
    """Return (c + 1,) the logarithm of the stationary law of `lumped_gibbs`, up to a constant."""
    return log_choose(c) + clique_log_weights(c, J, h)


def survival(P: Floats, start: int, target: int, steps: int) -> Floats:
    """Return (steps + 1,) the probability that ``target`` was not reached by each step, the first of them 0.

    By powers, each of which doubles how many steps are known: where the chance to arrive is below rounding a linear
    system would be singular.
    """
    keep = np.delete(np.arange(len(P)), target)
    Q = P[np.ix_(keep, keep)]
    at = (keep == start).astype(float)[None]
    while len(at) <= steps:
        at = np.concatenate([at, at @ Q])
        Q = Q @ Q
    found: Floats = at[: steps + 1].sum(1)
    return found


def censored_moments(survival_T: Floats) -> tuple[float, float]:
    """Return mean and standard deviation of min(T, B), B the number of steps of ``survival_T``."""
    before = survival_T[:-1]
    mean = float(before.sum())
    square = float(((2 * np.arange(len(before)) + 1) * before).sum())
    return mean, float(np.sqrt(max(square - mean**2, 0.0)))


def avoids(P: Floats, allowed: Ints, steps: int) -> Floats:
    """Return (allowed,) the probability from each allowed state to stay among them for so many steps."""
    Q = P[np.ix_(allowed, allowed)]
    return np.linalg.matrix_power(Q, steps).sum(1)


def strong_limit(N: int, c: int, k: int) -> float | None:
    """Return the mean steps of k-Gibbs to all +1 as the coupling grows: C(N,k) / C(N-c,k-c); None for k < c."""
    return comb(N, k) / comb(N - c, k - c) if k >= c else None
