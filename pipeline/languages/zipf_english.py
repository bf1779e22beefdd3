"""A generated corpus that stands in for English text (Liu 2024, sections 4.2.3.2 and 4.2.10; chapter 3.11).

The source trains on Wikipedia and books, which are not part of this project. A small grammar of English makes sentences
instead: S → NP VP with determiners, adjectives, nouns, prepositional phrases, transitive, intransitive and
sentence-taking verbs and adverbs, all agreeing in number; phrases are nested at most `MAX_DEPTH` deep. Words are
invented and their forms drawn with probabilities proportional to 1/rank within their class (Zipf's law of exponent
1). Whole words, function words included, are the vocabulary: at most 4096. Sentences end with a full stop and are put
one behind the other into blocks of equal length. Nothing made from it is comparable with the source in numbers, only
in what its order is.

`read` makes blocks of the same kind from plain-text files, the most frequent words being their vocabulary.

Ids: 3 to 6 are BOS, EOS, PAD and MASK as in `pipeline.languages.pcfg`, so that one measure reads both; 0 is UNKNOWN (a
file's rarer words), 1, 2 and 7 stay free; words follow.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.errors import SandglassError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

MOST_WORDS = 4096
SPECIAL = ("<unknown>", "<free 1>", "<free 2>", "<bos>", "<eos>", "<pad>", "<mask>", "<free 7>")
UNKNOWN, BOS, EOS, PAD, MASK = 0, 3, 4, 5, 6
NONE, MASKED, RANDOM, KEPT = range(4)  # what became of a token
SHOWN_MASK, SHOWN_RANDOM = 0.8, 0.1  # shares of the selected tokens; the rest stays as it is
HELD = 10  # of so many blocks of text files, the last one is held out
MAX_DEPTH = 6  # of phrases within each other
NUMBERS = ("sg", "pl")

# Forms of each class; a noun and a verb have one for each number, which counts as one of these.
OPEN = {"noun": 500, "verb": 250, "say": 40, "adjective": 250, "adverb": 80, "name": 100}
FUNCTION = {
    "det_sg": ("the", "a", "this", "every", "that"),
    "det_pl": ("the", "some", "these", "many", "those"),
    "prep": ("of", "in", "with", "on", "for", "near"),
    "that": ("that",),
    "stop": (".",),
}

# Right-hand sides with their weights. A phrase with a number hands it on; "NP" of an object draws one. Where the
# depth is used up, only the first one is left, which holds no phrase of its own kind or leads to one that does not.
RULES: dict[str, tuple[tuple[float, tuple[str, ...]], ...]] = {
    "S": ((1.0, ("NP=", "VP=", "stop")),),
    "C": ((1.0, ("NP=", "VP=")),),
    "NP": (
        (0.45, ("det", "noun")),
        (0.2, ("det", "adjective", "noun")),
        (0.2, ("det", "noun", "PP")),
        (0.15, ("name",)),
    ),
    "PP": ((1.0, ("prep", "NP*")),),
    "VP": ((0.3, ("verb",)), (0.4, ("verb", "NP*")), (0.15, ("verb", "adverb")), (0.15, ("say", "that", "C"))),
}
CONSONANTS, VOWELS = tuple("bdfgklmnprstvz"), tuple("aeiou")


@dataclass(frozen=True)
class Lexicon:
    """The words: their forms, and the ids of each class by rank."""

    words: tuple[str, ...]
    classes: dict[str, NDArray[np.int64]]

    @cached_property
    def law(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """What `_drawn` draws words of classes from: their probabilities are proportional to 1/rank."""
        weights = [1 / np.arange(1, len(ids) + 1) for ids in self.classes.values()]
        return _steps(weights), np.concatenate([*self.classes.values()])

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """All words by id, special ones first."""
        return (*SPECIAL, *self.words)


@cache
def lexicon() -> Lexicon:
    """Return the words, the same at every call: invented ones of two and three syllables, plural nouns with -en and
    singular verbs with -eth."""
    syllables = ["".join(pair) for pair in itertools.product(CONSONANTS, VOWELS)]
    # A fixed stride through all pairs, so that neighbours in rank do not look alike.
    pairs = len(syllables) ** 2
    stems = (
        syllables[i // len(syllables)] + syllables[i % len(syllables)] + CONSONANTS[i % 7]
        for i in (place * 1237 % pairs for place in range(pairs))
    )
    words: list[str] = []
    ids: dict[str, list[int]] = {}
    known: dict[str, int] = {}

    def add(name: str, word: str) -> None:
        if word not in known:
            known[word] = len(SPECIAL) + len(words)
            words.append(word)
        ids.setdefault(name, []).append(known[word])

    for name, forms in FUNCTION.items():
        for form in forms:
            add(name, form)
    for name, count in OPEN.items():
        for stem in itertools.islice(stems, count):
            if name == "noun":
                add("noun_sg", stem)
                add("noun_pl", stem + "en")
            elif name in ("verb", "say"):
                add(f"{name}_sg", stem + "eth")
                add(f"{name}_pl", stem)
            else:
                add(name, stem)
    if len(words) + len(SPECIAL) > MOST_WORDS:
        raise SandglassError(f"the lexicon has {len(words) + len(SPECIAL)} words, expected at most {MOST_WORDS}")
    return Lexicon(tuple(words), {name: np.array(each) for name, each in ids.items()})


# --- sentences ---------------------------------------------------------------------------------------------------


def _steps(weights: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the distribution functions of several laws one behind the other, the i-th from i to i + 1."""
    parts = [place + np.cumsum(each) / each.sum() for place, each in enumerate(weights)]
    for place, part in enumerate(parts):
        part[-1] = place + 1  # not a little less, by rounding: `_drawn` looks for it
    return np.concatenate(parts)


