"""Log-ratios linear in their statistics: losses, gradients, Hessians and descent, many paths at once (Liu 2024, 4.1).

psi(x) = delta . T(x) with delta = tau - tau_q estimates log p/q. Both losses are sums over *points* that carry
weights of the data distribution P* and of the noise Q: a quadrature rule makes them population losses, samples make
them empirical ones. Arrays hold P problems, K parameters each, D coordinates, N points; all in float64.

Losses never form p/(p + q) from densities: at distance R the interesting scale is exp(-R^2/8).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from pipeline.kit.streams import one_thread
from pipeline.languages.exponential_families import mean_optimum, mean_points

Array = NDArray[np.float64]
Rows = NDArray[np.bool_]

NCE, ENCE = "nce", "ence"


class Problem(Protocol):
    """P losses of D parameters. All methods take delta (P, K, D)."""

    def loss(self, delta_PxKxD: Array) -> Array:
        """Return the losses, (P, K)."""

    def gradient(self, delta_PxKxD: Array) -> Array:
        """Return the gradients, (P, K, D)."""

    def hessian(self, delta_PxKxD: Array) -> Array:
        """Return the Hessians, (P, K, D, D)."""

    def keep(self, rows: Rows) -> Problem:
        """Return the problems that the boolean ``rows`` (P,) choose."""


@dataclass(frozen=True)
class Points:
    """Statistics (P, D, N) with weights (P, N) under P* and Q; 0 for points that are not of a distribution."""

    statistics_PxDxN: Array
    data_PxN: Array
    noise_PxN: Array

    def ratio(self, delta_PxKxD: Array) -> Array:
        """Return the log-ratios psi, (P, K, N)."""
        return _product(delta_PxKxD, self.statistics_PxDxN)

    def first_moment(self, weights_PxKxN: Array) -> Array:
        """Return the sum of w T over points, (P, K, D)."""
        return _product(weights_PxKxN, self.statistics_PxDxN.swapaxes(1, 2))

    def _second(self, weights_PxKxN: Array) -> Array:
        """Return the sum of w T T^T over points, (P, K, D, D)."""
        d = self.statistics_PxDxN.shape[1]
        i, j = np.tril_indices(d)
        moments = np.empty((*weights_PxKxN.shape[:2], d, d))
        moments[:, :, i, j] = moments[:, :, j, i] = _product(weights_PxKxN, self._pairs_PxMxN.swapaxes(1, 2))
        return moments

    @cached_property
    def _pairs_PxMxN(self) -> Array:
        i, j = np.tril_indices(self.statistics_PxDxN.shape[1])
        return self.statistics_PxDxN[:, i] * self.statistics_PxDxN[:, j]

    def _kept(self, rows: Rows) -> tuple[Array, Array, Array]:
        weights = self.data_PxN[rows] + self.noise_PxN[rows]
        last = int(np.flatnonzero(weights.any(0)).max(initial=0)) + 1
        return (
            np.ascontiguousarray(self.statistics_PxDxN[rows][:, :, :last]),
            self.data_PxN[rows][:, :last],
            self.noise_PxN[rows][:, :last],
        )


class Nce(Points):
    """The loss of Definition 19, its gradient and Hessian (Eq. 4.1, 4.2)."""

    def loss(self, delta_PxKxD: Array) -> Array:
        """Return 1/2 E_* softplus(-psi) + 1/2 E_Q softplus(psi), (P, K).

        In it softplus(x) = max(x, 0) + log(1 + exp(-|x|)).
        """
        psi = self.ratio(delta_PxKxD)
        far = self.data_PxN[:, None] * np.maximum(-psi, 0) + self.noise_PxN[:, None] * np.maximum(psi, 0)
        near = (self.data_PxN + self.noise_PxN)[:, None] * np.log1p(np.exp(-np.abs(psi)))
        return (far + near).sum(-1) / 2

    def gradient(self, delta_PxKxD: Array) -> Array:
        """Return -1/2 E_*[sigmoid(-psi) T] + 1/2 E_Q[sigmoid(psi) T], (P, K, D)."""
        positive, negative = self._sigmoids(delta_PxKxD)
        # In place: for arrays of this size fresh memory takes longer than the arithmetic.
        positive *= self.noise_PxN[:, None]
        negative *= self.data_PxN[:, None]
        positive -= negative
        return self.first_moment(positive) / 2

    def hessian(self, delta_PxKxD: Array) -> Array:
        """Return 1/2 (E_* + E_Q)[sigmoid(psi) sigmoid(-psi) T T^T], (P, K, D, D)."""
        weights, negative = self._sigmoids(delta_PxKxD)
        weights *= negative
        weights *= (self.data_PxN + self.noise_PxN)[:, None]
        return self._second(weights) / 2

    def keep(self, rows: Rows) -> Nce:
        """Return the problems that ``rows`` choose."""
        return Nce(*self._kept(rows))

    def _sigmoids(self, delta_PxKxD: Array) -> tuple[Array, Array]:
        """Return sigmoid(psi) and sigmoid(-psi), each to all digits.

        They are 1/(1 + exp(-psi)) and 1/(1 + exp(psi)).
        """
        negative = self.ratio(delta_PxKxD)
        with np.errstate(over="ignore", divide="ignore"):  # beyond 700 one of them is 0, the other 1
            np.exp(negative, out=negative)
            positive = 1 / negative
        for sigmoid in (positive, negative):
            sigmoid += 1
            np.reciprocal(sigmoid, out=sigmoid)
        return positive, negative


class Ence(Points):
    """The exponential loss of Definition 20 (Eq. 4.11, 4.12). What overflows is inf or nan, without a warning."""

    def loss(self, delta_PxKxD: Array) -> Array:
        """Return 1/2 E_* exp(-psi/2) + 1/2 E_Q exp(psi/2), (P, K)."""
        data, noise = self._terms(delta_PxKxD)
        return (data.sum(-1) + noise.sum(-1)) / 2

    def gradient(self, delta_PxKxD: Array) -> Array:
        """Return -1/4 E_*[exp(-psi/2) T] + 1/4 E_Q[exp(psi/2) T], (P, K, D)."""
        data, noise = self._terms(delta_PxKxD)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.first_moment(noise - data) / 4

    def hessian(self, delta_PxKxD: Array) -> Array:
        """Return 1/8 E_*[exp(-psi/2) T T^T] + 1/8 E_Q[exp(psi/2) T T^T], (P, K, D, D)."""
        data, noise = self._terms(delta_PxKxD)
        return self._second(noise + data) / 8

    def keep(self, rows: Rows) -> Ence:
        """Return the problems that ``rows`` choose."""
        return Ence(*self._kept(rows))

    def _terms(self, delta_PxKxD: Array) -> tuple[Array, Array]:
        """Return exp(-psi/2) and exp(psi/2), each times its weights.

        A point that is not of a distribution does not count, however far its ratio is: 0 * inf is nan.
        """
        noise = self.ratio(delta_PxKxD)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            noise /= 2
            np.exp(noise, out=noise)
            data = 1 / noise
            for terms, weights in ((data, self.data_PxN), (noise, self.noise_PxN)):
                terms *= weights[:, None]
                np.copyto(terms, 0.0, where=(weights == 0)[:, None])
        return data, noise


@dataclass(frozen=True)
class EnceMean:
    """The population eNCE loss of N(R, 1) against N(0, 1) in closed form; delta = (b, c - log sqrt(2 pi)).

    E_1 = E_* exp(-psi/2) and E_2 = E_Q exp(psi/2) are Gaussian integrals, and E_i weighs N(m_i, 1) with mean
    m_1 = R - b/2, m_2 = b/2.
    """

    mean_P: Array

    def _terms(self, delta_PxKxD: Array) -> tuple[Array, Array, Array, Array]:
        b, c = delta_PxKxD[..., 0], delta_PxKxD[..., 1]
        mean = self.mean_P[:, None]
        with np.errstate(over="ignore"):
            return np.exp(c / 2 - b * mean / 2 + b**2 / 8), np.exp(-c / 2 + b**2 / 8), mean - b / 2, b / 2

    def loss(self, delta_PxKxD: Array) -> Array:
        """Return (E_1 + E_2)/2, (P, K)."""
        e1, e2, _, _ = self._terms(delta_PxKxD)
        return (e1 + e2) / 2

    def gradient(self, delta_PxKxD: Array) -> Array:
        """Return [(-m_1 E_1 + m_2 E_2), (E_1 - E_2)] / 4, (P, K, 2)."""
        e1, e2, m1, m2 = self._terms(delta_PxKxD)
        return np.stack([m2 * e2 - m1 * e1, e1 - e2], axis=-1) / 4

    def hessian(self, delta_PxKxD: Array) -> Array:
        """Return the sum over i of E_i [[1 + m_i^2, -m_i], [-m_i, 1]] / 8, (P, K, 2, 2)."""
        e1, e2, m1, m2 = self._terms(delta_PxKxD)
        mixed = -(e1 * m1 + e2 * m2)
        flat = np.stack([e1 * (1 + m1**2) + e2 * (1 + m2**2), mixed, mixed, e1 + e2], axis=-1)
        return flat.reshape(*flat.shape[:-1], 2, 2) / 8

    def keep(self, rows: Rows) -> EnceMean:
        """Return the problems that ``rows`` choose."""
        return EnceMean(self.mean_P[rows])


def mean_problem(loss: str, means: ArrayLike, points: int | None = None) -> Problem:
    """Return the population loss of N(R, 1) against N(0, 1), R of ``means``.

    NCE is by quadrature, eNCE in closed form.
    """
    means = np.atleast_1d(np.asarray(means, float))
    return Nce(*mean_points(means, points)) if loss == NCE else EnceMean(means)


# Matrices (.., 2, 2)


def extremes(matrix: Array) -> tuple[Array, Array]:
    """Return the largest and smallest eigenvalue of symmetric positive (.., 2, 2).

    The smallest is the determinant over the largest, which keeps its digits where the condition number is
    large.
    """
    a, b, d = matrix[..., 0, 0], matrix[..., 0, 1], matrix[..., 1, 1]
    largest = (a + d) / 2 + np.hypot((a - d) / 2, b)
    return largest, (a * d - b * b) / largest


# Around the optimum of the mean family


def curvature(loss: str, means: Array) -> tuple[Array, Array, Array]:
    """Return lambda_M, lambda_rho, and kappa at tau_*, (P,) each.

    lambda_M = sigma_max(Hessian at tau_q), lambda_rho = sigma_min(Hessian at tau_*).
    """
    problem, optimum = mean_problem(loss, means), mean_optimum(means)
    at_noise, _ = extremes(problem.hessian(0 * optimum)[:, 0])
    largest, smallest = extremes(problem.hessian(optimum)[:, 0])
    return at_noise, smallest, largest / smallest


def circle(angles: int) -> Array:
    """Return equidistant unit vectors (K, 2), the first again at the end."""
    angle = np.linspace(0, 2 * np.pi, angles)
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def ball(means: Array, radius: Array, radii: int, angles: int) -> Array:
    """Return a polar grid (P, K, 2), as delta, of the ball of ``radius`` (P,) around tau_*."""
    polar = (np.arange(1, radii + 1) / radii)[:, None, None] * circle(angles + 1)[:-1]
    return mean_optimum(means) + radius[:, None, None] * polar.reshape(1, -1, 2)


def decay_limit(r: ArrayLike) -> Array:
    """Return the limit for large R of -8 log(max |<gradient, u>|)/R^2 over a circle around tau_* (NCE).

    The circle has radius r R.
    """
    return 4 * ((0.5 - np.asarray(r)) / (1 - np.asarray(r))) ** 2


def stability(loss: str, means: Array, radius: Array, radii: int, angles: int) -> tuple[Array, Array]:
    """Return beta_u and beta_l of Assumption 15, (P,) each.

    They are extremes of the Hessian on `ball`, relative to those at tau_*.
    """
    problem = mean_problem(loss, means)
    largest, smallest = extremes(problem.hessian(ball(means, radius, radii, angles)))
    at_largest, at_smallest = extremes(problem.hessian(mean_optimum(means)))
    upper = np.maximum((largest / at_largest).max(1), 1)
    return upper, np.minimum((smallest / at_smallest).min(1), 1)


# Descent

Rule = Callable[[Problem, Array, Array], Array]  # (problem, delta, eta (P, 1, 1)) -> next delta


def gradient_step(problem: Problem, delta: Array, eta: Array) -> Array:
    """Return delta - eta g, a step of GD."""
    return delta - eta * problem.gradient(delta)


def normalised_step(problem: Problem, delta: Array, eta: Array) -> Array:
    """Return delta - eta g/|g|, Euclidean over all coordinates, a step of NGD; delta where g is exactly 0."""
    return delta - eta * normalised(problem.gradient(delta))


def newton_step(problem: Problem, delta: Array, eta: Array) -> Array:
    """Return delta - eta H^-1 g, a step of Newton's method."""
    return delta - eta * np.linalg.solve(problem.hessian(delta), problem.gradient(delta)[..., None])[..., 0]


