"""X1: the optimum of uniform attention with squared loss on finite documents with fixed masks, as least squares.

With uniform attention every masked position of document d is answered by W x_d, x_d the shares of ids among its keys
with a 1 behind them for b_V. The pooled loss is then quadratic: with A the mean of x x' and B that of y x' over
masked positions, its minimum under lambda |W|^2 is B (A + lambda)^-1, and without a penalty B A^+, the solution of
least norm. (Chapter section 5.7; our derivation.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.languages import topic as language

Floats = NDArray[np.float64]
SMALLEST = 1e-10  # eigenvalues below this share of the largest are taken for 0: shares sum to 1, as the last column is
ARRIVED = 1e-26  # share of the first squared residual at which a row has arrived and stays, in double precision


class Problem(NamedTuple):
    """A quadratic loss: mean over positions of |W x - y|^2 = tr(W A W') - 2 tr(B W') + 1."""

    A: Floats  # (n, n)
    B: Floats  # (V, n)

    def loss(self, weights: Floats) -> float:
        """Return the loss of ``weights`` (V, n)."""
        return float(((weights @ self.A) * weights).sum() - 2 * (weights * self.B).sum() + 1)


def problem(questions: language.Questions, intercept: bool) -> Problem:
    """Return the quadratic loss of masked documents, of a model with or without b_V."""
    questions = language.by_document(questions)
    x = questions.counts / questions.counts.sum(1, keepdims=True)
    if intercept:
        x = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    weight = questions.labels.sum(1)
    total = weight.sum()
    return Problem((x * weight[:, None]).T @ x / total, questions.labels.T @ x / total)


def optimum(of: Problem, l2: float) -> Floats:
    """Return the weights (V, n) of least loss plus ``l2`` times their sum of squares; of several the shortest."""
    if l2:
        solved = np.linalg.solve(of.A + l2 * np.eye(len(of.A)), of.B.T).T
    else:
        solved = of.B @ np.linalg.pinv(of.A, rcond=SMALLEST, hermitian=True)
    return np.asarray(solved, np.float64)


def descended(of: Problem, l2: float, steps: int) -> Floats:
    """Return the weights after ``steps`` conjugate gradients on the same loss from 0, one system for each row."""
    A = of.A + l2 * np.eye(len(of.A))
    weights = np.zeros_like(of.B)
    residual = of.B.copy()
    direction, size = residual.copy(), (residual**2).sum(1)
    first = size
    for _ in range(steps):
        moved = direction @ A
        curvature = (direction * moved).sum(1)
        going = (curvature > 0) & (size > ARRIVED * first)
        rate = np.divide(size, curvature, out=np.zeros_like(size), where=going)
        weights += rate[:, None] * direction
        residual -= rate[:, None] * moved
        now = (residual**2).sum(1)
        again = np.divide(now, size, out=np.zeros_like(size), where=size > 0)
        direction, size = residual + again[:, None] * direction, now
    return weights


def values(weights: Floats, symbols: int) -> Floats:
    """Return (V, V) what a key adds to each output: with an intercept W_V + b_V 1', as attention sums to 1."""
    return weights[:, :symbols] + weights[:, symbols:].sum(1, keepdims=True)
