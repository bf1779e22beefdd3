"""Flip-flop languages FFL(T, p) and the flip-flop automaton (Liu 2024, sections 3.5.1.1 and 3.5.1.2).

A string is T/2 pairs of an instruction (write, read, ignore) and a datum; the datum behind ``r`` is that of the most
recent write. Token ids: w = 0, r = 1, i = 2, and the data symbols '0' = 3, '1' = 4, and on where there are more.

The automaton reads symbols 0 = no-op, 1 = "write 0", 2 = "write 1" (the code of figure 3.33) and has states 0, 1.

Told in English (section 3.5.6.2.1, figure 3.23c), a write says that somebody turns a thing on or off, an ignored pair
that somebody else does something with one of two objects, and a read that the thing is turned on or off. Words are
tokens then, and so is the full stop. Stories for training have other people, things and objects than the source's: of
its words (`HELD_OUT`) none has more than one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import SandglassError

WRITE, READ, IGNORE, DATA = 0, 1, 2, 3  # DATA: the first data symbol
NAMES = ("w", "r", "i", "0", "1")
NOOP = 0  # of the automaton

Tokens = NDArray[np.uint8]
Ints = NDArray[np.int64]
Share = float | NDArray[np.float64]


def halves(p_ignore: Share) -> tuple[Share, Share]:
    """Return (p_write, p_read) of the source's short form FFL(p_ignore): the rest in two equal parts.

    >>> halves(0.5)
    (0.25, 0.25)
    """
    half = (1 - p_ignore) / 2
    return half, half


def sample(rng: np.random.Generator, n: int, length: int, p_write: Share, p_read: Share, symbols: int = 2) -> Tokens:
    """Return (n, length) strings of FFL(length, p), ``length`` even and at least 4.

    The first instruction is w and the last one r; those between are independent. Data of w and of i are independent
    and uniform over ``symbols``. Shares are numbers, or (n,) for strings of several languages.

    >>> sample(np.random.default_rng(0), 1, 8, 0.5, 0.5).tolist()
    [[0, 4, 1, 4, 1, 4, 1, 4]]
    """
    _check_length(length)
    pairs = length // 2
    draws = rng.random((n, pairs), dtype=np.float32)
    write = np.reshape(np.asarray(p_write, np.float32), (-1, 1))
    read = write + np.reshape(np.asarray(p_read, np.float32), (-1, 1))
    instructions = np.where(draws < write, WRITE, np.where(draws < read, READ, IGNORE)).astype(np.uint8)
    instructions[:, 0], instructions[:, -1] = WRITE, READ
    return assemble(instructions, rng.integers(symbols, size=(n, pairs), dtype=np.uint8))


def assemble(instructions_NxS: NDArray[np.integer], data_NxS: NDArray[np.integer]) -> Tokens:
    """Return the strings (N, 2S) with these instructions and data (numbers from 0); data behind r are replaced.

    Each row must begin with a write.
    """
    instructions = instructions_NxS.astype(np.uint8)
    last = last_write(instructions)
    data = data_NxS.astype(np.uint8)
    known = np.take_along_axis(data, last, 1)
    data = np.where(instructions == READ, known, data)
    return np.stack([instructions, data + np.uint8(DATA)], -1).reshape(len(instructions), -1)


def last_write(instructions_NxS: NDArray[np.integer]) -> Ints:
    """Return (N, S): the index of the most recent write pair, that of the pair itself where it writes."""
    at = np.where(instructions_NxS == WRITE, np.arange(instructions_NxS.shape[1]), -1)
    return np.maximum.accumulate(at, 1)


@dataclass(frozen=True)
class Reads:
    """All reads of some strings, one entry each: ``row`` and ``pair`` where they are, the true symbol ``target``, the
    distances in pairs to the most recent write (``dist_write``) and to the most recent pair that shows the bit, write
    or read (``dist_info``), and the number of writes before (``n_writes``)."""

    row: Ints
    pair: Ints
    target: Ints
    dist_write: Ints
    dist_info: Ints
    n_writes: Ints


def reads(tokens_NxT: NDArray[np.integer]) -> Reads:
    """Return the reads of the strings, row by row from left to right.

    >>> found = reads(np.array([[0, 4, 1, 4, 2, 3, 1, 4]]))
    >>> found.dist_write.tolist(), found.dist_info.tolist(), found.target.tolist()
    ([1, 3], [1, 2], [1, 1])
    """
    instructions = tokens_NxT[:, 0::2]
    row, pair = np.nonzero(instructions == READ)
    at = np.arange(instructions.shape[1])
    shown = np.maximum.accumulate(np.where(instructions != IGNORE, at, -1), 1)
    writes = (instructions == WRITE).cumsum(1)
    return Reads(
        row,
        pair,
        tokens_NxT[row, 2 * pair + 1].astype(np.int64) - DATA,
        pair - last_write(instructions)[row, pair],
        pair - shown[row, pair - 1],
        writes[row, pair],
    )


def read_targets(tokens_NxT: NDArray[np.integer]) -> Ints:
    """Return (N, T - 1) the next token where the input token is r, else -1: the labels of the clean loss."""
    is_read = np.zeros(tokens_NxT.shape, bool)
    is_read[:, 0::2] = tokens_NxT[:, 0::2] == READ
    return np.where(is_read[:, :-1], tokens_NxT[:, 1:].astype(np.int64), -1)


def legal(tokens_NxT: NDArray[np.integer], symbols: int = 2) -> NDArray[np.bool_]:
    """Return (N,) whether each row is a string of the language: alphabet, first and last instruction, right reads."""
    instructions, data = tokens_NxT[:, 0::2], tokens_NxT[:, 1::2].astype(np.int64) - DATA
    ends = (instructions[:, 0] == WRITE) & (instructions[:, -1] == READ)
    alphabet = (instructions <= IGNORE).all(1) & ((data >= 0) & (data < symbols)).all(1)
    known = np.take_along_axis(data, last_write(instructions).clip(min=0), 1)
    return ends & alphabet & ((instructions != READ) | (data == known)).all(1)


def enumerate_strings(length: int, symbols: int = 2) -> Tokens:
    """Return all strings of the language of this length, each once: symbols (2 symbols + 1)^(length/2 - 2) rows.

    >>> [len(enumerate_strings(length)) for length in (4, 6, 8, 10, 12)]
    [2, 10, 50, 250, 1250]
    """
    _check_length(length)
    choices = [(WRITE, x) for x in range(symbols)] + [(READ, 0)] + [(IGNORE, x) for x in range(symbols)]
    middle = list(itertools.product(choices, repeat=length // 2 - 2))
    rows = [[(WRITE, x), *pairs, (READ, 0)] for x in range(symbols) for pairs in middle]
    both = np.array(rows, np.uint8)
    return assemble(both[..., 0], both[..., 1])


def log_probability(
    tokens_NxT: NDArray[np.integer], p_write: float, p_read: float, symbols: int = 2
) -> NDArray[np.float64]:
    """Return (N,) the natural logarithm of the probability of each legal string under FFL(T, p)."""
    instructions = tokens_NxT[:, 0::2]
    with np.errstate(divide="ignore"):
        of = np.log(np.array([p_write, p_read, 1 - p_write - p_read]))
    drawn = of[instructions[:, 1:-1].astype(np.int64)].sum(1)
    return drawn - (instructions != READ).sum(1) * np.log(symbols)


def pairs(tokens_NxT: NDArray[np.integer], symbols: int = 2) -> Ints:
    """Return (N, T/2) the strings with one token for each pair (section 3.5.5.1): symbols * instruction + datum."""
    data = tokens_NxT[:, 1::2].astype(np.int64) - DATA
    return symbols * tokens_NxT[:, 0::2].astype(np.int64) + data


def from_text(text: str) -> list[int]:
    """Return the tokens of a string such as ``w1i0r1``. Raises ValueError for another character.

    >>> from_text("w1r1")
    [0, 4, 1, 4]
    """
    return [NAMES.index(name) if name in NAMES else _refuse(name) for name in text.replace(" ", "")]


def sample_symbols(rng: np.random.Generator, n: int, length: int, p_noop: Share) -> Tokens:
    """Return (n, length) inputs of the automaton: a write first, then no-ops with ``p_noop``, both writes alike
    (section 3.5.6.5; that the first symbol writes is our choice, since the initial state is left open)."""
    noop = np.reshape(np.asarray(p_noop, np.float32), (-1, 1))
    silent = rng.random((n, length), dtype=np.float32) < noop
    silent[:, 0] = False
    return np.where(silent, NOOP, rng.integers(1, 3, size=(n, length), dtype=np.uint8)).astype(np.uint8)


def states(symbols_NxT: NDArray[np.integer]) -> Tokens:
    """Return (N, T) the states behind each symbol of inputs that begin with a write: what was last written.

    >>> states(np.array([[2, 0, 1, 0, 0]])).tolist()
    [[1, 1, 0, 0, 0]]
    """
    last = last_symbol(symbols_NxT)
    return (np.take_along_axis(symbols_NxT, last, 1) - 1).astype(np.uint8)


def last_symbol(symbols_NxT: NDArray[np.integer]) -> Ints:
    """Return (N, T): the position of the most recent write of the automaton's input, its own where it writes."""
    at = np.where(symbols_NxT != NOOP, np.arange(symbols_NxT.shape[1]), -1)
    return np.maximum.accumulate(at, 1)


