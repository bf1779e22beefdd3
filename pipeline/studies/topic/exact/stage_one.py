"""Optimal linear maps under uniform attention (Li 2025, Lemma 2.1.1, Theorems 2.1.1, 2.1.2 and 2.1.4).

With uniform attention every column of the output is W x̄, where x̄ (V,) has the shares of words in the masked document.
The squared loss of equation 2.3, summed over coordinates, is then the mean over documents of ``|W x̄ - p|²`` plus the
floor 1 - 1 / (tau v), where p (V,) has the shares of words before masking. Everything is in float64.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize

from pipeline.languages.topic import Floats, Population


def floor(population: Population) -> float:
    """Return L* = 1 - 1 / (tau v): what is left when the shares of words are predicted exactly."""
    return 1 - 1 / (population.tau * population.v)


def excess(population: Population, W_VxV: Floats, bias_V: Floats | float = 0.0) -> float:
    """Return L(W) - L*: the mean over documents of ``|W x̄ + b - p|²``."""
    missed = population.masked_DxV @ W_VxV.T + bias_V - population.law_DxV
    return float((missed**2).sum(1).mean())


def member(population: Population, u_V: Floats, noise_VxV: Floats) -> Floats:
    """Return (V, V) an optimum by Lemma 2.1.1: its constants are ``u_V``; ``noise_VxV``, centred over the words of each
    topic, is free."""
    words, v = population.words, population.v
    c_1, c_2, c_3, _ = population.constants
    free = noise_VxV[:, 1:].reshape(words + 1, population.topics, v)
    W = np.empty((words + 1, words + 1))
    W[:, 1:] = (free - free.mean(-1, keepdims=True)).reshape(words + 1, words) + u_V[:, None]
    same = population.topic_V[1:, None] == population.topic_V[1:]
    W[1:, 1:] += same * (c_3 / v)
    W[:, 0] = -c_2 * u_V
    W[1:, 0] -= c_1
    return W


def violations(population: Population, W_VxV: Floats, first: float | None = None) -> tuple[Floats, dict[str, float]]:
    """Return u (V,), read off from blocks of other topics, and by how much each condition of Lemma 2.1.1 is violated.

    ``first`` takes the place of c_1, which is 0 in Theorem 2.1.1. Conditions, by their places in the lemma: ``1a`` and
    ``1b`` of row 0, ``2a`` of column 0, ``3a`` of the own topic, ``3b`` of other topics.
    """
    v = population.v
    c_1, c_2, c_3, _ = population.constants
    sums_VxT = population.block_sums(W_VxV)
    other = population.topic_V[:, None] != np.arange(population.topics)
    u = np.where(other, sums_VxT, 0).sum(1) / other.sum(1) / v
    own = sums_VxT[1:][~other[1:]]
    column = -(c_1 if first is None else float(first)) - c_2 * u[1:]
    spread = np.abs(np.where(other, sums_VxT - u[:, None] * v, 0))
    return u, {
        "1a": abs(float(W_VxV[0, 0] + c_2 * u[0])),
        "1b": float(spread[0].max()),
        "2a": float(np.abs(W_VxV[1:, 0] - column).max()),
        "3a": float(np.abs(own - c_3 - u[1:] * v).max()),
        "3b": float(spread[1:].max()),
    }


def minimum_norm(population: Population) -> Floats:
    """Return (V, V) the least-squares map of least norm, by the pseudo-inverse of the documents."""
    inverse = np.linalg.pinv(population.masked_DxV, rcond=1e-10)
    return np.asarray((inverse @ population.law_DxV).T, np.float64)


def moments(population: Population) -> tuple[Floats, Floats]:
    """Return A = mean of x̄ x̄' and B = mean of p x̄', each (V, V)."""
    x, p = population.masked_DxV, population.law_DxV
    return x.T @ x / len(x), p.T @ x / len(x)


def ridge(population: Population, penalty: float) -> Floats:
    """Return (V, V) the optimum of the loss plus ``penalty`` times the squared norm (equation 2.2)."""
    A, B = moments(population)
    return np.asarray(np.linalg.solve(A + penalty * np.eye(len(A)), B.T).T, np.float64)


def descend(population: Population, start_VxV: Floats, penalty: float, steps: int) -> Floats:
    """Return (V, V) where gradient descent with momentum ends, on the loss plus ``penalty`` times the squared norm.

    Rate and momentum are those that fit the largest eigenvalue of A and the penalty (Polyak's heavy ball).
    """
    A, B = moments(population)
    top, bottom = 2 * (np.linalg.eigvalsh(A)[-1] + penalty), 2 * penalty
    rate = 4 / (np.sqrt(top) + np.sqrt(bottom)) ** 2
    momentum = ((np.sqrt(top) - np.sqrt(bottom)) / (np.sqrt(top) + np.sqrt(bottom))) ** 2
    W, before = start_VxV, start_VxV
    for _ in range(steps):
        gradient = 2 * (W @ A - B + penalty * W)
        W, before = W - rate * gradient + momentum * (W - before), W
    return W


def fit_embeddings(population: Population, start_dxV: Floats, bias_V: Floats, steps: int) -> tuple[Floats, Floats]:
    """Return the Gram matrix E = W' W (V, V) of the embeddings W (d, V) that L-BFGS reaches from ``start_dxV``, and the
    loss above its floor after each of its steps.

    The output is E x̄ + b (equation 2.6 with uniform attention, W^V = I and the frozen bias b of Theorem 2.1.1).
    """
    x, p = population.masked_DxV, population.law_DxV
    curve: list[float] = []

    def at(flat: Floats) -> tuple[float, Floats]:
        W = flat.reshape(start_dxV.shape)
        missed_DxV = (x @ W.T) @ W + bias_V - p
        towards_VxV = 2 * missed_DxV.T @ x / len(x)
        gradient = W @ (towards_VxV + towards_VxV.T)
        return float((missed_DxV**2).sum(1).mean()), gradient.ravel()

    minimum = optimize.minimize(
        at,
        start_dxV.ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=lambda flat: curve.append(at(flat)[0]),
        options={"maxiter": steps, "maxfun": 2 * steps, "ftol": 0.0, "gtol": 1e-13, "maxcor": 30},
    )
    W = minimum.x.reshape(start_dxV.shape)
    return W.T @ W, np.array(curve)
