"""Samplers that are run, many at once: steps until all clique spins are +1 (Li 2025, Figure 4.3).

States are numbers (`pipeline.languages.ising`). A run counts the state after each step, from t = 1 on; it is censored
at its budget.
"""

from __future__ import annotations

import numpy as np

from pipeline.languages import ising
from pipeline.languages.ising import Floats, Ints
from pipeline.studies.parallel.exact import chains


class Gibbs:
    """k-Gibbs on full states: masks of ``k``, and for each the numbers that its bits can be."""

    def __init__(self, theta: Floats, N: int, k: int) -> None:
        """Tabulate log p and all masks."""
        self.logs = ising.log_law(theta, N)
        self.masks = np.array(ising.masks(N, k))
        self.free = np.stack([ising.submasks(int(mask)) for mask in self.masks])  # (M, 2^k)

    def step(self, rng: np.random.Generator, states_R: Ints) -> Ints:
        """Return the next states: a mask for each run, and what is masked drawn from its conditional law."""
        chosen = rng.integers(len(self.masks), size=len(states_R))
        near = (states_R & ~self.masks[chosen])[:, None] + self.free[chosen]
        logs = self.logs[near]
        total = np.cumsum(np.exp(logs - logs.max(1, keepdims=True)), 1)
        drawn = (rng.random(len(states_R))[:, None] * total[:, -1:] >= total).sum(1)
        return near[np.arange(len(states_R)), np.minimum(drawn, near.shape[1] - 1)]


class Independent:
    """Independent parallel sampling: each position from its conditional law given the old others."""

    def __init__(self, theta: Floats, N: int) -> None:
        """Tabulate the conditional probabilities of all states."""
        self.plus = chains.single_probabilities(theta, N)
        self.bits = 1 << np.arange(N - 1, -1, -1)

    def step(self, rng: np.random.Generator, states_R: Ints) -> Ints:
        """Return the next states."""
        up = rng.random((len(states_R), len(self.bits))) < self.plus[states_R]
        return up @ self.bits


def all_minus(rng: np.random.Generator, N: int, c: int, runs: int) -> Ints:
    """Return starts: all of the clique -1, the other spins uniform."""
    return rng.integers(2 ** (N - c), size=runs)


def with_sum(rng: np.random.Generator, N: int, c: int, up: int, runs: int) -> Ints:
    """Return starts with ``up`` clique spins +1, the first of them, the other spins uniform."""
    clique = sum(1 << (N - 1 - i) for i in range(up))
    return clique + all_minus(rng, N, c, runs)


def hitting(
    rng: np.random.Generator, sampler: Gibbs | Independent, states_R: Ints, target: int, budget: int
) -> tuple[Ints, np.ndarray]:
    """Return for each run the first step after which all bits of ``target`` are set, and whether it never came.

    What did not come within ``budget`` steps is given as the budget, and flagged.
    """
    steps = np.full(len(states_R), budget)
    open_R = np.arange(len(states_R))
    at = states_R.copy()
    for t in range(1, budget + 1):
        at = sampler.step(rng, at)
        there = (at & target) == target
        steps[open_R[there]] = t
        open_R, at = open_R[~there], at[~there]
        if not len(open_R):
            break
    censored = np.zeros(len(states_R), bool)
    censored[open_R] = True
    return steps, censored


def staying(rng: np.random.Generator, sampler: Independent, states_R: Ints, N: int, c: int, steps: int) -> np.ndarray:
    """Return (R,) whether the clique's sum stayed at most -2 after each of so many steps."""
    sums = ising.states(N)[:, :c].sum(1)
    stayed, at = np.ones(len(states_R), bool), states_R
    for _ in range(steps):
        at = sampler.step(rng, at)
        stayed &= sums[at] <= -2
    return stayed