def _check_length(length: int) -> None:
    if length < 4 or length % 2:
        raise ValueError(f"length {length}: strings have an even number of tokens, at least 4")


def _refuse(name: str) -> int:
    raise ValueError(f"{name!r} is none of the tokens {', '.join(NAMES)}")


# --- stories (section 3.5.6.2.1) ---------------------------------------------------------------------

STATES = ("off", "on")
PEOPLE = ("Alice", "Bob", "Carol", "David", "Emma", "Frank", "Grace", "Henry")
THINGS = ("light", "lamp", "fan", "heater", "radio", "oven", "printer", "kettle")
VERBS = (("turns", "turned"), ("switches", "switched"))
ACTIONS = ("eats", "sees", "buys", "draws")
OBJECTS = ("banana", "apple", "pear", "plum", "egg", "onion", "lemon", "melon")
HELD_OUT = ("Alice", "Bob", "light", "banana", "apple")
STOP = "."
WORDS = (STOP, "The", "the", "is", "a", "an", *STATES, *PEOPLE, *THINGS, *itertools.chain(*VERBS), *ACTIONS, *OBJECTS)
NUMBERS = {word: number for number, word in enumerate(WORDS)}
ARTICLES = np.array([NUMBERS["an" if word[0] in "aeiou" else "a"] for word in WORDS])  # by the word behind
IS_HELD_OUT = np.array([word in HELD_OUT for word in WORDS])
LISTS = tuple(  # the numbers of the words that a cast is drawn from; a verb has two forms
    np.vectorize(NUMBERS.__getitem__)(np.array(words)) for words in (PEOPLE, THINGS, ACTIONS, OBJECTS, VERBS)
)


