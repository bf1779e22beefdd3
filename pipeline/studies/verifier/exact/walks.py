"""The walk of Algorithm 2, taken: many walks at once, by each output rule (Li 2025, section 3.3.1)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pipeline.languages.constrained import Array
from pipeline.studies.verifier.exact.vgb import Tree

Ints = NDArray[np.int64]


class Walks:
    """Moves many walkers on one tree. Steps count the half of them that stay, as in Algorithm 2."""

    def __init__(self, tree: Tree) -> None:
        P = tree.transitions()
        # A node has at most a parent, itself and its children: in that order, where the probability is not 0.
        self._targets = np.argsort(P <= 0, axis=1, kind="stable")[:, : tree.actions + 2]
        self._cumulated = np.cumsum(np.take_along_axis(P, self._targets, 1), axis=1)
        self._last = (np.take_along_axis(P, self._targets, 1) > 0).sum(1) - 1
        self._leaves = tree.first(tree.horizon)

    def step(self, rng: np.random.Generator, nodes: Ints) -> Ints:
        """Return where walkers at ``nodes`` (N,) are after a step."""
        at = (rng.random(len(nodes))[:, None] >= self._cumulated[nodes]).sum(1)
        return self._targets[nodes, np.minimum(at, self._last[nodes])]

    def last(self, rng: np.random.Generator, count: int, steps: int) -> Ints:
        """Return the leaves y^(T) of ``count`` walks with T = ``steps``, each taken again until it ends at a
        leaf."""
        return self._until_leaf(count, lambda n: self._at(rng, np.full(n, steps)))

    def uniform(self, rng: np.random.Generator, count: int, steps: int) -> Ints:
        """Return the leaves y^(i), i uniform on 1 .. T, of ``count`` walks, each taken again until that is a
        leaf."""
        return self._until_leaf(count, lambda n: self._at(rng, rng.integers(1, steps + 1, n)))

    def first_leaf(self, rng: np.random.Generator, count: int) -> tuple[Ints, Ints]:
        """Return the first leaf of each of ``count`` walks, and after how many steps it came to it."""
        nodes, steps = np.zeros(count, np.int64), np.zeros(count, np.int64)
        while len(walking := np.flatnonzero(nodes < self._leaves)):
            nodes[walking] = self.step(rng, nodes[walking])
            steps[walking] += 1
        return nodes - self._leaves, steps

    def _at(self, rng: np.random.Generator, steps: Ints) -> Ints:
        """Return where walkers from the root are after ``steps`` (N,)."""
        nodes = np.zeros(len(steps), np.int64)
        for taken in range(int(steps.max())):
            walking = steps > taken
            nodes[walking] = self.step(rng, nodes[walking])
        return nodes

    def _until_leaf(self, count: int, walk: Callable[[int], Ints]) -> Ints:
        """Return the leaves of ``count`` walks; ``walk`` gives where so many end."""
        found = np.full(count, -1)
        while len(open_ := np.flatnonzero(found < 0)):
            nodes = walk(len(open_))
            found[open_[nodes >= self._leaves]] = nodes[nodes >= self._leaves] - self._leaves
        return found


def frequencies(leaves: Ints, size: int) -> Array:
    """Return how often each of ``size`` leaves was drawn, as shares."""
    return np.bincount(leaves, minlength=size) / len(leaves)
