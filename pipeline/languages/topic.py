"""Documents of topic models, their masking, and the closed forms of the optima (Li 2025, section 2.1).

Topics are disjoint: T topics of v words each (definition 2.1.1). Ids: ``MASK`` 0, words 1 to T v, topic after topic.
With the masking of the released code three more ids follow: `start`, `end` and a padding that never occurs.

Shorthand (chapter section 3.2): a = (1 - p_keep) p_mask, rho = p_mask p_random, p_M = p_mask (1 - p_keep - p_random).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MASK = 0
SPECIALS = 3  # ids that the released code has besides: start, end, padding
NO_TOPIC = -1

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Masking:
    """Probabilities that a position is masked, and that a masked one stays as it is or becomes a random word."""

    mask: float
    keep: float
    random: float

    @property
    def a(self) -> float:
        """Return a, the probability that a position is masked and does not stay by decision."""
        return (1 - self.keep) * self.mask

    @property
    def rho(self) -> float:
        """Return rho, the probability that a position becomes a random word."""
        return self.mask * self.random

    @property
    def hidden(self) -> float:
        """Return p_M, the probability that a position shows ``MASK``."""
        return self.mask * (1 - self.keep - self.random)


class Constants(NamedTuple):
    """c_1, c_2, c_3 and u of theorems 2.1.1 and 2.1.2."""

    c1: float
    c2: float
    c3: float
    u: float


class Documents(NamedTuple):
    """Documents, one behind the other: their tokens, how many each has, and their shares of topics (N, T)."""

    tokens: Ints
    lengths: Ints
    theta: Floats


class Questions(NamedTuple):
    """What a model without positions reads and is asked of masked documents.

    ``counts`` (N, V): how often each id is among the keys. A question is a pair of a document and an id that a masked
    position of it shows: ``document`` and ``shown`` (P,), sorted; ``labels`` (P, V) counts the words that stood there.
    """

    counts: Ints
    document: Ints
    shown: Ints
    labels: Ints


def topics_of(ids: NDArray[np.integer], topics: int, words: int) -> Ints:
    """Return the topic of each id, numbered from 0; ``NO_TOPIC`` for ids that are no words.

    >>> topics_of(np.array([0, 1, 2, 3, 4, 5]), topics=2, words=2).tolist()
    [-1, 0, 0, 1, 1, -1]
    """
    is_word = (ids >= 1) & (ids <= topics * words)
    return np.where(is_word, (ids - 1) // words, NO_TOPIC)


def start(topics: int, words: int) -> int:
    """Return the id of the token that the released code puts in front of a document."""
    return topics * words + 1


def end(topics: int, words: int) -> int:
    """Return the id of the token that the released code puts behind a document."""
    return topics * words + 2


def mixed(
    rng: np.random.Generator, n: int, topics: int, words: int, alpha: float, shortest: int, longest: int
) -> Documents:
    """Return ``n`` documents of latent Dirichlet allocation with disjoint topics (section 2.1.5.1).

    Lengths are uniform from ``shortest`` to ``longest``, shares of topics Dirichlet(``alpha``), words uniform in a
    topic.
    """
    lengths = rng.integers(shortest, longest + 1, size=n)
    theta = rng.dirichlet(np.full(topics, alpha), size=n)
    ends = np.repeat(theta.cumsum(1)[:, :-1], lengths, axis=0)
    topic = (rng.random(len(ends))[:, None] > ends).sum(1)
    return Documents(topic * words + rng.integers(words, size=len(topic)) + 1, lengths, theta)


def exact(
    rng: np.random.Generator, n: int, topics: int, words: int, chosen: int, shortest: int, longest: int
) -> Documents:
    """Return ``n`` documents of the theory: each has exactly ``chosen`` topics, and its words are uniform over theirs.

    (Section 2.1.1, "Topic models"; tau is ``chosen``.) Lengths are uniform from ``shortest`` to ``longest``.
    """
    lengths = rng.integers(shortest, longest + 1, size=n)
    own = rng.random((n, topics)).argsort(1)[:, :chosen]
    theta = np.zeros((n, topics))
    np.put_along_axis(theta, own, 1 / chosen, axis=1)
    rows = np.repeat(np.arange(n), lengths)
    topic = own[rows, rng.integers(chosen, size=len(rows))]
    return Documents(topic * words + rng.integers(words, size=len(topic)) + 1, lengths, theta)


def population(topics: int, words: int, chosen: int) -> Floats:
    """Return (C(T, tau), T v + 1): the law of words of every document of infinite length (assumption 2.1.1).

    >>> population(2, 2, 1).tolist()
    [[0.0, 0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.5, 0.5]]
    """
    subsets = list(combinations(range(topics), chosen))
    law = np.zeros((len(subsets), topics, words))
    for row, subset in zip(law, subsets, strict=True):
        row[list(subset)] = 1 / (chosen * words)
    return np.concatenate([np.zeros((len(subsets), 1)), law.reshape(len(subsets), -1)], axis=1)


def masked_law(law: Floats, masking: Masking) -> Floats:
    """Return the law of ids behind the masking of documents with the word laws ``law`` (N, V) (proposition 2.1.1).

    x(0) = p_M, and x(i) = P(i) (1 - a) + rho / (T v) for words.
    """
    shown = law * (1 - masking.a) + masking.rho / (law.shape[1] - 1)
    shown[:, MASK] = masking.hidden
    return shown


def masked(
    rng: np.random.Generator, tokens: Ints, lengths: Ints, masking: Masking, replacements: Ints
) -> tuple[NDArray[np.bool_], Ints]:
    """Return which positions are masked, and what all positions show; random replacements are drawn from those given.

    A document in which no position is masked is drawn again, as in the released code.
    """
    at = rng.random(len(tokens)) < masking.mask
    owner = np.repeat(np.arange(len(lengths)), lengths)
    while (none := np.bincount(owner[at], minlength=len(lengths)) == 0).any():
        again = none[owner]
        at[again] = rng.random(int(again.sum())) < masking.mask
    what = rng.random(len(tokens))
    random = replacements[rng.integers(len(replacements), size=len(tokens))]
    changed = np.where(what < masking.keep + masking.random, random, MASK)
    changed = np.where(what < masking.keep, tokens, changed)
    return at, np.where(at, changed, tokens)


def vocabulary(topics: int, words: int, released: bool) -> int:
    """Return the number of ids: T v + 1, and three more with the masking of the released code."""
    return topics * words + 1 + (SPECIALS if released else 0)


def keys(
    tokens: Ints, lengths: Ints, topics: int, words: int, released: bool, hidden: NDArray[np.bool_] | None = None
) -> Ints:
    """Return (N, V) how often each id is among the keys of documents that show ``tokens``.

    With the masking of the released code start and end are keys, and positions that are ``hidden`` are none.
    """
    symbols = vocabulary(topics, words, released)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    if released and hidden is not None:
        owner, tokens = owner[~hidden], tokens[~hidden]
    counts = np.bincount(owner * symbols + tokens, minlength=len(lengths) * symbols).reshape(-1, symbols)
    if released:
        counts[:, [start(topics, words), end(topics, words)]] += 1
    return counts


def questions(
    documents: Documents, at: NDArray[np.bool_], shown: Ints, topics: int, words: int, released: bool
) -> Questions:
    """Return what a model without positions reads and is asked of masked documents.

    ``at`` says which positions are masked, ``shown`` what all positions show.
    """
    symbols = vocabulary(topics, words, released)
    owner = np.repeat(np.arange(len(documents.lengths)), documents.lengths)[at]
    pairs, which = np.unique(owner * symbols + shown[at], return_inverse=True)
    labels = np.bincount(which * symbols + documents.tokens[at], minlength=len(pairs) * symbols)
    counts = keys(shown, documents.lengths, topics, words, released, at)
    return Questions(counts, pairs // symbols, pairs % symbols, labels.reshape(-1, symbols))


def by_document(sample: Questions) -> Questions:
    """Return the same with one question for each document: to a model of uniform attention all of it are the same."""
    labels = np.zeros((len(sample.counts), sample.labels.shape[1]), np.int64)
    np.add.at(labels, sample.document, sample.labels)
    each = np.arange(len(sample.counts))
    return Questions(sample.counts, each, np.full(len(each), MASK), labels)


def constants(topics: int, words: int, masking: Masking) -> Constants:
    """Return c_1, c_2 and c_3 of theorem 2.1.1 (there c_4 in the proofs), and u of theorem 2.1.2.

    >>> [round(float(each), 8) for each in constants(10, 10, Masking(0.15, 0.1, 0.1))]
    [0.00144509, 7.33333333, 1.15606936, -0.00758671]
    """
    size = topics * words
    c1 = masking.random / ((1 - masking.keep - masking.random) * (1 - masking.a) * size)
    c2 = 1 / masking.hidden - 1
    c3 = 1 / (1 - masking.a)
    return Constants(c1, c2, c3, -(c1 * c2 + c3) / (c2**2 + size))


def block_values(topics: int, words: int, masking: Masking) -> Floats:
    """Return the value matrix (V, V) that squared loss with a vanishing penalty chooses (theorem 2.1.2)."""
    c1, c2, c3, u = constants(topics, words, masking)
    size = topics * words
    topic = topics_of(np.arange(1, size + 1), topics, words)
    values = np.zeros((size + 1, size + 1))
    values[1:, 1:] = u + (topic[:, None] == topic) * c3 / words
    values[1:, MASK] = (c2 * c3 - c1 * size) / (c2**2 + size)
    return values


def diagonal_values(topics: int, words: int, masking: Masking) -> Floats:
    """Return the diagonal value matrix (V, V) of definition 2.1.2: c_3 on words, -c_1 in the column of the mask."""
    c1, _, c3, _ = constants(topics, words, masking)
    values = np.diag(np.full(topics * words + 1, c3))
    values[:, MASK] = -c1
    values[MASK] = 0.0
    return values


def prediction_bias(topics: int, words: int, masking: Masking) -> Floats:
    """Return the bias (V,) of the prediction head in theorem 2.1.1: -rho / ((1 - a) T v) on words, 0 on the mask."""
    size = topics * words
    return np.array([0.0] + [-masking.rho / ((1 - masking.a) * size)] * size)


@dataclass(frozen=True)
class Population:
    """All documents without end of T topics of v words, each with exactly ``tau`` topics in equal shares, and their
    masking (assumption 2.1.1).

    Probabilities of the masking may be any numbers that add up and multiply with integers: with those of `exact`,
    closed forms are exact as well. Suffixes name axes: D documents, T topics, V ids.
    """

    topics: int
    v: int
    tau: int
    masking: Masking

    def exact(self, number: Callable[[str], Any]) -> Population:
        """Return the same with probabilities as another type of number, read from their decimal digits."""
        masking = self.masking
        parts = (number(str(part)) for part in (masking.mask, masking.keep, masking.random))
        return replace(self, masking=Masking(*parts))

    @property
    def words(self) -> int:
        """Return T v, the number of words."""
        return self.topics * self.v

    @property
    def present(self) -> Any:
        """Return p_1 (equation 2.18): the share of a word of the document's topics behind the masking."""
        return (1 - self.masking.a) / (self.v * self.tau) + self.absent

    @property
    def absent(self) -> Any:
        """Return p_2 (equation 2.19): the share of any other word behind the masking."""
        return self.masking.rho / self.words

    @property
    def constants(self) -> Constants:
        """Return c_1, c_2, c_3 and u of theorem 2.1.2."""
        return constants(self.topics, self.v, self.masking)

    @cached_property
    def topic_V(self) -> Ints:
        """The topic of each id; ``NO_TOPIC`` of the mask."""
        return topics_of(np.arange(self.words + 1), self.topics, self.v)

    @cached_property
    def law_DxV(self) -> Floats:
        """The shares of words in each document before masking."""
        return population(self.topics, self.v, self.tau)

    @cached_property
    def masked_DxV(self) -> Floats:
        """The shares of ids in each document behind the masking (proposition 2.1.1)."""
        return masked_law(self.law_DxV, self.masking)

    @cached_property
    def block_VxV(self) -> Floats:
        """The value matrix of theorem 2.1.2."""
        return block_values(self.topics, self.v, self.masking)

    @cached_property
    def diagonal_VxV(self) -> Floats:
        """The value matrix of definition 2.1.2."""
        return diagonal_values(self.topics, self.v, self.masking)

    def block_sums(self, matrix_RxV: Floats) -> Floats:
        """Return (R, T): the sum of each row over the words of each topic."""
        sums: Floats = matrix_RxV[:, 1:].reshape(len(matrix_RxV), self.topics, self.v).sum(-1)
        return sums
