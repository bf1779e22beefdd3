"""How well a classifier of pairs recovers the kernel of a diffusion in one dimension, by quadrature.

A classifier h = sigmoid(g) implies the kernel p = h q / (1 - h) (Liu 2024, Eq. 2.12), that is log p = g + log q, which
is how it is always computed: where h is near 1 the quotient has no digits left.

Axes: Z first elements z, weighted by pi; Y second elements z', equally spaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import special

from pipeline.languages.diffusions import Array, Contrast, GridChain, OrnsteinUhlenbeck

QUANTILES = (0.95, 0.99)  # of |log p*/q|, whose exponentials stand for c_q where that is infinite


class Recovered(NamedTuple):
    """What was measured of one classifier. ``exc`` is its excess risk R(h) - R(h*); ``kl`` is E_pi KL(p* | p) with rows
    of p normalised; ``l1`` is E_{pi, p*} |p - p*| and ``mass_err`` E_pi |int p - 1|, both with p as it is; ``slope`` is
    that of E_p[z' | z] on z through 0; ``drift_rmse`` the error of E_p[z' | z] over eta."""

    exc: float
    kl: float
    l1: float
    mass_err: float
    slope: float
    drift_rmse: float


@dataclass(frozen=True)
class Reference:
    """The true kernel and the noise on a grid: ``z`` (Z,), ``z_prime`` (Y,), ``weights`` of z (Z,), which sum to 1,
    ``log_p`` and ``log_q`` (Z, Y), densities of z'; ``eta`` the time between them."""

    z: Array
    z_prime: Array
    weights: Array
    log_p: Array
    log_q: Array
    eta: float

    @cached_property
    def cell(self) -> float:
        """Return the width of a cell of z'."""
        return float(self.z_prime[1] - self.z_prime[0])

    @cached_property
    def p(self) -> Array:
        """Return p* (Z, Y)."""
        return np.exp(self.log_p)

    @cached_property
    def joint(self) -> Array:
        """Return (Z, Y) the weights of E_{pi, p*}."""
        return self.weights[:, None] * self.p * self.cell

    @cached_property
    def mixture(self) -> Array:
        """Return (Z, Y) the weights of E_{z ~ pi, z' ~ (p* + q)/2}, the law of pairs."""
        return self.weights[:, None] * (self.p + np.exp(self.log_q)) / 2 * self.cell

    @cached_property
    def bayes(self) -> Array:
        """Return the Bayes classifier h* = p*/(p* + q) (Z, Y), Lemma 1."""
        return special.expit(self.log_p - self.log_q)

    @cached_property
    def mean(self) -> Array:
        """Return E_{p*}[z' | z] (Z,)."""
        return (self.p @ self.z_prime) / self.p.sum(1)

    @cached_property
    def bayes_risk(self) -> float:
        """Return eps_* = R(h*) = E[h* (1 - h*)]."""
        return float((self.mixture * self.bayes * (1 - self.bayes)).sum())

    @cached_property
    def divergence(self) -> float:
        """Return E_pi KL(p* | q)."""
        return float((self.joint * (self.log_p - self.log_q)).sum())

    def closeness(self, level: float, one_sided: bool = False) -> float:
        """Return the effective closeness constant: exp of a quantile of |log p*/q| under the law of pairs.

        One-sided it is of log p*/q under the same law: how much the kernel exceeds the noise.
        """
        ratio = self.log_p - self.log_q
        return float(np.exp(weighted_quantile(ratio if one_sided else np.abs(ratio), self.mixture, level)))

    def measure(self, g: Array) -> Recovered:
        """Return what is measured of the classifier sigmoid(g), g (Z, Y)."""
        log_p = g + self.log_q
        mass = special.logsumexp(log_p, axis=1) + np.log(self.cell)
        with np.errstate(over="ignore"):
            p = np.exp(log_p)
            total = np.exp(mass)
        mean = (np.exp(log_p - mass[:, None]) @ self.z_prime) * self.cell
        off = mean - self.mean
        return Recovered(
            exc=float((self.mixture * (special.expit(g) - self.bayes) ** 2).sum()),
            kl=float((self.joint * (self.log_p - log_p + mass[:, None])).sum()),
            l1=float((self.joint * np.abs(p - self.p)).sum()),
            mass_err=float((self.weights * np.abs(total - 1)).sum()),
            slope=float((self.weights * self.z * mean).sum() / (self.weights * self.z**2).sum()),
            drift_rmse=float(np.sqrt((self.weights * off**2).sum()) / self.eta),
        )

    def kernel(self, g: Array) -> Array:
        """Return the kernel that the classifier sigmoid(g) implies, rows normalised (Z, Y)."""
        log_p = g + self.log_q
        return np.exp(log_p - special.logsumexp(log_p, axis=1, keepdims=True)) / self.cell


def of_ou(process: OrnsteinUhlenbeck, eta: float, contrast: Contrast, z: Array, z_prime: Array) -> Reference:
    """Return the reference of an Ornstein-Uhlenbeck process on grids ``z`` (Z,) and ``z_prime`` (Y,)."""
    first, second = z[:, None, None], z_prime[None, :, None]
    weights = np.exp(process.log_stationary(z[:, None]))
    log_p = process.log_kernel(first, second, eta)
    log_q = np.broadcast_to(contrast.log_density(first, second), log_p.shape)
    return Reference(z, z_prime, weights / weights.sum(), log_p, log_q, eta)


def of_chain(chain: GridChain, eta: float, contrast: Contrast, every: int, half_width: float) -> Reference:
    """Return the reference of a process on a grid: every so many points within ``half_width`` are first elements, and
    all points second elements."""
    chosen = np.arange(0, len(chain.x), every)
    chosen = chosen[np.abs(chain.x[chosen]) <= half_width + 1e-9]
    z = chain.x[chosen]
    weights = chain.stationary[chosen]
    log_q = contrast.log_density(z[:, None, None], chain.x[None, :, None])
    with np.errstate(divide="ignore"):
        # Far from z the kernel is below the smallest number there is.
        log_p = np.maximum(np.log(chain.density[chosen]), -700.0)
    return Reference(z, chain.x, weights / weights.sum(), log_p, np.broadcast_to(log_q, log_p.shape), eta)


def weighted_quantile(values: Array, weights: Array, level: float) -> float:
    """Return the smallest value at or below which lies a share ``level`` of the weights.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), 0.7)
    2.0
    """
    flat, share = np.ravel(values), np.ravel(weights)
    order = np.argsort(flat)
    below = np.cumsum(share[order])
    return float(flat[order][min(np.searchsorted(below, level * below[-1]), len(flat) - 1)])
