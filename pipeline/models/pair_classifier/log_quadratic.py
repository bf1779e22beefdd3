"""SDE-H1: the log-quadratic classifier h = sigmoid(w . phi(z, z')) of pairs.

phi has all products of two coordinates of (z, z'), the coordinates, and 1: (z^2, z z', z'^2, z, z', 1) in one
dimension. The class holds the Bayes classifier of an Ornstein-Uhlenbeck process against any Gaussian noise (`truth`).
It is fitted by least squares on the labels (Liu 2024, Eq. 2.5), from the logistic solution: the squared loss is flat
where h is near 0 or 1, and its minimisation can stall there.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from pipeline.languages.diffusions import CONDITIONAL, Array, Contrast, OrnsteinUhlenbeck, Pairs

RIDGE = 1e-6  # of the logistic start, which is infinite where classes can be separated
EVALUATIONS = 200  # of the squared loss, at most


def features(z: Array, z_prime: Array) -> Array:
    """Return phi (..., F) at points (..., d), with F = (2d + 1)(2d + 2)/2."""
    both = np.concatenate(np.broadcast_arrays(z, z_prime), axis=-1)
    first, second = np.triu_indices(both.shape[-1])
    return np.concatenate([both[..., first] * both[..., second], both, np.ones_like(both[..., :1])], axis=-1)


def truth(process: OrnsteinUhlenbeck, eta: float, contrast: Contrast) -> Array:
    """Return (F,) the weights of the Bayes classifier, log p* - log q as a polynomial."""
    d, a, s2, v = process.d, process.decay(eta), process.variance(eta), contrast.sd**2
    conditional = contrast.kind == CONDITIONAL
    quadratic = np.zeros((2 * d, 2 * d))
    linear = np.zeros(2 * d)
    for i in range(d):
        j = d + i
        quadratic[i, i], quadratic[i, j], quadratic[j, j] = -(a**2) / (2 * s2), a / s2, -1 / (2 * s2)
        quadratic[j, j] += 1 / (2 * v)
        if conditional:
            quadratic[i, i] += 1 / (2 * v)
            quadratic[i, j] -= 1 / v
    linear[d] = -contrast.shift / v
    linear[0] = contrast.shift / v if conditional else 0.0
    constant = contrast.shift**2 / (2 * v) + d / 2 * math.log(v / s2)
    return np.concatenate([quadratic[np.triu_indices(2 * d)], linear, [constant]])


def fit(pairs: Pairs) -> Array:
    """Return (F,) the weights that minimise the squared loss on the pairs, from the logistic solution.

    Levenberg-Marquardt on (h - y), with the exact Jacobian h (1 - h) phi.
    """
    phi, y = features(pairs.x, pairs.x_prime), pairs.y.astype(float)

    def errors(w: Array) -> Array:
        return np.asarray(special.expit(phi @ w) - y)

    def jacobian(w: Array) -> Array:
        h = special.expit(phi @ w)
        return (h * (1 - h))[:, None] * phi

    found = optimize.least_squares(
        errors, logistic(phi, pairs.y), jacobian, method="lm", x_scale="jac", xtol=1e-10, max_nfev=EVALUATIONS
    )
    return np.asarray(found.x)


def logistic(phi_NxF: Array, y_N: NDArray[np.bool_]) -> Array:
    """Return (F,) the minimiser of the mean logistic loss with a small ridge, by Newton's method in a trust region."""
    y = y_N.astype(float)
    n = len(y)

    def loss(w: Array) -> tuple[float, Array]:
        g = phi_NxF @ w
        value = np.logaddexp(0, g).mean() - (y * g).mean() + RIDGE / 2 * w @ w
        return float(value), phi_NxF.T @ (special.expit(g) - y) / n + RIDGE * w

    def hessian(w: Array) -> Array:
        h = special.expit(phi_NxF @ w)
        return (phi_NxF * (h * (1 - h))[:, None]).T @ phi_NxF / n + RIDGE * np.eye(len(w))

    start = np.zeros(phi_NxF.shape[1])
    options = {"gtol": 1e-6, "maxiter": 200, "initial_trust_radius": 10.0, "max_trust_radius": 1e4}
    found = optimize.minimize(loss, start, jac=True, hess=hessian, method="trust-exact", options=options)
    return np.asarray(found.x)