def normalised(gradient: Array) -> Array:
    """Return g/|g| along the last axis; 0 where g is 0, nan where not finite.

    g is scaled first, so that no square underflows.
    """
    with np.errstate(invalid="ignore"):
        scaled = gradient / np.where(gradient.any(-1, keepdims=True), np.abs(gradient).max(-1, keepdims=True), 1)
        return scaled / np.where(scaled.any(-1, keepdims=True), np.linalg.norm(scaled, axis=-1, keepdims=True), 1)


RULES: dict[str, Rule] = {"gd": gradient_step, "ngd": normalised_step, "newton": newton_step}


@dataclass(frozen=True)
class Descent:
    """What `descend` measured on P paths.

    ``steps`` (P, M) are the updates until the distance was at most each target, -1 if never; ``final`` (P,)
    are the last distances.
    """

    steps: NDArray[np.int64]
    final: Array


def descend(
    problem: Problem, rule: Rule, start: Array, optimum: Array, eta: ArrayLike, targets: Array, caps: ArrayLike
) -> Descent:
    """Run P paths together, each until it has met all of its ``targets`` (P, M), distances to ``optimum`` (P, 1, D),
    or made ``caps`` (P,) updates. Finished paths leave the batch.

    ``start`` has shape (P, 1, D), ``eta`` (P,). Distances are Euclidean over all coordinates.
    """
    count = len(start)
    eta, caps = np.broadcast_to(np.asarray(eta, float), count), np.broadcast_to(np.asarray(caps), count)
    steps, final = np.full(targets.shape, -1), np.zeros(count)
    place, delta, rate, step = np.arange(count), start.copy(), eta[:, None, None], 0
    while True:
        distance = np.sqrt(((delta - optimum[place]) ** 2).sum((1, 2)))
        hit = (distance[:, None] <= targets[place]) & (steps[place] < 0)
        if hit.any():
            row, column = np.nonzero(hit)
            steps[place[row], column] = step
        if hit.any() or step >= caps[place].min():
            going = (steps[place] < 0).any(1) & (step < caps[place])
            final[place[~going]] = distance[~going]
            if not going.any():
                return Descent(steps, final)
            place, delta, rate, problem = place[going], delta[going], rate[going], problem.keep(going)
        delta, step = rule(problem, delta, rate), step + 1


def _product(left: Array, right: Array) -> Array:
    """Return (P, K, A) times (P, A, B), on one thread: more would change the last bits."""
    if left.shape[1] == 1 and left.shape[2] * right.shape[2] < 9000:
        return left @ right  # OpenBLAS has threads for larger products only
    with one_thread():
        return torch.matmul(torch.from_numpy(np.ascontiguousarray(left)), torch.from_numpy(right)).numpy()