def _drawn(rng: np.random.Generator, steps: NDArray[np.float64], which: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a place in ``steps`` for each of ``which``, drawn from the law of that number."""
    places = np.searchsorted(steps, which + rng.random(len(which)), side="right")
    ends = np.searchsorted(steps, which + 1.0)  # the last place of each law, where rounding may lead beyond it
    return np.minimum(places, ends)


@cache
def _symbols() -> tuple[dict[str, int], NDArray[np.float64], NDArray[np.int64]]:
    """Return the numbers of all symbols, classes of words first, then phrases; what `_drawn` draws rules of phrases
    from; and their right-hand sides (rules, 3), -1 where there is no symbol.

    A phrase is a kind, a number and how many phrases it may still have within it.
    """
    classes = list(lexicon().classes)
    lefts = range(MAX_DEPTH + 1)
    phrases = [f"{kind}_{number}_{left}" for kind in RULES for number in NUMBERS for left in lefts]
    ids = {name: place for place, name in enumerate([*classes, *phrases])}
    weights, sides = [], []
    for phrase in phrases:
        kind, number, left = phrase.split("_")
        own = []
        for weight, side in RULES[kind][: None if int(left) else 1]:
            if side == ("name",) and number == "pl":
                continue  # names are singular
            # The number of an object is its own: a rule for each.
            free = any(part.endswith("*") or part == "C" for part in side)
            for other in NUMBERS if free else ("",):
                own.append(weight / (2 if free else 1))
                parts = [ids[_filled(part, number, other, int(left))] for part in side]
                sides.append(parts + [-1] * (3 - len(side)))
        weights.append(np.array(own))
    return ids, _steps(weights), np.array(sides)


def _filled(part: str, number: str, other: str, left: int) -> str:
    """Return a part of a rule with its number, and with the depth that is left to it."""
    inner = max(0, left - 1)
    if part.endswith("="):
        return f"{part[:-1]}_{number}_{left}"
    if part.endswith("*"):
        return f"{part[:-1]}_{other}_{inner}"
    if part == "PP":
        return f"PP_{number}_{inner}"
    if part == "C":
        return f"C_{other}_{inner}"
    return f"{part}_{number}" if part in ("det", "noun", "verb", "say") else part


def sentences(rng: np.random.Generator, n: int) -> tuple[NDArray[np.int16], NDArray[np.int64]]:
    """Return ids of the words of ``n`` sentences, flat, and their lengths (n,), full stops included."""
    ids, steps, sides = _symbols()
    words = len(lexicon().classes)
    starts = np.array([ids[f"S_{number}_{MAX_DEPTH}"] for number in NUMBERS])
    nodes, owner = starts[rng.integers(0, len(NUMBERS), n)], np.arange(n)
    while (phrase := np.flatnonzero(nodes >= words)).size:
        below = np.full((len(nodes), 3), -1)
        below[:, 0] = nodes
        below[phrase] = sides[_drawn(rng, steps, nodes[phrase] - words)]
        present = below >= 0
        owner, nodes = np.repeat(owner, present.sum(1)), below[present]
    steps, forms = lexicon().law
    return forms[_drawn(rng, steps, nodes)].astype(np.int16), np.bincount(owner, minlength=n)


def blocks(rng: np.random.Generator, n: int, length: int) -> NDArray[np.int16]:
    """Return (n, length): sentences one behind the other, cut into blocks; a block may begin and end within a
    sentence."""
    need, parts, total = n * length, [], 0
    while total < need:
        words, lengths = sentences(rng, max(1, (need - total) // 6))
        parts.append(words)
        total += int(lengths.sum())
    return np.concatenate(parts)[:need].reshape(n, length)


# --- text files ---------------------------------------------------------------------------------------------------


def read(paths: Sequence[Path], length: int, most: int) -> tuple[NDArray[np.int16], tuple[str, ...]]:
    """Return blocks (N, length) of the words of plain-text files, in order, and the vocabulary: special words, then
    their most frequent ones, ``most`` in all; rarer words are UNKNOWN. Words are in lower case, and punctuation marks
    are words.

    Raises SandglassError if a file is missing, or if all of them have not enough words for a block.
    """
    if not len(SPECIAL) < most <= 2**15:
        raise SandglassError(f"a vocabulary of {most} words; expected {len(SPECIAL) + 1} to {2**15}")
    words: list[str] = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise SandglassError(f"cannot read the corpus {path}: {error.strerror or error}") from None
        words += re.findall(r"\w+|[^\w\s]", text.lower())
    if len(words) < length:
        raise SandglassError(f"the corpus has {len(words)} words, less than a block of {length}")
    counts = Counter(words)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[: most - len(SPECIAL)]
    known = {word: place for place, word in enumerate(ranked, len(SPECIAL))}
    ids = np.array([known.get(word, UNKNOWN) for word in words], np.int16)
    whole = len(ids) // length * length
    return ids[:whole].reshape(-1, length), (*SPECIAL, *ranked)


@cache
def _files(files: tuple[tuple[str, str], ...], length: int, most: int) -> tuple[NDArray[np.int16], int]:
    """Return the blocks of text files with their md5, and the size of the vocabulary.

    Raises SandglassError if a file is missing or is not the one that is named.
    """
    for name, md5 in files:
        path = Path(name)
        digest = hashlib.md5(path.read_bytes()).hexdigest() if path.is_file() else None
        if digest != md5:
            shown = "is not there" if digest is None else f"has md5 {digest}"
            raise SandglassError(f"the corpus {name} {shown}; params say {md5}")
    text, words = read([Path(name) for name, _ in files], length, most)
    if len(text) < HELD:
        raise SandglassError(f"the corpus has {len(text)} blocks of {length} words; expected {HELD} or more")
    return text, len(words)


def _of(task: Mapping[str, Any]) -> tuple[NDArray[np.int16], int] | None:
    if not task["files"]:
        return None
    files = tuple((file["path"], file["md5"]) for file in task["files"])
    return _files(files, task["length"], task["words"])


# --- what models are asked ---------------------------------------------------------------------------------------


def outputs(task: Mapping[str, Any]) -> int:
    """Return the number of ids of a task's vocabulary."""
    corpus = _of(task)
    return len(lexicon().vocabulary) if corpus is None else corpus[1]


def examples(rng: np.random.Generator, n: int, task: Mapping[str, Any], held: bool) -> dict[str, NDArray[np.uint16]]:
    """Return n blocks behind BOS (n, 1 + length): as they are, ``tokens``, as they are ``shown``, and the ``kind`` of
    what became of each token: NONE, MASKED, RANDOM or KEPT.

    ``task``: ``length`` of a block, ``rate`` of selected tokens, and ``files``: null, or text files (path, md5) with
    ``words`` as the size of their vocabulary, whose blocks are drawn at random, ``held`` ones from the end of the text.
    Of the selected tokens 80 % show MASK, 10 % any word, and 10 % stay, as in definition 24.
    """
    of = _of(task)
    if of is None:
        words, ids = blocks(rng, n, task["length"]), len(lexicon().vocabulary)
    else:
        text, ids = of
        first = len(text) - max(1, len(text) // HELD)
        words = text[rng.integers(first, len(text), n) if held else rng.integers(0, first, n)]
    u = rng.random(words.shape) / task["rate"]
    other = rng.integers(len(SPECIAL), ids, words.shape)
    kind = np.select([u < SHOWN_MASK, u < SHOWN_MASK + SHOWN_RANDOM, u < 1], [MASKED, RANDOM, KEPT], NONE)
    shown = np.select([kind == MASKED, kind == RANDOM], [np.full_like(other, MASK), other], words)
    parts: dict[str, tuple[NDArray[Any], int]] = {"tokens": (words, BOS), "shown": (shown, BOS), "kind": (kind, NONE)}
    return {name: np.insert(array.astype(np.uint16), 0, first, axis=1) for name, (array, first) in parts.items()}


def visible(ids: NDArray[np.uint16], kind: NDArray[np.uint16], hide_masked: bool) -> NDArray[np.bool_]:
    """Return which positions may be attended to: all, or with ``hide_masked`` those that were not selected."""
    positions: NDArray[np.bool_] = (kind == NONE) if hide_masked else np.ones(ids.shape, bool)
    return positions
