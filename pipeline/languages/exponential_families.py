"""Exponential families with the log partition function as a parameter (Liu 2024, section 4.1.1.2 and footnote 7).

A density is p(x) = exp(tau . T(x)) h(x) with tau = [theta, alpha] and T(x) = [T~(x), -1]; it integrates to one
exactly where alpha is the log partition function. The log-ratio of two of them is linear in tau, and h cancels.

Two families: *mean*, N(R, 1) on the line, h(x) = exp(-x^2/2), T(x) = [x, -1]; and *diagonal*, N(mu, diag(s)) in d
dimensions, h = 1, T(x) = [-x_1^2/2 .., x_1 .., -1], which has 2d + 1 coordinates. Statistics have shape (.., D, N),
one column per point.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

LOG_NORMALISER = float(np.log(2 * np.pi) / 2)  # log sqrt(2 pi)
GRID = 0.4  # spacing of quadrature, in units of 1/R: the sigmoid of a log-ratio of slope R has poles at pi/R
TAIL = 9.0  # standard deviations after which quadrature stops: a mass of 2e-19


# The mean family


def mean_point(theta: ArrayLike) -> Array:
    """Return tau of N(theta, 1), shape (.., 2)."""
    theta = np.asarray(theta, float)
    return np.stack([theta, theta**2 / 2 + LOG_NORMALISER], axis=-1)


def mean_statistics(x: ArrayLike) -> Array:
    """Return T(x) = [x, -1] of points (.., N), shape (.., 2, N)."""
    x = np.asarray(x, float)
    return np.stack([x, -np.ones_like(x)], axis=-2)


def mean_moments(theta: ArrayLike) -> Array:
    """Return E[T T^T] under N(theta, 1), shape (.., 2, 2); its determinant is 1."""
    theta = np.asarray(theta, float)
    return np.stack([np.stack([1 + theta**2, -theta], -1), np.stack([-theta, np.ones_like(theta)], -1)], axis=-2)


def largest_moment(theta: ArrayLike) -> Array:
    """Return the largest eigenvalue of `mean_moments`; the smallest is its inverse (Assumption 13)."""
    theta = np.asarray(theta, float)
    return ((np.abs(theta) + np.sqrt(theta**2 + 4)) / 2) ** 2


def mean_overlap(distance: ArrayLike) -> Array:
    """Return the Bhattacharyya coefficient of N(0, 1) and N(distance, 1)."""
    return np.exp(-(np.asarray(distance, float) ** 2) / 8)


def normal_density(x: ArrayLike, mean: ArrayLike) -> Array:
    """Return the density of N(mean, 1) at ``x``."""
    return np.exp(-((np.asarray(x, float) - mean) ** 2) / 2 - LOG_NORMALISER)


def mean_points(means: ArrayLike, points: int | None = None) -> tuple[Array, Array, Array]:
    """Return the trapezoid rule for N(R, 1) against N(0, 1), for each R of ``means``.

    It consists of statistics (P, 2, N) and weights (P, N) under each of the two.

    Each problem has ``points`` points, or as many as a spacing of `GRID` / max(R, 1) needs; shorter rules are
    filled up with points of no weight. The rule converges exponentially, because the densities are analytic.
    """
    means = np.asarray(means, float)
    counts = [points or int((mean + 2 * TAIL) * max(mean, 1.0) / GRID) + 2 for mean in means]
    x, data, noise = np.zeros((3, len(means), max(counts)))
    for i, (mean, n) in enumerate(zip(means, counts, strict=True)):
        x[i, :n] = np.linspace(-TAIL, mean + TAIL, n)
        width = np.full(n, x[i, 1] - x[i, 0])
        width[[0, -1]] /= 2
        data[i, :n], noise[i, :n] = (width * normal_density(x[i, :n], at) for at in (mean, 0.0))
    return mean_statistics(x), data, noise


def mean_optimum(means: ArrayLike) -> Array:
    """Return tau_* - tau_q for N(R, 1) against N(0, 1): (R, R^2/2), shape (P, 1, 2)."""
    means = np.atleast_1d(np.asarray(means, float))
    return np.stack([means, means**2 / 2], axis=-1)[:, None]


# The diagonal family


def diagonal_point(mean: ArrayLike, variance: ArrayLike) -> Array:
    """Return tau of N(mean, diag(variance)), inputs (.., d): shape (.., 2d + 1)."""
    mean, variance = np.broadcast_arrays(np.asarray(mean, float), np.asarray(variance, float))
    log_partition = (mean**2 / variance + np.log(2 * np.pi * variance)).sum(-1, keepdims=True) / 2
    return np.concatenate([1 / variance, mean / variance, log_partition], axis=-1)


def diagonal_statistics(x: ArrayLike) -> Array:
    """Return T(x) of points (.., N, d), shape (.., 2d + 1, N)."""
    x = np.swapaxes(np.asarray(x, float), -1, -2)
    return np.concatenate([-(x**2) / 2, x, -np.ones_like(x[..., :1, :])], axis=-2)


def diagonal_moments(mean: ArrayLike, variance: ArrayLike) -> Array:
    """Return E[T T^T] under N(mean, diag(variance)), inputs (d,): shape (2d + 1, 2d + 1)."""
    m, v = np.broadcast_arrays(np.asarray(mean, float), np.asarray(variance, float))
    first = np.concatenate([-(v + m**2) / 2, m, [-1.0]])
    covariance = np.zeros((len(first), len(first)))
    d, i = len(m), np.arange(len(m))
    covariance[i, i] = (2 * v**2 + 4 * m**2 * v) / 4  # Var(x^2) / 4
    covariance[d + i, d + i] = v
    covariance[i, d + i] = covariance[d + i, i] = -m * v  # Cov(-x^2/2, x)
    return covariance + np.outer(first, first)


def diagonal_between(variance: ArrayLike) -> Array:
    """Return the variances of the normalised sqrt(p q), 2/(1 + 1/s).

    They are for centred p with ``variance`` and q = N(0, I).
    """
    return 2 / (1 + 1 / np.asarray(variance, float))


def diagonal_overlap(variance: ArrayLike) -> Array:
    """Return the Bhattacharyya coefficient of N(0, diag(variance)) and N(0, I), variances (.., d)."""
    s = np.asarray(variance, float)
    return np.exp((np.log(2) + np.log(s) / 2 - np.log1p(s)).sum(-1) / 2)
