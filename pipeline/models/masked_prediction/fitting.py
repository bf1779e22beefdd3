"""Parameters of an HMM fitted to what a predictor says: Definition 2 by optimisation (Liu 2024, section 2.2.1.2).

O is a softmax of logits, column by column, and T Sinkhorn's scaling of exponentials of logits, so that every choice of
logits is a model of Assumption 5. The squared distance to a given predictor is minimised by `scipy.optimize`'s
trust-region least squares, with exact derivatives.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import optimize
from scipy.special import softmax

from pipeline.languages import hmm
from pipeline.languages.hmm import Floats
from pipeline.models.masked_prediction import identifiability

LARGEST_LOGIT = 30.0  # beyond it Sinkhorn's scaling overflows
RIDGE = 1e-12  # far below what a derivative has to be exact to


class Fit(NamedTuple):
    """O and T as they were found, the squared distance of predictors, and how often these were computed."""

    emission: Floats
    transition: Floats
    residual: float
    evaluations: int


def transition_of(logits: Floats, iterations: int) -> Floats:
    """Return the doubly stochastic T (..., k, k) of logits, which are cut off at `LARGEST_LOGIT`."""
    return hmm.sinkhorn(np.exp(np.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT)), iterations, 1e-14)


def scaling_shifts(transition: Floats, weighted: Floats) -> Floats:
    """Return u and v (..., 2k) with u_i + sum_j T_ij v_j and v_j + sum_i T_ij u_i equal to sums of ``weighted``.

    These are the sums of rows and of columns of (..., k, k). Any solution will do: u + a, v - a is one as well, and
    where T falls into blocks there are as many such a.
    """
    k = len(transition)
    # What is added sets sum u = sum v, and changes nothing else; the second, in each block of T.
    free = np.concatenate([np.ones(k), -np.ones(k)])
    system = np.block([[np.eye(k), transition], [transition.T, np.eye(k)]])
    system += np.outer(free, free) + RIDGE * np.eye(2 * k)
    sums = np.concatenate([weighted.sum(-1), weighted.sum(-2)], axis=-1)
    return np.linalg.solve(system, sums.T).T


def transition_gradient(transition: Floats) -> Floats:
    """Return dT / dlogits (k k, k, k): entry (i j) is the derivative by logit (i, j).

    log T_ab = L_ab + u_a + v_b, where u and v keep rows and columns at their sums: implicit differentiation.
    """
    k = len(transition)
    places = np.eye(k * k).reshape(-1, k, k)
    shifts = scaling_shifts(transition, places * transition)
    found: Floats = transition * (places - shifts[:, :k, None] - shifts[:, None, k:])
    return found


def through_scaling(transition: Floats, by_transition: Floats) -> Floats:
    """Return the gradient (k, k) by logits for a gradient by T: the adjoint of `transition_gradient`."""
    k = len(transition)
    shifts = scaling_shifts(transition, transition * by_transition)
    found: Floats = transition * (by_transition - shifts[:k, None] - shifts[None, k:])
    return found


def emission_gradient(emission: Floats) -> Floats:
    """Return dO / dlogits (d k, d, k) of a softmax of each column."""
    d, k = emission.shape
    places = np.eye(d * k).reshape(-1, d, k)
    found: Floats = emission * (places - (places * emission).sum(1, keepdims=True))
    return found


def fit(target: Floats, task: str, start: tuple[Floats, Floats], *, evaluations: int, iterations: int) -> Fit:
    """Return the model whose predictor of a task is closest to ``target`` (m,), from logits ``start`` of O and T.

    ``iterations`` bounds those of Sinkhorn's scaling, ``evaluations`` those of the predictor.
    """
    shape, k = start[0].shape, start[0].shape[1]
    size = start[0].size
    known: dict[bytes, tuple[Floats, Floats]] = {}

    def model(logits: Floats) -> tuple[Floats, Floats]:
        key = logits.tobytes()
        if key not in known:
            known.clear()
            emission = np.asarray(softmax(logits[:size].reshape(shape), axis=0))
            known[key] = emission, transition_of(logits[size:].reshape(k, k), iterations)
        return known[key]

    def residual(logits: Floats) -> Floats:
        return identifiability.predictions(*model(logits), task) - target

    def jacobian(logits: Floats) -> Floats:
        emission, transition = model(logits)
        by_emission, by_transition = emission_gradient(emission), transition_gradient(transition)
        d_emission = np.concatenate([by_emission, np.zeros((k * k, *shape))])
        d_transition = np.concatenate([np.zeros((size, k, k)), by_transition])
        return identifiability.derivative(emission, transition, d_emission, d_transition, task).T

    logits = np.concatenate([start[0].ravel(), start[1].ravel()])
    found = optimize.least_squares(
        residual, logits, jacobian, method="trf", max_nfev=evaluations, ftol=1e-15, xtol=1e-15, gtol=1e-15
    )
    emission, transition = model(found.x)
    return Fit(emission, transition, float(np.square(residual(found.x)).sum()), int(found.nfev))
