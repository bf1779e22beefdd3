"""Both sides of the inequalities of section 2.1.3 on random instances, exactly (chapter 5.2 to 5.5).

Everything is on finite chains, where the ratio of kernel and noise is bounded, or on the Ornstein-Uhlenbeck process,
where integrals are sums over fine grids.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from pipeline.languages import diffusions
from pipeline.languages.diffusions import Array, Chain, Contrast, OrnsteinUhlenbeck

CAP = 7 / 6  # on p/p*, which Theorem 2 asks for
POWER = 5  # of 1 + c_q in Theorem 2


class Sides(NamedTuple):
    """The sides of an inequality lhs <= rhs."""

    lhs: float
    rhs: float


# The excess risk of one pair as a function of delta, where p = p* (1 + delta); u = p*/(p* + q) and v = 1 - u


def excess(delta: Array, u: Array) -> Array:
    """Return r(delta) = (h - h*)^2 (Eq. 2.23)."""
    return np.asarray((u * (1 - u) * delta / (1 + u * delta)) ** 2)


def excess_curvature(delta: Array, u: Array) -> Array:
    """Return r''(delta) = 2 u^2 v^2 (1 - 2 u delta)/(1 + u delta)^4."""
    return np.asarray(2 * u**2 * (1 - u) ** 2 * (1 - 2 * u * delta) / (1 + u * delta) ** 4)


def least_curvature(u: Array) -> Array:
    """Return 2 u^2 v^3, below which r'' does not fall for delta <= 1/6."""
    return np.asarray(2 * u**2 * (1 - u) ** 3)


def printed_curvature(p: Array, q: Array, largest: float) -> Array:
    """Return the lower bound on r'' that Eq. 2.24 prints, ``largest`` its Delta_max. It has p*^5 in its second term,
    so that it depends on the unit in which densities are measured."""
    first = 2 * p**2 * q**2 / (p + q) ** 5 * ((7 - 6 * largest) * p + q)
    return np.asarray(first + 12 * p**5 * q**2 / (p + q) * (5 * p + 3 * q - 2 * p * largest) / (largest * p + q) ** 6)


# Finite chains: p has the shape of the kernel P, (K, K)


def classifier(kernel_KxK: Array, noise_K: Array) -> Array:
    """Return h = p/(p + q) (K, K)."""
    return kernel_KxK / (kernel_KxK + noise_K)


def excess_risk(chain: Chain, h_KxK: Array) -> float:
    """Return E_{z ~ pi, z' ~ (P + q)/2} (h - h*)^2."""
    law = chain.stationary[:, None] * (chain.kernel + chain.noise) / 2
    return float((law * (h_KxK - classifier(chain.kernel, chain.noise)) ** 2).sum())


def risk(chain: Chain, h_KxK: Array) -> float:
    """Return R(h) = E (h - y)^2, summed over labels."""
    positive, negative = (chain.stationary[:, None] * chain.kernel / 2, chain.stationary[:, None] * chain.noise / 2)
    return float((positive * (1 - h_KxK) ** 2 + negative * h_KxK**2).sum())


def closeness(chain: Chain) -> float:
    """Return c_q, the least constant of Eq. 2.4."""
    ratio = chain.kernel / chain.noise
    return float(max(ratio.max(), (1 / ratio).max()))


def local(chain: Chain, kernel_KxK: Array) -> Sides:
    """Return E_pi KL(P | p) and its bound (1 + c_q)^5 Exc / Delta_min^2 (Theorem 2, Eq. 2.28)."""
    P, pi = chain.kernel, chain.stationary
    divergence = float((pi[:, None] * P * np.log(P / kernel_KxK)).sum())
    smallest = float((kernel_KxK / P).min())
    bound = (1 + closeness(chain)) ** POWER * excess_risk(chain, classifier(kernel_KxK, chain.noise))
    return Sides(divergence, bound / smallest**2)


def overall(chain: Chain, kernel_KxK: Array) -> Sides:
    """Return E_{pi, P} |p - P| and the product of roots that bounds it (Eq. 2.32)."""
    P, q = chain.kernel, chain.noise
    law = chain.stationary[:, None] * P
    error = float((law * np.abs(kernel_KxK - P)).sum())
    squares = float((law * (classifier(kernel_KxK, q) - classifier(P, q)) ** 2).sum())
    weight = float((law * (np.maximum(kernel_KxK, P) + q) ** 4 / q**2).sum())
    return Sides(error, math.sqrt(squares * weight))


def bounded(chain: Chain, kernel_KxK: Array) -> Sides:
    """Return E_{pi, P} (max(p, P) + q)^4/q^2 and (2 c_q + 1)^4 E_{pi, P} P^2, which bounds it for p/P <= 7/6
    (Remark 1)."""
    P, q = chain.kernel, chain.noise
    law = chain.stationary[:, None] * P
    weight = float((law * (np.maximum(kernel_KxK, P) + q) ** 4 / q**2).sum())
    return Sides(weight, (2 * closeness(chain) + 1) ** 4 * float((law * P**2).sum()))


def doubled(chain: Chain, kernel_KxK: Array) -> Sides:
    """Return E_{pi, P} (h - h*)^2 and the excess risk; the first is at most twice the second (Eq. 2.30)."""
    P, q = chain.kernel, chain.noise
    h, bayes = classifier(kernel_KxK, q), classifier(P, q)
    return Sides(float((chain.stationary[:, None] * P * (h - bayes) ** 2).sum()), excess_risk(chain, h))


# The Ornstein-Uhlenbeck process


def second_factor(
    process: OrnsteinUhlenbeck, eta: float, contrast: Contrast, reach: float = 8.0, points: int = 1201
) -> float:
    """Return the square root of E_{pi, p*} (p* + q)^4 / q^2, the second factor of Eq. 2.32 for p = p*, for d = 1 and
    z within ``reach`` stationary standard deviations of 0. Infinite where it has no number."""
    z = np.linspace(-reach, reach, points) / math.sqrt(process.rho)
    # The integrand p*^5/q^2 is a Gaussian in z', around a point that may be far from the mean of p*: 2 s^2 covers it
    # where q is as wide as p*, and a narrower q leaves no finite integral.
    spread = 12 * math.sqrt(process.variance(eta))
    centre = process.decay(eta) * z
    z_prime = centre[:, None] + np.linspace(-spread, spread, points)
    first, second = np.broadcast_to(z[:, None], z_prime.shape)[..., None], z_prime[..., None]
    log_p, log_q = process.log_kernel(first, second, eta), contrast.log_density(first, second)
    inside = log_p + 4 * np.logaddexp(log_p, log_q) - 2 * log_q
    rows = special.logsumexp(inside, axis=1) + math.log(2 * spread / (points - 1))
    total = special.logsumexp(rows + process.log_stationary(z[:, None])) + math.log(z[1] - z[0])
    return float(np.exp(total / 2)) if total < 1400 else math.inf


def mean_norm_bound(process: OrnsteinUhlenbeck, printed: bool) -> Sides:
    """Return B and its bound pi(0) sqrt(d/rho), as Eq. 2.2 prints it, or with the factor (2 pi/rho)^(d/2) that the
    integral over an unnormalised Gaussian leaves."""
    d, rho = process.d, process.rho
    at_zero = float(np.exp(process.log_stationary(np.zeros(d))))
    factor = 1.0 if printed else (2 * math.pi / rho) ** (d / 2)
    return Sides(process.mean_norm, at_zero * factor * math.sqrt(d / rho))


def mixing_bound(process: OrnsteinUhlenbeck, t: float) -> float:
    """Return B / sqrt(2 pi t) (Lemma 5)."""
    return process.mean_norm / math.sqrt(2 * math.pi * t)


def envelope_margin(process: OrnsteinUhlenbeck, eta: float, c: float, C: float, points: int = 201) -> float:
    """Return by how much the logarithms of both envelopes of Lemma 6 clear log p*, the least over a grid of (z, z')."""
    z = np.linspace(-6, 6, points)[:, None]
    z_prime = np.linspace(-8, 8, points)[None, :]
    log_p = process.log_kernel(z[..., None], z_prime[..., None], eta)
    apart = (z - z_prime) ** 2 / eta
    height = -process.d / 2 * math.log(eta)
    low = -math.log(c) + height - C * apart - C * eta * z**2
    high = math.log(c) + height - apart / c + C * eta * z**2
    return float(min((log_p - low).min(), (high - log_p).min()))


def height_by_quadrature(process: OrnsteinUhlenbeck, eta: float, nodes: int) -> float:
    """Return E_{pi, p*} p* by Gauss-Hermite quadrature over the noise in each of d coordinates."""
    at, weight = special.roots_hermitenorm(nodes)
    axes = np.meshgrid(*[at] * process.d, indexing="ij")
    weights = math.prod(np.meshgrid(*[weight] * process.d, indexing="ij")) / (2 * math.pi) ** (process.d / 2)
    noise = math.sqrt(process.variance(eta)) * np.stack(axes, axis=-1)
    z = np.full(process.d, 0.7)  # the kernel's height does not depend on where it starts
    return float((weights * np.exp(process.log_kernel(z, process.decay(eta) * z + noise, eta))).sum())


def mixing_of_pairs(chain: Chain, pairs: int) -> tuple[float, float, float, float]:
    """Return beta_L(2i), beta_S(2i) without and with the label, and beta_L(2i - 1), for i = ``pairs`` (Lemma 4)."""
    return (
        diffusions.chain_mixing(chain, 2 * pairs),
        diffusions.pair_mixing(chain, pairs, labelled=False),
        diffusions.pair_mixing(chain, pairs, labelled=True),
        diffusions.chain_mixing(chain, 2 * pairs - 1),
    )