class Cast(NamedTuple):
    """Who writes and who distracts, what is turned, with which verb (present, participle), and the two objects."""

    writer: str
    other: str
    thing: str
    present: str
    participle: str
    action: str
    first: str
    second: str


PUBLISHED = Cast("Alice", "Bob", "light", "turns", "turned", "eats", "banana", "apple")
SAID = (  # by instruction and datum; "-" where one sentence has a word less
    ("writer present the thing off .", "writer present the thing on ."),
    ("The thing is participle off .", "The thing is participle on ."),
    ("other action article_first first . -", "other action article_second second . -"),
)
SLOTS = (*WORDS, "-", *Cast._fields, "article_first", "article_second")
SENTENCES = np.array([[[SLOTS.index(word) for word in text.split()] for text in texts] for texts in SAID])


def casts(rng: np.random.Generator, n: int) -> Ints:
    """Return (n, 8) the numbers of the words of random casts, each with at most one of the words held out.

    Stories are drawn at every step of a training, so casts are drawn together, and those that are refused again.
    """
    rows = np.empty((0, len(Cast._fields)), np.int64)
    people, things, actions, objects, forms = LISTS
    rest = len(people) - 1, len(objects) - 1  # whom the second person and object are drawn from
    ends = [len(people), rest[0], len(things), len(forms), len(actions), len(objects), rest[1]]
    while len(rows) < n:
        writer, other, thing, verb, action, first, second = rng.integers(ends, size=(2 * n, len(ends))).T
        other, second = (writer + 1 + other) % len(people), (first + 1 + second) % len(objects)
        drawn = np.stack(
            [
                people[writer],
                people[other],
                things[thing],
                *forms[verb].T,
                actions[action],
                objects[first],
                objects[second],
            ],
            1,
        )
        rows = np.concatenate([rows, drawn[IS_HELD_OUT[drawn].sum(1) <= 1]])
    return rows[:n]


