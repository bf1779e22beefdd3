"""Topic-model documents without end, before and after masking, and linear maps that undo it (Li 2025, section 2.1).

There are T topics of v words each, no word in two of them, and a document holds exactly ``tau`` topics: each of their
words makes up 1 / (tau v) of it. A document without end shows these shares exactly, so the population of documents is
the finite set of its C(T, tau) topic sets, each as likely as another. Word 0 is [MASK], words 1 to T v are those of the
topics, in order (Definition 2.1.1); V = T v + 1.

Suffixes name axes: D documents, T topics, V words with [MASK]. Probabilities may be floats, or any other numbers that
add up and multiply with integers (`fractions.Fraction`, `decimal.Decimal`): closed forms are then exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Number = Any  # float, Fraction or Decimal
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Masking:
    """Probabilities that a position is masked, and that a masked one stays as it is or becomes a random word."""

    mask: Number
    keep: Number
    random: Number

    @classmethod
    def of(cls, shares: Any, number: Callable[[str], Any]) -> Self:
        """Return the masking of ``shares``, which has the same fields, in another type of number.

        Numbers are read from their decimal digits, so that a fraction is the one that is written.
        """
        return cls(*(number(str(part)) for part in (shares.mask, shares.keep, shares.random)))

    @property
    def a(self) -> Number:
        """Return a, the probability that a position is masked and does not stay by decision."""
        return (1 - self.keep) * self.mask

    @property
    def rho(self) -> Number:
        """Return rho, the probability that a position becomes a random word."""
        return self.mask * self.random

    @property
    def hidden(self) -> Number:
        """Return p_M, the probability that a position shows [MASK]."""
        return self.mask * (1 - self.keep - self.random)


class Constants(NamedTuple):
    """c_1, c_2, c_3 and u* of Theorem 2.1.2."""

    c1: Number
    c2: Number
    c3: Number
    u: Number


@dataclass(frozen=True)
class Population:
    """The documents of T topics of v words with ``tau`` topics each, under a `Masking`."""

    topics: int
    v: int
    tau: int
    masking: Masking

    @property
    def words(self) -> int:
        """Return T v, the number of words without [MASK]."""
        return self.topics * self.v

    @property
    def present(self) -> Number:
        """Return p_1 (equation 2.18): the share of a word of the document's topics in the masked document."""
        return (1 - self.masking.a) / (self.v * self.tau) + self.absent

    @property
    def absent(self) -> Number:
        """Return p_2 (equation 2.19): the share of any other word in the masked document."""
        return self.masking.rho / (self.words)

    @cached_property
    def topic_V(self) -> NDArray[np.int64]:
        """The topic of each word from 0 to T - 1; -1 of [MASK], which has none."""
        return np.concatenate([[-1], np.repeat(np.arange(self.topics), self.v)])

    @cached_property
    def supports_DxT(self) -> NDArray[np.bool_]:
        """Which topics each document holds: all C(T, tau) sets."""
        chosen = list(itertools.combinations(range(self.topics), self.tau))
        supports = np.zeros((len(chosen), self.topics), bool)
        supports[np.arange(len(chosen))[:, None], np.array(chosen)] = True
        return supports

    @cached_property
    def original_DxV(self) -> Floats:
        """The share of each word in each document before masking (Assumption 2.1.1)."""
        shares = np.repeat(self.supports_DxT, self.v, axis=1) / (self.tau * self.v)
        return np.concatenate([np.zeros((len(shares), 1)), shares], axis=1)

    @cached_property
    def masked_DxV(self) -> Floats:
        """The share of each word in each document after masking (Proposition 2.1.1, equation 2.17)."""
        masking = self.masking
        shares = self.original_DxV * (1 - float(masking.a)) + float(self.absent)
        shares[:, 0] = float(masking.hidden)
        return shares

    def block_sums(self, matrix_RxV: Floats) -> Floats:
        """Return (R, T): the sum of each row over the words of each topic."""
        found: Floats = matrix_RxV[:, 1:].reshape(len(matrix_RxV), self.topics, self.v).sum(-1)
        return found

    @cached_property
    def constants(self) -> Constants:
        """c_1, c_2, c_3 and u* of Theorem 2.1.2."""
        masking, words = self.masking, self.words
        c1 = masking.random / ((1 - masking.keep - masking.random) * (1 - masking.a) * words)
        c2, c3 = 1 / masking.hidden - 1, 1 / (1 - masking.a)
        return Constants(c1, c2, c3, -(c1 * c2 + c3) / (c2**2 + words))

    @cached_property
    def block_VxV(self) -> Floats:
        """The limit of optimal value matrices as the L2 penalty vanishes (Theorem 2.1.2)."""
        c1, c2, c3, u = self.constants
        words = self.words
        same = self.topic_V[1:, None] == self.topic_V[1:]
        W = np.zeros((words + 1, words + 1))
        W[1:, 0] = (c2 * c3 - c1 * words) / (c2**2 + words)
        W[1:, 1:] = u + same * (c3 / self.v)
        return W

    @cached_property
    def diagonal_VxV(self) -> Floats:
        """The diagonal optimum D^V (Definition 2.1.2)."""
        c1, _, c3, _ = self.constants
        D = np.zeros((self.words + 1,) * 2)
        D[1:, 0] = -c1
        D[1:, 1:] = np.eye(self.words) * c3
        return D
