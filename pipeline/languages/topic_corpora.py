"""Corpora that stand in for the Wikipedia of Li 2025, section 2.1.5.4: overlapping topics, and real English.

Overlapping topics: documents of latent Dirichlet allocation between `CLS` and `SEP`. Some of their tokens are stop
words, which follow Zipf's law; the others come from topics that share words: p(w | t) is proportional to g rank^-s +
`LEAST` with g of a gamma law and a permutation of ranks for each topic. The longer a document, the larger alpha, hence
the more topics it has: the reason why attention is debiased by length.

Real English: the topics of the Python language reference as they come with CPython 3.11.7 (module
``pydoc_data.topics``), a copy of which lies beside this module, so that it does not depend on the Python that runs.
Paragraphs are documents. Its licence, that of the Python Software Foundation, is in ``python_reference.LICENSE.txt``.

Ids of both: `PAD`, `MASK`, `CLS`, `SEP`, stop words, other words.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import SandglassError

PAD, MASK, CLS, SEP = range(4)
SPECIALS = 4  # the first of the words is the id behind them
LEAST = 1e-9  # of a word in a topic, before topics are normalised
REFERENCE = Path(__file__).with_name("python_reference.json.xz")

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Documents(NamedTuple):
    """Documents, one behind the other: their tokens, how many each has, and their shares of topics (N, T)."""

    tokens: Ints
    lengths: Ints
    theta: Floats


class Questions(NamedTuple):
    """What a model without positions reads and is asked of masked documents (as `pipeline.languages.topic.Questions`).

    ``counts`` (N, V): how often each id is among the keys. A question is a pair of a document and an id that a masked
    position of it shows: ``document`` and ``shown`` (P,), sorted; ``labels`` (P, V) counts the words that stood there.
    """

    counts: Ints
    document: Ints
    shown: Ints
    labels: Ints


class Paragraphs(NamedTuple):
    """Paragraphs of a text: as they are printed, where each is from, and its words as ids; and the vocabulary, by
    id."""

    text: list[str]
    entry: list[str]
    words: list[list[int]]
    vocabulary: list[str]


# --- overlapping topics ------------------------------------------------------------------------------


def topics(rng: np.random.Generator, many: int, words: int, shape: float, exponent: float) -> Floats:
    """Return (T, words), p(word | topic) of topics that share words; ``shape`` is that of the gamma law."""
    weight = rng.gamma(shape, size=(many, words))
    ranks = rng.permuted(np.tile(np.arange(1.0, words + 1), (many, 1)), axis=1)
    masses = weight * ranks**-exponent + LEAST
    return masses / masses.sum(1, keepdims=True)


def zipf(words: int) -> Floats:
    """Return the law of Zipf with exponent 1 over ranks.

    >>> zipf(3).round(4).tolist()
    [0.5455, 0.2727, 0.1818]
    """
    weights = 1 / np.arange(1.0, words + 1)
    return weights / weights.sum()


def dirichlet(rng: np.random.Generator, alpha: Floats, many: int) -> Floats:
    """Return (N, ``many``): rows of symmetric Dirichlet laws with a parameter each.

    Gamma variables of small shapes vanish in double precision, so their logarithms are drawn: that of shape a is the
    one of shape 1 + a times U^(1/a).
    """
    shapes = np.repeat(alpha[:, None], many, axis=1)
    logs = np.log(rng.gamma(1 + shapes)) + np.log1p(-rng.random(shapes.shape)) / shapes
    shares = np.exp(logs - logs.max(1, keepdims=True))
    return shares / shares.sum(1, keepdims=True)


def overlapping(
    rng: np.random.Generator,
    n: int,
    laws: Floats,
    stop_words: int,
    stop_share: float,
    shortest: int,
    longest: int,
    alpha: tuple[float, float],
) -> Documents:
    """Return ``n`` documents of the topics ``laws`` (T, words), each between `CLS` and `SEP`.

    Numbers of words are uniform from ``shortest`` to ``longest``; ``alpha`` is that of the shortest and of the longest
    document, in proportion between. Each word is a stop word with probability ``stop_share``.
    """
    words = rng.integers(shortest, longest + 1, size=n)
    least, most = alpha
    theta = dirichlet(rng, least + (most - least) * (words - shortest) / max(1, longest - shortest), len(laws))
    ends = np.repeat(theta.cumsum(1)[:, :-1], words, axis=0)
    topic = (rng.random(len(ends))[:, None] > ends).sum(1)
    place = rng.random(len(topic))
    tokens = np.empty(len(topic), np.int64)
    for own, law in enumerate(laws):
        here = topic == own
        tokens[here] = np.minimum(np.searchsorted(law.cumsum(), place[here]), len(law) - 1)
    tokens += SPECIALS + stop_words
    common = np.searchsorted(zipf(stop_words).cumsum()[:-1], rng.random(len(topic)))
    tokens = np.where(rng.random(len(topic)) < stop_share, SPECIALS + common, tokens)
    return framed(tokens, words, theta)


def framed(tokens: Ints, lengths: Ints, theta: Floats) -> Documents:
    """Return documents with `CLS` before and `SEP` behind each.

    >>> framed(np.array([7, 8, 9]), np.array([2, 1]), np.ones((2, 1))).tokens.tolist()
    [2, 7, 8, 3, 2, 9, 3]
    """
    ends = lengths.cumsum()
    ids = np.insert(tokens, np.repeat(ends, 2), np.tile([SEP, CLS], len(ends)))
    return Documents(np.concatenate([[CLS], ids[:-1]]), lengths + 2, theta)


# --- masks ---------------------------------------------------------------------------------------------


def masked(
    rng: np.random.Generator, tokens: Ints, lengths: Ints, symbols: int, rate: float, keep: float, random: float
) -> tuple[NDArray[np.bool_], Ints]:
    """Return which positions are masked, and what all positions show.

    Words alone are masked, each with probability ``rate``; it stays with probability ``keep``, becomes a random word
    with probability ``random``, and `MASK` otherwise (BERT: 0.15, 0.1, 0.1). A document in which no position is masked
    is drawn again.
    """
    words = tokens >= SPECIALS
    at = (rng.random(len(tokens)) < rate) & words
    owner = np.repeat(np.arange(len(lengths)), lengths)
    while (none := np.bincount(owner[at], minlength=len(lengths)) == 0).any():
        again = none[owner]
        at[again] = (rng.random(int(again.sum())) < rate) & words[again]
    what = rng.random(len(tokens))
    other = rng.integers(SPECIALS, symbols, size=len(tokens))
    changed = np.where(what < keep, tokens, np.where(what < keep + random, other, MASK))
    return at, np.where(at, changed, tokens)


def questions(tokens: Ints, lengths: Ints, at: NDArray[np.bool_], shown: Ints, symbols: int) -> Questions:
    """Return what a model without positions reads and is asked; special ids are keys like all others."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    counts = np.bincount(owner * symbols + shown, minlength=len(lengths) * symbols).reshape(-1, symbols)
    pairs, which = np.unique(owner[at] * symbols + shown[at], return_inverse=True)
    labels = np.bincount(which * symbols + tokens[at], minlength=len(pairs) * symbols)
    return Questions(counts, pairs // symbols, pairs % symbols, labels.reshape(-1, symbols))


# --- real English --------------------------------------------------------------------------------------


def reference(sha256: str) -> dict[str, str]:
    """Return the topics of the Python language reference by name; ``sha256`` is that of their text (JSON, UTF-8).

    Raises SandglassError if the copy that lies here has another.
    """
    content = lzma.decompress(REFERENCE.read_bytes())
    if (digest := hashlib.sha256(content).hexdigest()) != sha256:
        raise SandglassError(
            f"{REFERENCE.name}: its text has the SHA-256 {digest}, expected {sha256}: restore it with git checkout"
        )
    return dict(json.loads(content))


def paragraphs(entries: dict[str, str], shortest: int, fewest: int, stop_words: int) -> Paragraphs:
    """Return the paragraphs of at least ``shortest`` words, each once: entries repeat whole sections of others.

    Words are runs of the letters a to z, in lower case. Those that occur fewer than ``fewest`` times are left out; the
    ``stop_words`` most frequent ones come first in the vocabulary, then the others, by frequency and alphabet.

    >>> found = paragraphs({"a": "To be, or not to be.\\n\\nNo."}, shortest=2, fewest=1, stop_words=2)
    >>> found.vocabulary, found.words
    (['[PAD]', '[MASK]', '[CLS]', '[SEP]', 'be', 'to', 'not', 'or'], [[5, 4, 7, 6, 5, 4]])
    """
    passages: dict[str, tuple[str, list[str]]] = {}
    for entry, text in entries.items():
        for paragraph in re.split(r"\n\s*\n", text):
            words = re.findall(r"[a-z]+", paragraph.lower())
            if len(words) >= shortest:
                passages.setdefault(" ".join(paragraph.split()), (entry, words))
    frequency = Counter(word for _, words in passages.values() for word in words)
    ordered = sorted((word for word, n in frequency.items() if n >= fewest), key=lambda w: (-frequency[w], w))
    if len(ordered) <= stop_words:
        raise SandglassError(
            f"{len(ordered)} words occur at least {fewest} times, which leaves none beside {stop_words} stop words"
        )
    vocabulary = ["[PAD]", "[MASK]", "[CLS]", "[SEP]", *ordered]
    number = {word: place for place, word in enumerate(vocabulary)}
    ids = [[number[word] for word in words if word in number] for _, words in passages.values()]
    return Paragraphs(list(passages), [entry for entry, _ in passages.values()], ids, vocabulary)