def stories(tokens_NxT: NDArray[np.integer], casts_Nx8: NDArray[np.integer], pairs_N: Ints | None = None) -> Ints:
    """Return (N, L) strings told in English, each with its cast: numbers of words, -1 behind the end of a story.

    A string may have fewer pairs than others; what follows them in its row is not told.

    >>> story = stories(np.array([from_text("w1i0")]), _numbers(PUBLISHED)[None])
    >>> " ".join(WORDS[number] for number in story[0])
    'Alice turns the light on . Bob eats a banana .'
    """
    n = len(casts_Nx8)
    fixed = np.tile([*range(len(WORDS)), -1], (n, 1))
    slots = np.concatenate([fixed, casts_Nx8, ARTICLES[casts_Nx8[:, -2:]]], 1)
    sentences = slots[:, SENTENCES]  # (N, instruction, datum, place)
    data = tokens_NxT[:, 1::2].astype(np.int64) - DATA
    words = sentences[np.arange(n)[:, None], tokens_NxT[:, 0::2], data]
    if pairs_N is not None:
        words[np.arange(words.shape[1]) >= pairs_N[:, None]] = -1
    words = words.reshape(n, -1)
    counts = (words >= 0).sum(1)
    filled = np.full((n, int(counts.max(initial=0))), -1, np.int64)
    filled[np.arange(filled.shape[1]) < counts[:, None]] = words[words >= 0]
    return filled


def story_text(tokens_T: Sequence[int] | NDArray[np.integer], who: Cast, asks: bool = False) -> str:
    """Return a string as a story; one that ``asks`` ends where the last state would stand.

    >>> story_text(from_text("w1i0r1"), PUBLISHED)
    'Alice turns the light on. Bob eats a banana. The light is turned on.'
    >>> story_text(from_text("w1i1r1"), PUBLISHED, asks=True)
    'Alice turns the light on. Bob eats an apple. The light is turned'
    """
    (story,) = stories(np.asarray(tokens_T)[None], _numbers(who)[None])
    text = " ".join(WORDS[number] for number in story).replace(f" {STOP}", STOP)
    return text.rsplit(" ", 1)[0] if asks else text


def sample_stories(rng: np.random.Generator, n: int, lengths: Sequence[int], p_ignore: Sequence[float]) -> Ints:
    """Return (n, L) stories as numbers of words, each with a cast of its own, -1 behind the end of a story.

    The even length of each string and its share of ignored pairs are uniform between two values.
    """
    pairs = rng.integers(lengths[0] // 2, lengths[1] // 2, size=n, endpoint=True)
    strings = sample(rng, n, 2 * int(pairs.max()), *halves(rng.uniform(p_ignore[0], p_ignore[1], size=n)))
    instructions = strings[:, 0::2]
    instructions[np.arange(n), pairs - 1] = READ  # before its last pair, a string has the law of a longer one
    strings = assemble(instructions, strings[:, 1::2] - np.uint8(DATA))
    return stories(strings, casts(rng, n), pairs)


def words_of(text: str) -> list[int]:
    """Return the numbers of the words. Raises SandglassError for a word that is in no story.

    >>> [WORDS[number] for number in words_of("The lamp is turned on.")]
    ['The', 'lamp', 'is', 'turned', 'on', '.']
    """
    words = text.replace(STOP, f" {STOP}").split()
    if unknown := [word for word in words if word not in NUMBERS]:
        raise SandglassError(f"no story has the word {unknown[0]!r}; there are: {' '.join(WORDS)}")
    return [NUMBERS[word] for word in words]


@cache
def _numbers(words: tuple[str, ...]) -> Ints:
    return np.array([NUMBERS[word] for word in words])
