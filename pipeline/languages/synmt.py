"""A synthetic translation corpus with a dial for how much target tokens depend on each other (chapter 3.9, PAR-D10).

It stands in for the WMT corpora of Li 2025 (section 4.2.3). A source is a list of words; the translation reorders them
by a rule, translates them in one of two registers z, and puts one particle before word j. With probability 1 - alpha
both are (0, 0); with probability alpha z is drawn, and j uniformly from 0 to L. Everything else follows from the
source, so that the law p(y | x) has at most 2 (L + 1) outcomes and every quantity of it is a finite sum.

A lexicon has ``blocks`` of 24 words, which differ in role: words 0 to 7 of a block have one token, 8 to 17 one token
for each register, 18 to 23 two tokens in fixed order, or only the first of both where it is without ``doubles``. Ids
are 0 to 4 for PAD, EOS, BOS, LEN (put before a source) and PART, then 40 target tokens of each block, then its 24
source words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

PAD, EOS, BOS, LEN, PART = range(5)
SPECIAL = 5  # ids below it
WORDS, TOKENS = 24, 40  # of a block
SINGLE, DOUBLE = 8, 18  # roles: from here on words are sensitive to the register, and of two tokens
BEFORE, AFTER = (0, 3, 8, 11, 18), (1, 4, 9, 12, 20)  # A and B: a word of A before one of B swaps with it
REGISTERS = 2
NONE = -1  # where a sentence has ended


@dataclass(frozen=True)
class Lexicon:
    """Words and their tokens."""

    blocks: int
    doubles: bool = True  # whether there are words of two tokens

    @property
    def words(self) -> int:
        """Return the number of source words."""
        return WORDS * self.blocks

    @property
    def vocabulary(self) -> int:
        """Return the number of ids: special ones, target tokens, source words."""
        return SPECIAL + (TOKENS + WORDS) * self.blocks

    @property
    def table(self) -> Ints:
        """Return (words, registers, 2) target tokens; `NONE` where a word has but one."""
        found = np.full((self.words, REGISTERS, 2), NONE, np.int64)
        for block in range(self.blocks):
            first, word = SPECIAL + TOKENS * block, WORDS * block
            for z in range(REGISTERS):
                found[word : word + SINGLE, z, 0] = first + np.arange(SINGLE)
                sensitive = np.arange(DOUBLE - SINGLE)
                found[word + SINGLE : word + DOUBLE, z, 0] = first + SINGLE + REGISTERS * sensitive + z
                own = first + SINGLE + REGISTERS * len(sensitive) + 2 * np.arange(WORDS - DOUBLE)
                found[word + DOUBLE : word + WORDS, z, 0] = own
                if self.doubles:
                    found[word + DOUBLE : word + WORDS, z, 1] = own + 1
        return found

    def source(self, words_NxL: Ints) -> Ints:
        """Return (N, L + 1) ids of sources, `LEN` first and `PAD` behind the end."""
        ids = np.where(words_NxL >= 0, SPECIAL + TOKENS * self.blocks + words_NxL, PAD)
        return np.concatenate([np.full((len(ids), 1), LEN, np.int64), ids], 1)

    def check(self, words_NxL: Ints) -> None:
        """Raise ValueError if a sentence is empty or has a word outside the lexicon."""
        words = np.asarray(words_NxL)
        if words.ndim != 2 or not len(words) or (words[:, 0] == NONE).any():
            raise ValueError("a sentence needs at least one word")
        outside = (words < NONE) | (words >= self.words)
        if outside.any():
            n, i = np.argwhere(outside)[0].tolist()
            raise ValueError(
                f"sentence {n} has a word {words[n, i]} at place {i}, outside the lexicon: its {self.words} words are "
                f"0 to {self.words - 1}"
            )


class Law(NamedTuple):
    """p(y | x) of N sentences by its outcomes (z, j), j fastest: ``tokens`` (N, K, T), EOS last and `PAD` behind it,
    ``p`` (N, K), 0 for j behind the end. Where no word is sensitive, outcomes of both registers are the same."""

    tokens: Ints
    p: Floats


def check_alpha(alpha: float) -> None:
    """Raise ValueError unless ``alpha`` is a probability."""
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha is the probability that register and particle are drawn: expected 0 to 1, got {alpha}")


def sample_words(rng: np.random.Generator, n: int, lexicon: Lexicon, shortest: int, longest: int) -> Ints:
    """Return (n, longest) distinct sentences, `NONE` behind the end.

    L is uniform, neighbours differ, and sentences whose reordered words have equal neighbours are drawn anew, so that
    no translation has a token twice in a row.
    """
    kept = np.zeros((0, longest), np.int64)
    while len(kept) < n:
        count = n + 1000
        words = rng.integers(lexicon.words, size=(count, longest))
        steps = rng.integers(1, lexicon.words, size=(count, longest - 1))  # uniform over the other words
        words[:, 1:] = steps
        words = words.cumsum(1) % lexicon.words
        lengths = rng.integers(shortest, longest + 1, count)
        words[np.arange(longest) >= lengths[:, None]] = NONE
        order = reordered(words)
        twice = ((order[:, 1:] == order[:, :-1]) & (order[:, 1:] >= 0)).any(1)
        kept = np.concatenate([kept, words[~twice]])
        _, first = np.unique(kept, axis=0, return_index=True)
        kept = kept[np.sort(first)]
    return kept[:n]


def reordered(words_NxL: Ints) -> Ints:
    """Return sentences in the order of the target: from left to right a word of `BEFORE` and one of `AFTER` behind it
    swap, and the scan goes on behind both."""
    words = words_NxL.copy()
    role = np.where(words >= 0, words % WORDS, NONE)
    free = np.ones(len(words), bool)  # the word at i is not one that has just been swapped
    for i in range(words.shape[1] - 1):
        swap = free & np.isin(role[:, i], BEFORE) & np.isin(role[:, i + 1], AFTER)
        words[swap, i], words[swap, i + 1] = words[swap, i + 1], words[swap, i]
        free = ~swap
    return words


def lengths(lexicon: Lexicon, words_NxL: Ints) -> Ints:
    """Return (N,) numbers of target tokens, EOS among them: they follow from the source."""
    here = words_NxL >= 0
    double = here & (words_NxL % WORDS >= DOUBLE) & lexicon.doubles
    found: Ints = here.sum(1) + double.sum(1) + 2
    return found


def translate(lexicon: Lexicon, words_NxL: Ints, z_N: Ints, j_N: Ints, size: int) -> Ints:
    """Return f(x, z, j): (N, size) target tokens, EOS last and `PAD` behind it.

    ``j`` is the number of the word, in the order of the target, that the particle stands before; L puts it last.
    """
    order = reordered(words_NxL)
    n, longest = order.shape
    slots = np.full((n, longest + 2, 3), NONE, np.int64)  # of a word: the particle, and up to two tokens
    slots[:, :longest, 1:] = np.where(order[..., None] >= 0, lexicon.table[order, z_N[:, None]], NONE)
    slots[np.arange(n), j_N, 0] = PART
    count = (order >= 0).sum(1)
    slots[np.arange(n), count, 1] = EOS  # behind the particle, if that is last
    flat = slots.reshape(n, 3 * (longest + 2))
    used = flat >= 0
    tokens = np.full((n, size), PAD, np.int64)
    tokens[np.arange(size) < used.sum(1)[:, None]] = flat[used]
    return tokens


def law(lexicon: Lexicon, words_NxL: Ints, alpha: float, register: float, size: int) -> Law:
    """Return p(y | x) of each sentence; ``register`` is the probability of z = 0 where it is drawn, and ``size`` the
    length of token arrays.

    Raises ValueError if ``alpha`` is no probability or a word is outside the lexicon.
    """
    check_alpha(alpha)
    lexicon.check(words_NxL)
    n, longest = words_NxL.shape
    count = (words_NxL >= 0).sum(1)
    tokens = np.zeros((n, REGISTERS, longest + 1, size), np.int64)
    p = np.zeros((n, REGISTERS, longest + 1))
    for z, chance in enumerate((register, 1 - register)):
        for j in range(longest + 1):
            inside = j <= count
            at = np.minimum(j, count)
            tokens[:, z, j] = translate(lexicon, words_NxL, np.full(n, z), at, size)
            p[:, z, j] = np.where(inside, alpha * chance / (count + 1), 0.0)
    p[:, 0, 0] += 1 - alpha
    return Law(tokens.reshape(n, -1, size), p.reshape(n, -1))


def draw(rng: np.random.Generator, words_NxL: Ints, alpha: float, register: float) -> tuple[Ints, Ints]:
    """Return z and j (N,) each. The same numbers are drawn whatever alpha is: what is multimodal at one alpha has the
    same z and j at every larger one."""
    check_alpha(alpha)
    mixed, first, place = rng.random((3, len(words_NxL)))
    count = (words_NxL >= 0).sum(1)
    drawn = mixed < alpha
    z = np.where(drawn, (first >= register).astype(np.int64), 0)
    return z, np.where(drawn, (place * (count + 1)).astype(np.int64), 0)


def log_probability(of: Law, tokens_NxT: Ints) -> Floats:
    """Return (N,) log p(y | x), -inf for what is no outcome."""
    same = (of.tokens == tokens_NxT[:, None]).all(-1)
    with np.errstate(divide="ignore"):
        found: Floats = np.log((of.p * same).sum(1))
    return found


class Dependence(NamedTuple):
    """Of each sentence, in nats: ``total`` correlation sum_i H(Y_i | x) - H(Y | x), ``entropy`` H(Y | x); ``apart``,
    the total variation between p(y | x) and the product of its marginals; ``likeliest`` (N, T), of each position the
    token of the largest marginal, of several the least."""

    total: Floats
    entropy: Floats
    apart: Floats
    likeliest: Ints


def dependence(of: Law) -> Dependence:
    """Return how much target tokens depend on each other (chapter 3.9), by summing over outcomes."""
    tokens, p = of
    alike = tokens[:, :, None, :] == tokens[:, None, :, :]  # (N, K, K, T)
    marginal = np.einsum("nklt,nl->nkt", alike, p)  # of the token that outcome k has at t
    whole = np.einsum("nkl,nl->nk", alike.all(-1), p)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(p[..., None] > 0, np.log(marginal), 0.0)
        own = np.where(p > 0, np.log(whole), 0.0)
    entropy = -(p * own).sum(1)
    product = np.exp(logs.sum(-1))
    # An outcome that two registers share counts once: by its share of the whole probability.
    weight = np.divide(p, whole, out=np.zeros_like(p), where=whole > 0)
    apart = (weight * np.maximum(whole - product, 0)).sum(1)
    # The largest marginal, and of equal ones the least token: rounding makes equal sums equal.
    rank = np.round(marginal, 12) - tokens * 1e-15
    rank[p == 0] = -1
    likeliest = np.take_along_axis(tokens, rank.argmax(1)[:, None], 1)[:, 0]
    total = -np.einsum("nk,nkt->n", p, logs) - entropy
    return Dependence(total, entropy, apart, likeliest)


def stutters(tokens_NxT: Ints) -> NDArray[np.bool_]:
    """Return (N, T) whether a token repeats the one before it; no translation has such a place."""
    found = np.zeros(tokens_NxT.shape, bool)
    found[:, 1:] = (tokens_NxT[:, 1:] == tokens_NxT[:, :-1]) & (tokens_NxT[:, 1:] > EOS)
    return found
