"""Constrained generation: an oracle, a set A of strings, and the process verifier of A (Li 2025, section
3.1).

A task is of strings of one length D over S symbols. What belongs to prefixes of length h is an array whose
first axis has S^h places: the prefix s_1 .. s_h is the number whose digits, the first most significant, are
its symbols. The oracle is the list of its *laws*, (S^h, S) for h = 0 .. D - 1, and a verifier the list of its
*values*, (S^h,) for h = 0 .. D.

>>> task = not_ones(2)
>>> [law.tolist() for law in task.laws]
[[[0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]]
>>> task.members.tolist(), [each.tolist() for each in task.verifier()]
([True, True, True, False], [[1.0], [1.0, 1.0], [1.0, 1.0, 1.0, 0.0]])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Levels = tuple[Array, ...]
LARGEST = 2**22  # strings that are enumerated at most


@dataclass(frozen=True)
class Task:
    """A constrained generation task (Sigma, A, O) of Definition 3.1.2; ``members`` says of each string
    whether it is in A.

    Raises ValueError if the parts are not of one length and alphabet, or a law is no distribution.
    """

    laws: Levels
    members: NDArray[np.bool_]

    def __post_init__(self) -> None:
        """Refuse what is no task."""
        check_laws(self.laws)
        if self.members.shape != (self.symbols**self.length,):
            raise ValueError(f"members must be ({self.symbols**self.length},), got {self.members.shape}")

    @property
    def length(self) -> int:
        """Return D."""
        return len(self.laws)

    @property
    def symbols(self) -> int:
        """Return the size of the alphabet."""
        return self.laws[0].shape[1]

    @property
    def mass(self) -> float:
        """Return the probability of A under the oracle."""
        return float(prefix_mass(self.laws)[-1][self.members].sum())

    @property
    def target(self) -> Array:
        """Return the restricted distribution p(s), proportional to 1[s in A] p_O(s), (S^D,)."""
        restricted = prefix_mass(self.laws)[-1] * self.members
        return restricted / restricted.sum()

    def verifier(self, aware: bool = False) -> Levels:
        """Return the ideal process verifier of Definition 3.1.3, as 0 and 1: whether a prefix can be
        completed into A.

        That of the definition depends on A alone. One that is ``aware`` of the oracle asks for a completion
        that has positive probability, too.
        """
        values = [self.members.astype(float)]
        for law in reversed(self.laws):
            below = values[0].reshape(law.shape)
            values.insert(0, (below * (law > 0) if aware else below).max(axis=1))
        return tuple(values)


def check_laws(laws: Sequence[Array]) -> None:
    """Raise ValueError if ``laws`` are not (S^h, S) for h = 0, 1, .., or one of them is no distribution."""
    if not laws or laws[0].ndim != 2:
        raise ValueError("an oracle has a law for each prefix that is shorter than its strings")
    symbols = laws[0].shape[1]
    if symbols ** len(laws) > LARGEST:
        raise ValueError(f"{symbols}^{len(laws)} strings are more than {LARGEST}, which are enumerated at most")
    for h, law in enumerate(laws):
        if law.shape != (symbols**h, symbols):
            raise ValueError(f"the law of prefixes of length {h} must be {(symbols**h, symbols)}, got {law.shape}")
        if not (law >= 0).all() or not np.allclose(law.sum(1), 1, atol=1e-9):
            raise ValueError(f"the law of prefixes of length {h} is no distribution")


def prefix_mass(laws: Sequence[Array]) -> Levels:
    """Return the probability of each prefix under the oracle, (S^h,) for h = 0 .. D."""
    mass = [np.ones(1)]
    for law in laws:
        mass.append((mass[-1][:, None] * law).ravel())
    return tuple(mass)


def uniform(symbols: int, length: int) -> Levels:
    """Return the laws of the oracle that is uniform over all strings. Raises ValueError for no symbols or no
    length."""
    if symbols < 1 or length < 1:
        raise ValueError(f"strings need a symbol and a position, got {symbols} symbols and length {length}")
    if symbols**length > LARGEST:
        raise ValueError(f"{symbols}^{length} strings are more than {LARGEST}, which are enumerated at most")
    return tuple(np.full((symbols**h, symbols), 1 / symbols) for h in range(length))


def digits(symbols: int, length: int) -> NDArray[np.int64]:
    """Return all strings (S^D, D) in the order of their numbers.

    >>> digits(2, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    return np.stack(np.unravel_index(np.arange(symbols**length), (symbols,) * length), axis=1)


def zeros(length: int) -> Task:
    """Return the task of Proposition 3.1.1: A = {0^D}, the oracle uniform over bits."""
    return Task(uniform(2, length), np.arange(2**length) == 0)


def not_ones(length: int) -> Task:
    """Return the task of Proposition 3.1.2: some bit of the string is 0, the oracle uniform."""
    return Task(uniform(2, length), np.arange(2**length) < 2**length - 1)


def hidden_parity(length: int, hidden: int) -> Task:
    """Return the task of Theorem 3.1.1 (Eq. 3.1, 3.2): strings of even parity, under the oracle of the hidden
    prefix.

    The first D - 1 bits are fair; the last one makes the parity even after the ``hidden`` prefix, and odd
    after others. Raises ValueError if ``hidden`` is no prefix of length D - 1.
    """
    if length < 2 or not 0 <= hidden < 2 ** (length - 1):
        raise ValueError(f"a hidden prefix of {length - 1} bits is wanted, got {hidden}")
    bits = digits(2, length - 1).sum(1) % 2
    last = np.where(np.arange(2 ** (length - 1)) == hidden, bits, 1 - bits)
    law = np.stack([last == 0, last == 1], axis=1).astype(float)
    return Task((*uniform(2, length - 1), law), digits(2, length).sum(1) % 2 == 0)


# Knapsack (Definition 3.1.7, Theorem 3.1.2, section 3.5.1)


def knapsack(weights: Sequence[int], c: int) -> Task:
    """Return the task of Theorem 3.1.2: subsets of ``weights`` that sum to ``c``, the oracle uniform.

    Raises ValueError for negative numbers.
    """
    _check_weights(weights, c)
    sums = digits(2, len(weights)) @ np.asarray(weights)
    return Task(uniform(2, len(weights)), sums == c)


def reachable(weights: Sequence[int]) -> list[int]:
    """Return, for i = 0 .. D, which sums the items from the i-th on can have, as the bits of an integer.

    >>> [[s for s in range(6) if sums >> s & 1] for sums in reachable([2, 3])]
    [[0, 2, 3, 5], [0, 3], [0]]
    """
    sums = [1]
    for weight in reversed(weights):
        sums.insert(0, sums[0] | sums[0] << weight)
    return sums


def knapsack_verifier(weights: Sequence[int], c: int) -> Levels:
    """Return the process verifier by dynamic programming over sums of suffixes, in time O(D c) for each of
    its answers.

    It says of a prefix whether what is left of ``c`` is a sum of the items that are left. Raises ValueError
    for negative numbers.
    """
    _check_weights(weights, c)
    sums = reachable(weights)
    left = np.array([c], dtype=object)
    values = []
    for i, weight in enumerate((*weights, 0)):
        values.append(np.array([float(rest >= 0 and sums[i] >> rest & 1) for rest in left.tolist()]))
        left = np.stack([left, left - weight], axis=1).ravel()
    return tuple(values)


def density(weights: Sequence[int]) -> float:
    """Return D / log2 of the largest weight; infinite where no weight is above 1."""
    largest = max(weights)
    return len(weights) / math.log2(largest) if largest > 1 else math.inf


def is_superincreasing(weights: Sequence[int]) -> bool:
    """Return whether each weight is at least the sum of those before it (section 3.5.1)."""
    return all(weight >= sum(weights[:i]) for i, weight in enumerate(weights) if i)


def greedy(weights: Sequence[int], c: int) -> tuple[int, ...] | None:
    """Return the subset that takes, from the last item, whatever still fits, or None if it misses ``c``.

    >>> greedy([1, 2, 4], 5), greedy([2, 3], 4)
    ((1, 0, 1), None)
    """
    taken = [0] * len(weights)
    for i in reversed(range(len(weights))):
        if weights[i] <= c:
            taken[i], c = 1, c - weights[i]
    return tuple(taken) if c == 0 else None


def _check_weights(weights: Sequence[int], c: int) -> None:
    if not weights or min(weights) < 0 or c < 0:
        raise ValueError(f"a knapsack has weights and a sum that are not negative, got {list(weights)} and {c}")
