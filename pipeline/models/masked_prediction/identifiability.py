"""What a predictor says of the parameters near a model: its derivative, and the directions that it cannot see.

A task identifies parameters locally where its derivative has full rank (Definition 2, linearised). The tangent space of
HMMs with doubly stochastic T has k (d - 1) directions of O, whose columns sum to 0, and (k - 1)^2 of T, whose rows and
columns do; of a G-HMM d k directions of M, or (d - 1) k where norms are known.

Directions are stacks: dO (n, d, k), dT (n, k, k).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.languages import gaussian_hmm, hmm
from pipeline.languages.hmm import Floats

# Tasks by what they predict; ``allpair`` is all four predictors of one token from another (Theorem 6).
PAIR, ALL_PAIRS, TRIPLE_1, TRIPLE_2, TRIPLE_3 = TASKS = ("pair", "allpair", "triple1", "triple2", "triple3")
PARTS = {
    PAIR: (hmm.NEXT,),
    ALL_PAIRS: hmm.PAIR_TASKS,
    **{task: (each,) for task, each in zip(TASKS[2:], hmm.TRIPLE_TASKS, strict=True)},
}
THRESHOLD = 1e-7  # relative to the largest singular value: below it a direction is not seen


def predictions(emission: Floats, transition: Floats, task: str) -> Floats:
    """Return all entries (m,) of the predictors of a task (`TASKS`)."""
    return np.concatenate([hmm.predictor(emission, transition, part).ravel() for part in PARTS[task]])


def derivative(emission: Floats, transition: Floats, d_emission: Floats, d_transition: Floats, task: str) -> Floats:
    """Return the derivatives (n, m) of `predictions` along ``n`` directions dO (n, d, k) and dT (n, k, k)."""
    n = len(d_emission)
    parts = [_part(emission, transition, d_emission, d_transition, part).reshape(n, -1) for part in PARTS[task]]
    return np.concatenate(parts, axis=1)


def _part(emission: Floats, transition: Floats, d_emission: Floats, d_transition: Floats, part: str) -> Floats:
    rows = emission.sum(-1, keepdims=True)
    scaled = emission / rows
    d_scaled = (d_emission - d_emission.sum(-1, keepdims=True) * scaled) / rows
    back, d_back = transition.T, np.swapaxes(d_transition, -1, -2)
    if part in hmm.TRIPLE_TASKS:
        # The factors of `hmm.components`, each with its derivative.
        ahead = (emission @ transition, d_emission @ transition + emission @ d_transition)
        behind = (emission @ back, d_emission @ back + emission @ d_back)
        itself, shown = (emission, d_emission), (scaled, d_scaled)
        first, second, third = {
            "x2x3|x1": ((scaled @ back, d_scaled @ back + scaled @ d_back), itself, ahead),
            "x1x3|x2": (shown, behind, ahead),
            "x1x2|x3": ((scaled @ transition, d_scaled @ transition + scaled @ d_transition), behind, itself),
        }[part]
        return (
            hmm.assembled(first[1], second[0], third[0])
            + hmm.assembled(first[0], second[1], third[0])
            + hmm.assembled(first[0], second[0], third[1])
        )
    gap, reverse = hmm.gap(part)
    moves, d_moves = (back, d_back) if reverse else (transition, d_transition)
    phi, d_phi = scaled.T, np.swapaxes(d_scaled, -1, -2)
    power = np.linalg.matrix_power(moves, gap)
    d_power = sum(
        np.linalg.matrix_power(moves, before) @ d_moves @ np.linalg.matrix_power(moves, gap - 1 - before)
        for before in range(gap)
    )
    return d_emission @ power @ phi + emission @ d_power @ phi + emission @ power @ d_phi


def directions(symbols: int, states: int) -> tuple[Floats, Floats]:
    """Return a basis dO (n, d, k), dT (n, k, k) of the tangent space: n = k (d - 1) + (k - 1)^2."""
    down, across = _sums_to_zero(symbols), _sums_to_zero(states)
    of_emission = np.einsum("ai,cj->acij", down, np.eye(states)).reshape(-1, symbols, states)
    of_transition = np.einsum("ai,bj->abij", across, across).reshape(-1, states, states)
    n = len(of_emission) + len(of_transition)
    d_emission, d_transition = np.zeros((n, symbols, states)), np.zeros((n, states, states))
    d_emission[: len(of_emission)], d_transition[len(of_emission) :] = of_emission, of_transition
    return d_emission, d_transition


def _sums_to_zero(n: int) -> Floats:
    """Return an orthonormal basis (n - 1, n) of vectors that sum to 0."""
    return np.linalg.svd(np.ones((1, n)))[2][1:]


class Rank(NamedTuple):
    """Parameters, those directions that a task sees, and by how much: the smallest singular value that counts as seen
    and the largest that does not, both over the largest of all (0 where there is none)."""

    parameters: int
    rank: int
    seen: float
    unseen: float

    @property
    def deficit(self) -> int:
        """Return how many directions are not seen."""
        return self.parameters - self.rank


def rank(jacobian: Floats) -> Rank:
    """Return the rank of derivatives (n, m) of n parameters, by singular values from `THRESHOLD` on."""
    values = np.linalg.svd(jacobian, compute_uv=False)
    values = np.concatenate([values, np.zeros(max(0, len(jacobian) - len(values)))]) / values[0]
    found = int((values >= THRESHOLD).sum())
    return Rank(len(jacobian), found, float(values[found - 1]), float(values[found]) if found < len(values) else 0.0)


def hmm_rank(emission: Floats, transition: Floats, task: str) -> Rank:
    """Return what the predictors of a task see of an HMM (chapter 5.9)."""
    d_emission, d_transition = directions(*emission.shape)
    return rank(derivative(emission, transition, d_emission, d_transition, task))


def hmm_deficit(states: int, task: str) -> int:
    """Return the deficit that follows from the invariances of a task (chapter 5.9), by default 0.

    The predictor of one token is the same under O -> O G, T -> G^-1 T G^-T with G 1 = 1 and G' 1 = 1, (k - 1)^2
    directions; all four of them only where G is orthogonal as well, (k - 1)(k - 2) / 2.
    """
    return {PAIR: (states - 1) ** 2, ALL_PAIRS: (states - 1) * (states - 2) // 2}.get(task, 0)


def gaussian_rank(means: Floats, transition: Floats, points: Floats, *, known_norms: bool) -> Rank:
    """Return what E[x_2 | x_1] at points x_1 (d, n) sees of a G-HMM, with norms of means known or free (Theorem 5)."""
    d, k = means.shape
    phi = gaussian_hmm.posterior(means, points)
    moves = _sums_to_zero(k)
    of_transition = np.einsum("ai,bj->abij", moves, moves).reshape(-1, k, k)
    turns = []
    for state in range(k):
        basis = np.linalg.svd(means[:, state : state + 1])[0].T[1:] if known_norms else np.eye(d)
        for direction in basis:
            turn = np.zeros((d, k))
            turn[:, state] = direction
            turns.append(turn)
    rows = [means @ turn @ phi for turn in of_transition]
    for turn in turns:
        # d of the scores mu_i . x - |mu_i|^2 / 2, and through the softmax.
        scores = turn.T @ points - np.sum(turn * means, axis=0)[:, None]
        d_phi = phi * (scores - (phi * scores).sum(0))
        rows.append(turn @ transition @ phi + means @ transition @ d_phi)
    return rank(np.array([row.ravel() for row in rows]))
