"""Fitting Ising models by pseudolikelihood, many samples at once (Li 2025, section 4.2.1.1; Proposition 4.3.6).

A sample is a table of counts (M, S): how often each state came with each mask. The loss is convex in theta, so that
gradient descent, which the source uses, and Newton's method, which is exact sooner, find the same point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.languages import ising
from pipeline.languages.ising import Floats, Ints

CAP = 20.0  # of a coordinate: beyond it a sample is taken for separable
STEP = 2.0  # of a coordinate in one step of Newton's method


@dataclass(frozen=True)
class Fit:
    """What was found of R samples: parameters (R, d), largest entry of the gradient, steps, whether it converged."""

    theta_RxD: Floats
    gradient_R: Floats
    steps_R: Ints
    converged_R: np.ndarray


class Problem:
    """The pseudolikelihood of R samples with the same masks of ``N`` positions; counts (R, M, S) or (R, 1, S) / M."""

    def __init__(self, counts_RxMxS: Floats | Ints, masks: list[int], N: int, columns: int | None = None) -> None:
        """Fit the first ``columns`` parameters alone, the others being 0: without fields, N (N - 1) / 2.

        Raises ValueError for masks that do not cover all positions, and for samples without an observation.
        """
        ising.check_cover(N, masks)
        counts = np.asarray(counts_RxMxS, float)
        if counts.ndim != 3 or counts.shape[1:] != (len(masks), 2**N):
            raise ValueError(f"counts of shape {counts.shape}: expected (samples, {len(masks)}, {2**N})")
        n = counts.sum((1, 2))
        if not (n > 0).all():
            raise ValueError("a sample has no observation")
        self.phi_SxD = ising.statistics(N)[:, :columns]
        self.square_SxDD = np.einsum("sa,sb->sab", self.phi_SxD, self.phi_SxD).reshape(len(self.phi_SxD), -1)
        shares = counts / n[:, None, None]
        self.states_CxJ = np.concatenate([ising.contexts(N, mask) for mask in masks])
        of_mask = np.repeat(np.arange(len(masks)), [2**N // len(ising.submasks(mask)) for mask in masks])
        self.context_RxC = shares[:, of_mask[:, None], self.states_CxJ].sum(-1)
        self.moment_RxD = shares.sum(1) @ self.phi_SxD
        self.marginal_RxMxS = shares
        self.masks, self.N = masks, N

    def gradient(self, theta_RxD: Floats, hessian: bool = False) -> tuple[Floats, Floats | None]:
        """Return (R, d) the gradient of the mean loss and, where asked for, (R, d, d) its second derivatives."""
        logits = (theta_RxD @ self.phi_SxD.T)[:, self.states_CxJ]
        logits -= logits.max(-1, keepdims=True)
        q = np.exp(logits)
        q /= q.sum(-1, keepdims=True)
        weights = self.context_RxC[..., None] * q  # (R, C, J)
        R, S = len(theta_RxD), len(self.phi_SxD)
        at = (np.arange(R)[:, None] * S + self.states_CxJ.ravel()).ravel()
        mass_RxS = np.bincount(at, weights.ravel(), R * S).reshape(R, S)
        gradient = mass_RxS @ self.phi_SxD - self.moment_RxD
        if not hessian:
            return gradient, None
        mean = np.einsum("rcj,cjd->rcd", q, self.phi_SxD[self.states_CxJ], optimize=True)
        d = theta_RxD.shape[1]
        second = (mass_RxS @ self.square_SxDD).reshape(R, d, d)
        return gradient, second - np.matmul((self.context_RxC[..., None] * mean).swapaxes(1, 2), mean)

    def loss(self, theta_RxD: Floats) -> Floats:
        """Return (R,) the mean of -log p(x_K | x_-K) over observations."""
        weights = theta_RxD @ self.phi_SxD.T
        total = -(self.marginal_RxMxS.sum(1) * weights).sum(1)
        near = weights[:, self.states_CxJ]
        top = near.max(-1)
        return total + (self.context_RxC * (top + np.log(np.exp(near - top[..., None]).sum(-1)))).sum(1)

    @property
    def start(self) -> Floats:
        """Return (R, d) zeros, where both methods start."""
        return np.zeros((len(self.moment_RxD), self.phi_SxD.shape[1]))


def newton(problem: Problem, tolerance: float = 1e-10, most: int = 100) -> Fit:
    """Return the minima by Newton's method, each step cut to `STEP` in every coordinate and parameters to `CAP`."""
    theta = problem.start
    steps = np.zeros(len(theta), int)
    for _ in range(most):
        gradient, second = problem.gradient(theta, hessian=True)
        assert second is not None
        open_R = np.abs(gradient).max(1) > tolerance
        if not open_R.any():
            break
        d = theta.shape[1]
        # Where a sample is nearly separable the second derivatives are nearly singular.
        ridge = 1e-12 * (1 + np.trace(second, axis1=1, axis2=2))[:, None, None] * np.eye(d)
        step = np.linalg.solve(second + ridge, gradient[..., None])[..., 0]
        theta = np.clip(theta - np.clip(step, -STEP, STEP) * open_R[:, None], -CAP, CAP)
        steps += open_R
    return _fit(problem, theta, steps, tolerance)


def descend(problem: Problem, rate: float, most: int, tolerance: float) -> Fit:
    """Return the minima by gradient descent on full batches from 0; a sample's rate is halved where its loss rises."""
    theta = problem.start
    rates, before = np.full(len(theta), rate), problem.loss(theta)
    steps = np.zeros(len(theta), int)
    for _ in range(most):
        gradient, _ = problem.gradient(theta)
        open_R = np.abs(gradient).max(1) > tolerance
        if not open_R.any():
            break
        ahead = np.clip(theta - rates[:, None] * gradient * open_R[:, None], -CAP, CAP)
        loss = problem.loss(ahead)
        rose = loss > before + 1e-12
        theta = np.where(rose[:, None], theta, ahead)
        before, rates = np.where(rose, before, loss), np.where(rose, rates / 2, rates)
        steps += open_R
    return _fit(problem, theta, steps, tolerance)


def _fit(problem: Problem, theta: Floats, steps: Ints, tolerance: float) -> Fit:
    largest = np.abs(problem.gradient(theta)[0]).max(1)
    inside = np.abs(theta).max(1) < CAP
    return Fit(theta, largest, steps, inside & (largest <= max(tolerance, 1e-8)))
