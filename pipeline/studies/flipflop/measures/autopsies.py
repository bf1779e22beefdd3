"""Why a trained model got a read wrong: where its heads looked, and what must go for the answer to be right.

Not in the source. A glitch is cut down to the string up to its read. Pairs are removed from it, never the first one,
the last write or the read itself, so that what is left is a string of the language with the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pipeline.languages import flipflop as language

Tokens = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Answer = Callable[[Tokens], NDArray[np.int64]]  # (N, T) inputs that end in r -> what is read there

EXHAUSTIVE = 2  # pairs up to which every choice is tried
MOST = 400  # choices that are tried at once


@dataclass(frozen=True)
class Mended:
    """How many pairs had to go, and whether fewer were tried in every way; None: nothing that was tried mends it."""

    removed: int | None
    exact: bool
    tried: int


def prefix(string: Tokens, pair: int) -> Tokens:
    """Return (2 pair + 1,) the string up to the r of its read at ``pair``."""
    return string[: 2 * pair + 1]


def removable(cut: Tokens, ignored_alone: bool) -> NDArray[np.int64]:
    """Return the pairs of a cut string that can go: ignored ones, or all but the first and the last write.

    >>> removable(np.array([0, 3, 2, 4, 0, 4, 1, 4, 2, 3, 1], np.uint8), True).tolist()
    [1, 4]
    """
    instructions = cut[0:-1:2]
    last = int(np.flatnonzero(instructions == language.WRITE)[-1])
    at = np.arange(1, len(instructions))
    free = instructions[1:] == language.IGNORE if ignored_alone else at != last
    return at[free]


def without(cut: Tokens, choices: list[tuple[int, ...]]) -> Tokens:
    """Return (N, T') the cut string without the pairs of each choice; all choices have one size."""
    kept = np.ones((len(choices), len(cut)), bool)
    for row, pairs in enumerate(choices):
        for pair in pairs:
            kept[row, 2 * pair : 2 * pair + 2] = False
    return np.broadcast_to(cut, kept.shape)[kept].reshape(len(choices), -1)


def mend(cut: Tokens, target: int, answer: Answer, ignored_alone: bool) -> Mended:
    """Return the smallest number of pairs whose removal makes the answer right.

    Up to `EXHAUSTIVE` pairs every choice is tried; beyond, runs of neighbouring candidates from one end or the other
    and of any place, which gives an upper bound.
    """
    free = removable(cut, ignored_alone).tolist()
    tried = 0
    for size in range(1, len(free) + 1):
        exact = size <= EXHAUSTIVE
        choices = list(combinations(free, size)) if exact else list(_runs(free, size))
        for start in range(0, len(choices), MOST):
            part = choices[start : start + MOST]
            tried += len(part)
            if (answer(without(cut, part)) == target).any():
                return Mended(size, size <= EXHAUSTIVE + 1, tried)
    return Mended(None, len(free) <= EXHAUSTIVE, tried)


def _runs(free: list[int], size: int) -> Iterator[tuple[int, ...]]:
    for start in range(len(free) - size + 1):
        yield tuple(free[start : start + size])


def kind(cut: Tokens, key: int, last: int, target: int) -> str:
    """Return what the token at ``key`` is, seen from the read that ends the cut string."""
    if key == len(cut) - 1:
        return "the read itself"
    pair = key // 2
    if pair == last:
        return "last write"
    instruction = int(cut[2 * pair])
    same = int(cut[2 * pair + 1]) - language.DATA == target
    if instruction == language.IGNORE:
        return "ignored, same bit" if same else "ignored, other bit"
    if instruction == language.READ:
        return "earlier read, same bit" if same else "earlier read, other bit"
    return "older write, same bit" if same else "older write, other bit"
