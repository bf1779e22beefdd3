"""Flip-flop strings told in English, as the light switch of Liu 2024, section 3.5.6.2.1 and Figure 3.23c.

A write says that somebody turns a thing on or off, an ignored pair that somebody else does something with one of two
objects, a read that the thing is turned on or off. Stories for training tell of other people, things and objects: of
the words of the source's story (`HELD_OUT`) none has more than one. Words are tokens, and so is the full stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import SandglassError

WRITE, READ, DATA = 0, 1, 3  # of flip-flop strings: the first data symbol is DATA
STATES = ("off", "on")
PEOPLE = ("Alice", "Bob", "Carol", "David", "Emma", "Frank", "Grace", "Henry")
THINGS = ("light", "lamp", "fan", "heater", "radio", "oven", "printer", "kettle")
VERBS = (("turns", "turned"), ("switches", "switched"))
ACTIONS = ("eats", "sees", "buys", "draws")
OBJECTS = ("banana", "apple", "pear", "plum", "egg", "onion", "lemon", "melon")
HELD_OUT = ("Alice", "Bob", "light", "banana", "apple")
STOP = "."
WORDS = (
    STOP, "The", "the", "is", "a", "an", *STATES, *PEOPLE, *THINGS, *(word for pair in VERBS for word in pair),
    *ACTIONS, *OBJECTS,
)  # fmt: skip
NUMBERS = {word: number for number, word in enumerate(WORDS)}


@dataclass(frozen=True)
class Cast:
    """Who writes and who distracts, what is turned, with which verb (present, participle), and the two objects."""

    writer: str
    other: str
    thing: str
    verb: tuple[str, str]
    action: str
    objects: tuple[str, str]

    @property
    def words(self) -> tuple[str, ...]:
        """The names and nouns of a story."""
        return self.writer, self.other, self.thing, *self.objects


PUBLISHED = Cast("Alice", "Bob", "light", ("turns", "turned"), "eats", ("banana", "apple"))


def cast(rng: np.random.Generator) -> Cast:
    """Return a random cast with at most one of the words that are held out."""
    while True:
        writer, other = rng.choice(PEOPLE, 2, replace=False).tolist()
        first, second = rng.choice(OBJECTS, 2, replace=False).tolist()
        thing, verb, action = (kinds[int(rng.integers(len(kinds)))] for kinds in (THINGS, VERBS, ACTIONS))
        found = Cast(writer, other, thing, verb, action, (first, second))  # type: ignore[arg-type]
        if sum(word in HELD_OUT for word in found.words) <= 1:
            return found


def told(tokens_T: Sequence[int] | NDArray[np.integer], who: Cast, asks: bool = False) -> str:
    """Return a flip-flop string as a story; one that ``asks`` ends where the last state would stand.

    >>> told([0, 4, 2, 3, 1, 4], PUBLISHED)
    'Alice turns the light on. Bob eats a banana. The light is turned on.'
    >>> told([0, 4, 2, 4, 1, 4], PUBLISHED, asks=True)
    'Alice turns the light on. Bob eats an apple. The light is turned'
    """
    clauses = []
    for instruction, symbol in zip(tokens_T[::2], tokens_T[1::2], strict=True):
        bit = int(symbol) - DATA
        if instruction == WRITE:
            clauses.append(f"{who.writer} {who.verb[0]} the {who.thing} {STATES[bit]}")
        elif instruction == READ:
            clauses.append(f"The {who.thing} is {who.verb[1]} {STATES[bit]}")
        else:
            what = who.objects[bit]
            clauses.append(f"{who.other} {who.action} {'an' if what[0] in 'aeiou' else 'a'} {what}")
    text = ". ".join(clauses) + STOP
    return text.rsplit(" ", 1)[0] if asks else text


def encode(text: str) -> list[int]:
    """Return the numbers of the words. Raises SandglassError for a word that is in no story.

    >>> encode("The lamp is turned on.") == [NUMBERS[w] for w in ("The", "lamp", "is", "turned", "on", ".")]
    True
    """
    words = text.replace(STOP, f" {STOP}").split()
    if unknown := [word for word in words if word not in NUMBERS]:
        raise SandglassError(f"no story has the word {unknown[0]!r}; known are: {' '.join(WORDS)}")
    return [NUMBERS[word] for word in words]


def sample(
    rng: np.random.Generator, n: int, lengths: tuple[int, int], p_ignore: tuple[float, float]
) -> list[list[int]]:
    """Return n stories as numbers of words: of strings of one even length, with shares of ignored pairs, that are uniform
    between two values each, writes and reads alike often, each with a cast of its own."""
    found = []
    pairs = int(rng.integers(lengths[0] // 2, lengths[1] // 2 + 1))
    for _ in range(n):
        ignored = rng.uniform(*p_ignore)
        half = (1 - ignored) / 2
        instructions = rng.choice(3, size=pairs, p=[half, half, ignored])
        instructions[0], instructions[-1] = WRITE, READ
        bits, memory = rng.integers(2, size=pairs), 0
        for s in range(pairs):
            if instructions[s] == WRITE:
                memory = bits[s]
            elif instructions[s] == READ:
                bits[s] = memory
        tokens = np.stack([instructions, bits + DATA], 1).reshape(-1)
        found.append(encode(told(tokens, cast(rng))))
    return found


def clauses(prompt: str) -> list[str]:
    """Return the sentences of a prompt that are complete, without their stops."""
    return [part.strip() for part in prompt.split(STOP)[:-1]]


def bit_of(clause: str, objects: tuple[str, str] = PUBLISHED.objects) -> int | None:
    """Return the data bit that a sentence shows: of a write or read its state, else which object it names."""
    last = clause.rsplit(" ", 1)[-1]
    return STATES.index(last) if last in STATES else objects.index(last) if last in objects else None
