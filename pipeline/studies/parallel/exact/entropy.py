"""Decay towards the stationary law, and block approximate tensorisation of entropy (Li 2025, Definitions 4.1.5, 4.1.9).

C_AT is the least constant with KL(r || q) <= C_AT E_K E_{x_-K ~ r} KL(r(. | x_-K) || q(. | x_-K)) for all laws r.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

from pipeline.languages import ising
from pipeline.languages.ising import Floats
from pipeline.studies.parallel.exact import chains
from pipeline.studies.parallel.exact.estimation import Scheme

TILTS = (0.03, 0.3, 1.0)


class Semigroup:
    """The law p_t = p_0 e^{-t (I - P)} of a reversible chain in continuous time."""

    def __init__(self, P: Floats, mu: Floats) -> None:
        """Diagonalise once for all times."""
        A = chains.symmetrised(P, mu)
        self.values, self.vectors = np.linalg.eigh((A + A.T) / 2)
        self.root = np.sqrt(mu)

    def at(self, t: float, start: Floats) -> Floats:
        """Return the law after time ``t``."""
        modes = (start / self.root) @ self.vectors
        return np.maximum(modes * np.exp(-t * (1 - self.values)) @ self.vectors.T * self.root, 0.0)

    @property
    def slow(self) -> Floats:
        """Return the function that decays slowest, with mean 0 and variance 1 under the stationary law."""
        return self.vectors[:, -2] / self.root


def chi_square(p: Floats, mu: Floats) -> float:
    """Return sum (p - mu)^2 / mu."""
    return float(((p - mu) ** 2 / mu).sum())


def conditional_divergence(r: Floats, q: Floats, scheme: Scheme) -> float:
    """Return E_K E_{x_-K ~ r} KL(r(x_K | x_-K) || q(x_K | x_-K)) of a scheme whose masks do not depend on the state."""
    total = 0.0
    for mask, given in zip(scheme.masks, scheme.given_MxS, strict=True):
        near = ising.contexts(scheme.N, mask)
        own, other = r[near], q[near]
        inside = special.rel_entr(own, other).sum() - special.rel_entr(own.sum(1), other.sum(1)).sum()
        total += float(given[0]) * float(inside)
    return total


def ratio(r: Floats, q: Floats, scheme: Scheme) -> float:
    """Return KL(r || q) over its conditional divergence, which bounds C_AT from below."""
    below = conditional_divergence(r, q, scheme)
    return float(chains.divergence(r, q)) / below if below > 1e-14 else 0.0


def tensorisation(q: Floats, scheme: Scheme, rng: np.random.Generator, starts: int) -> float:
    """Return the largest `ratio` that was found: from tilts of q along its slow mode and from random laws, upwards.

    A lower bound of C_AT, and never below that of small tilts, 1 / gap, but by rounding.
    """
    slow = Semigroup(chains.block_dynamics(q, scheme), q).slow
    tilted = [q * np.exp(sign * size * slow) for size in TILTS for sign in (-1, 1)]
    laws = [law / law.sum() for law in tilted] + list(rng.dirichlet(np.ones(len(q)), starts))
    found = [ratio(law, q, scheme) for law in laws]

    def falls(logits: Floats) -> float:
        return -ratio(special.softmax(logits), q, scheme)

    for law in [laws[i] for i in np.argsort(found)[-2:]] + laws[-1:]:
        better = optimize.minimize(falls, np.log(law + 1e-12), method="L-BFGS-B", options={"maxiter": 40})
        found.append(-float(better.fun))
    return max(found)


def products(rng: np.random.Generator, N: int) -> Floats:
    """Return a law over the states under which positions are independent, each +1 with a uniform probability."""
    plus = rng.uniform(0.02, 0.98, N)
    return np.asarray(np.where(ising.states(N) > 0, plus, 1 - plus).prod(1))


def least_distance_of_products(p: Floats) -> float:
    """Return the least total variation between a law of two spins and a product law, by search from several starts."""
    up = ising.states(2) > 0

    def apart(plus: Floats) -> float:
        return float(chains.total_variation(np.where(up, plus, 1 - plus).prod(1), p))

    grid = np.linspace(0.02, 0.98, 9)
    starts = sorted(((a, b) for a in grid for b in grid), key=lambda at: apart(np.array(at)))[:6]
    options = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 2000}
    found = [
        optimize.minimize(apart, start, method="Nelder-Mead", bounds=[(0, 1)] * 2, options=options) for start in starts
    ]
    return min(float(each.fun) for each in found)
