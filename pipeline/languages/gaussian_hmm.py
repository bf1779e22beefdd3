"""Conditionally Gaussian hidden Markov models (Liu 2024, section 2.2.1.1): x_t | h_t = i is N(mu_i, I).

M = [mu_1 .. mu_k] is (d, k); T (k, k) is that of `pipeline.languages.hmm`, its columns sum to 1. The theorems take k
means of one norm (Assumption 9, footnote 9) and rank T = rank M = k (Assumption 8).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from pipeline.errors import SandglassError
from pipeline.languages import hmm
from pipeline.languages.hmm import Floats


def check(means: Floats, transition: Floats, tolerance: float = 1e-9) -> None:
    """Raise SandglassError unless M (d, k) and T (k, k) meet Assumptions 5, 8 and 9, with any common norm."""
    if means.ndim != 2 or transition.shape != (means.shape[1],) * 2:
        raise SandglassError(f"M {means.shape} and T {transition.shape} do not fit: expected (d, k) and (k, k)")
    d, k = means.shape
    if not 2 <= k <= d:
        raise SandglassError(f"a G-HMM of {k} hidden states in {d} dimensions: expected 2 <= k <= d")
    if not np.isfinite(means).all():
        raise SandglassError("M has entries that are not finite")
    norms = np.linalg.norm(means, axis=0)
    if np.ptp(norms) > tolerance * norms.max():
        raise SandglassError(f"means have norms from {norms.min():.4g} to {norms.max():.4g}: expected one norm")
    # The conditions on T are those of a discrete model that shows its states.
    hmm.check(np.eye(k), transition, full_rank=True)
    if np.linalg.matrix_rank(means) < k:
        raise SandglassError(f"M has rank {np.linalg.matrix_rank(means)}, and the theorem needs {k}")


def posterior(means: Floats, points: Floats) -> Floats:
    """Return phi (k, n): P(h = i | x) for points x (d, n), as a softmax of -|x - mu_i|^2 / 2."""
    scores = means.T @ points - 0.5 * np.square(means).sum(0)[:, None]
    return np.asarray(softmax(scores, axis=0))


def predictor(means: Floats, transition: Floats, points: Floats) -> Floats:
    """Return E[x_2 | x_1] (d, n) at points x_1 (d, n): M T phi(x_1) (Eq. 2.57)."""
    return means @ transition @ posterior(means, points)


def triple_predictor(means: Floats, transition: Floats, points: Floats, case: int) -> Floats:
    """Return E[x_a (x) x_b | x_c] (n, d, d) at points x_c (d, n), in the three cases of Theorem 8."""
    phi = posterior(means, points)
    weights, second, third = {
        1: (transition @ phi, means, means @ transition),
        2: (phi, means @ transition.T, means @ transition),
        3: (transition.T @ phi, means @ transition.T, means),
    }[case]
    return hmm.assembled(weights.T, second, third)


def householder(means: Floats) -> tuple[Floats, Floats]:
    """Return H (d, d) = I - 2 v v' and v (d,) of Lemma 7: H M has the same posterior as M."""
    normal = np.linalg.pinv(means).T @ np.ones(means.shape[1])
    normal = normal / np.linalg.norm(normal)
    return np.eye(len(normal)) - 2 * np.outer(normal, normal), normal


def draw(
    rng: np.random.Generator,
    dimension: int,
    states: int,
    *,
    power: int,
    offset: float,
    least_singular: float,
    tries: int = 100_000,
) -> tuple[Floats, Floats]:
    """Return M (d, k) of unit norm, uniform on the sphere, and T (k, k) by Sinkhorn's scaling of U^power + offset.

    Models are drawn until M and T have a k-th singular value of at least ``least_singular``. Raises SandglassError if
    none of ``tries`` does.
    """
    for _ in range(tries):
        means = rng.standard_normal((dimension, states))
        means = means / np.linalg.norm(means, axis=0)
        transition = hmm.sinkhorn(rng.random((states, states)) ** power + offset)
        if min(hmm.smallest_singular(means), hmm.smallest_singular(transition)) >= least_singular:
            return means, transition
    raise SandglassError(
        f"none of {tries} models of {states} means in {dimension} dimensions has singular values from "
        f"{least_singular} on"
    )


def sample(
    rng: np.random.Generator, means: Floats, transition: Floats, n: int
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return x_1 and x_2 (d, n) of ``n`` independent pairs, and their hidden states (2, n)."""
    d, k = means.shape
    first = rng.integers(k, size=n)
    # The column of T that belongs to the state, by inversion.
    second = (rng.random(n) > np.cumsum(transition, axis=0)[:-1, first]).sum(0)
    noise = rng.standard_normal((2, d, n))
    return means[:, first] + noise[0], means[:, second] + noise[1], np.array([first, second])
