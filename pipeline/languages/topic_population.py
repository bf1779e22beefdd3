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
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Number = Any  # float, Fraction or Decimal
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Masking:
    """How documents are masked (Li 2025, section 2.1.1): a position is selected with probability ``p_m``; of the
    selected ones a share ``p_c`` keeps its word, a share ``p_r`` gets one of the T v words at random, and the others
    get [MASK].

    >>> Masking(0.15, 0.1, 0.1).lost
    0.135
    """

    p_m: Number
    p_c: Number
    p_r: Number

    @property
    def lost(self) -> Number:
        """Return a = (1 - p_c) p_m, the probability that a position does not keep its word by choice."""
        return (1 - self.p_c) * self.p_m

    @property
    def random(self) -> Number:
        """Return p_m p_r, the probability that a position gets a random word."""
        return self.p_m * self.p_r

    @property
    def mask(self) -> Number:
        """Return p_m (1 - p_c - p_r), the share of [MASK] in a masked document."""
        return self.p_m * (1 - self.p_c - self.p_r)


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
        return (1 - self.masking.lost) / (self.v * self.tau) + self.absent

    @property
    def absent(self) -> Number:
        """Return p_2 (equation 2.19): the share of any other word in the masked document."""
        return self.masking.random / (self.words)

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
        shares = self.original_DxV * (1 - float(masking.lost)) + float(self.absent)
        shares[:, 0] = float(masking.mask)
        return shares

    def block_sums(self, matrix_RxV: Floats) -> Floats:
        """Return (R, T): the sum of each row over the words of each topic."""
        found: Floats = matrix_RxV[:, 1:].reshape(len(matrix_RxV), self.topics, self.v).sum(-1)
        return found


def constants(masking: Masking, words: int) -> tuple[Number, Number, Number]:
    """Return c_1, c_2 and c_3 of Theorem 2.1.2 for T v = ``words``."""
    shown = 1 - masking.lost
    kept = 1 - masking.p_c - masking.p_r
    return masking.p_r / (kept * shown * words), 1 / masking.mask - 1, 1 / shown


def vanishing(population: Population) -> Floats:
    """Return (V, V) the limit of optima as the L2 penalty vanishes (Theorem 2.1.2)."""
    words, v = population.words, population.v
    c_1, c_2, c_3 = map(float, constants(population.masking, words))
    u = offset(population)
    same = population.topic_V[1:, None] == population.topic_V[1:]
    W = np.zeros((words + 1, words + 1))
    W[1:, 0] = (c_2 * c_3 - c_1 * words) / (c_2**2 + words)
    W[1:, 1:] = u + same * (c_3 / v)
    return W


def offset(population: Population) -> float:
    """Return u*, the entry between different topics of the matrix of Theorem 2.1.2."""
    words = population.words
    c_1, c_2, c_3 = map(float, constants(population.masking, words))
    return -(c_1 * c_2 + c_3) / (c_2**2 + words)


def diagonal(population: Population) -> Floats:
    """Return (V, V) the diagonal optimum D^V (Definition 2.1.2)."""
    c_1, _, c_3 = map(float, constants(population.masking, population.words))
    D = np.zeros((population.words + 1,) * 2)
    D[1:, 0] = -c_1
    D[1:, 1:] = np.eye(population.words) * c_3
    return D
