"""SYN-TC: documents that ask for test cases of a function and list them, some wrongly, the offline stand-in for the
experiments of Li 2025, section 3.2.2, with CodeLlama; nothing measured on them is a number of CodeLlama.

A document is a prompt and its completion:

    B def f ADD NL   assert f ( 3 , 9 ) == 1 2 NL ...   def q x t APPEND NL   test q x t NL
    assert q x t ( [ 0 , 4 ] , 1 ) == [ 0 , 4 , 1 ] NL ...   E

Lines are corrupted more often the longer their list, so that a language model learns to be wrong in a way that a low
temperature does not remove. What is asked for (`Reader`) is K right lines of APPEND, whatever the body says, and then
anything.

This module runs on the training side: it imports numpy only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SIGNS = ("PAD", "B", "E", "NL", "def", "test", "assert", "(", ")", "[", "]", ",", "==")
APPEND, PREPEND, POP, IGNORE = BODIES = ("APPEND", "PREPEND", "POP", "IGN")
SIGNS = (*_SIGNS, *BODIES, "ADD", *"0123456789", *"abcdefghijklmnopqrstuvwxyz")
ID = {sign: number for number, sign in enumerate(SIGNS)}
PAD, BEGIN, END, NEWLINE = range(4)
DEF, TEST, ASSERT, LEFT, RIGHT, OPEN, CLOSE, COMMA, EQUALS = range(4, 13)
ZERO, LETTER_A, LETTER_F = ID["0"], ID["a"], ID["f"]
LONGEST = 8  # digits of a list that counts as one
CARRIED = 4  # of a list that comes from the line before: documents have none that is longer

# Names with bodies of their own in training, which a test asks for with APPEND; those that verifiers are trained on.
RESERVED = ("pop", "add", "sub", "mul", "div", "max", "min", "std", "avg", "exp")
TRAINING = ("ovs", "cyk", "mcl", "heh", "fgu", "knk", "zmf")

# Corruptions of a right-hand side. Without a list to append to, the first is none.
FIRST, DROP, DIGIT, NAME = "v first", "drop the last", "another digit", "name f"


@dataclass(frozen=True)
class Corpus:
    """The law of documents. ``corruption`` is the probability for lists of 0, 1, 2 and at least 3 digits."""

    cases: int  # K
    demonstrations: int
    zipf: float
    corruption: tuple[float, float, float, float]
    first: float  # share of corruptions that put v first; of the rest all kinds are alike
    reserved: float
    append: float  # share of other names whose body is APPEND
    carried: float  # probability that a list is the right-hand side of the line before
    rambling: float

    @property
    def longest(self) -> int:
        """Return how many tokens a document has at most."""
        prompt = 5 + 11 * self.demonstrations + 11
        line = 5 + (2 * CARRIED + 1) + 4 + (2 * (CARRIED + 1) + 1) + 1
        return prompt + self.cases * line + 7


def text(tokens: Sequence[int]) -> str:
    """Return tokens as they are shown.

    >>> text(encode("B def f"))
    'B def f'
    """
    return " ".join(SIGNS[token] for token in tokens if token != PAD)


def encode(words: str) -> list[int]:
    """Return the ids of words between spaces. Raises KeyError for one that is none."""
    return [ID[word] for word in words.split()]


def prompt(name: str, body: str, sums: Sequence[tuple[int, int]]) -> list[int]:
    """Return a prompt that asks for cases of a function, behind demonstrations of addition.

    >>> text(prompt("qxt", "APPEND", [(3, 9)]))
    'B def f ADD NL assert f ( 3 , 9 ) == 1 2 NL def q x t APPEND NL test q x t NL'
    """
    tokens = [BEGIN, DEF, LETTER_F, ID["ADD"], NEWLINE]
    for i, j in sums:
        digits = [ZERO + int(digit) for digit in str(i + j)]
        tokens += [ASSERT, LETTER_F, LEFT, ZERO + i, COMMA, ZERO + j, RIGHT, EQUALS, *digits, NEWLINE]
    letters = [ID[letter] for letter in name]
    return [*tokens, DEF, *letters, ID[body], NEWLINE, TEST, *letters, NEWLINE]


def result(body: str, digits: list[int], value: int) -> list[int]:
    """Return the list that a body makes.

    >>> [result(body, [1, 2], 7) for body in BODIES]
    [[1, 2, 7], [7, 1, 2], [1], [1, 2]]
    """
    return {APPEND: [*digits, value], PREPEND: [value, *digits], POP: digits[:-1], IGNORE: digits}[body]


def line(name: Sequence[int], digits: list[int], value: int, right: list[int]) -> list[int]:
    """Return the tokens of a case.

    >>> text(line([ID["f"]], [1], 2, [1, 2]))
    'assert f ( [ 1 ] , 2 ) == [ 1 , 2 ] NL'
    """
    return [ASSERT, *name, LEFT, *_listed(digits), COMMA, ZERO + value, RIGHT, EQUALS, *_listed(right), NEWLINE]


def _listed(digits: list[int]) -> list[int]:
    tokens = [OPEN]
    for place, digit in enumerate(digits):
        tokens += [COMMA, ZERO + digit] if place else [ZERO + digit]
    return [*tokens, CLOSE]


def document(chances: NDArray[np.float64], corpus: Corpus) -> tuple[list[int], int]:
    """Return a document and the length of its prompt, from uniform numbers: `numbers` of them."""
    draw = iter(chances.tolist()).__next__
    weights = np.cumsum(_digit_law(corpus.zipf))[:-1].tolist()

    def digit() -> int:
        u = draw()
        return next((k for k, bound in enumerate(weights) if u < bound), 9)

    name, body = _name(draw, corpus)
    sums = [(1 + int(9 * draw()), 1 + int(9 * draw())) for _ in range(corpus.demonstrations)]
    tokens = prompt(name, body, sums)
    start, letters = len(tokens), [ID[letter] for letter in name]
    before: list[int] | None = None
    for _ in range(corpus.cases):
        carried, size = draw() < corpus.carried, int(4 * draw())
        fresh = [digit() for _ in range(3)][:size]
        digits = before if carried and before is not None and len(before) <= CARRIED else fresh
        value = digit()
        right, called = result(body, digits, value), letters
        wrong, kind, other = draw() < corpus.corruption[min(len(digits), 3)], draw(), draw()
        where, replaced = draw(), int(10 * draw())
        if wrong:
            how = FIRST if kind < corpus.first else (DROP, FIRST, DIGIT, NAME)[int(4 * other)]
            if how == FIRST:
                right = [value, *digits]
            elif how == DROP:
                right = right[:-1] if digits else [value]
            elif how == DIGIT and right:
                right = [*right]
                right[int(len(right) * where)] = replaced
            elif how == NAME:
                called = [LETTER_F]
        tokens += line(called, digits, value, right)
        before = right
    if draw() < corpus.rambling:
        name, body = _name(draw, corpus)
        tokens += [DEF, *(ID[letter] for letter in name), ID[body], NEWLINE]
    return [*tokens, END], start


def numbers(corpus: Corpus) -> int:
    """Return how many uniform numbers a document takes at most."""
    return 2 * 7 + 2 * corpus.demonstrations + 11 * corpus.cases + 1


def _name(draw: object, corpus: Corpus) -> tuple[str, str]:
    u = [draw() for _ in range(7)]  # type: ignore[operator]
    others = (PREPEND, POP, IGNORE)
    if u[0] < corpus.reserved:
        which = int(len(RESERVED) * u[1])
        return RESERVED[which], others[which % 3]
    name = "".join(chr(ord("a") + int(26 * each)) for each in u[1:4])
    while name in RESERVED:  # its last letter moves on
        name = name[:2] + chr(ord("a") + (ord(name[2]) - ord("a") + 1) % 26)
    return name, APPEND if u[4] < corpus.append else others[int(3 * u[5])]


def _digit_law(zipf: float) -> NDArray[np.float64]:
    weights = 1 / np.arange(1, 11) ** zipf
    return np.asarray(weights / weights.sum())


def sample(rng: np.random.Generator, n: int, corpus: Corpus) -> tuple[NDArray[np.int8], NDArray[np.int16]]:
    """Return documents (n, longest), filled up with PAD, and the lengths of their prompts (n,)."""
    chances = rng.random((n, numbers(corpus)))
    tokens, starts = np.full((n, corpus.longest), PAD, np.int8), np.zeros(n, np.int16)
    for row in range(n):
        written, starts[row] = document(chances[row], corpus)
        tokens[row, : len(written)] = written
    return tokens, starts


class Reader:
    """The process verifier (Definition 3.1.3) of what must be K right lines of APPEND, which it reads token by token.

    >>> reader = Reader("qxt", 1)
    >>> [reader.read(token) for token in encode("assert q x t ( [ 4 ] , 1 ) == [ 1")]
    [True, True, True, True, True, True, True, True, True, True, True, True, True, False]
    """

    def __init__(self, name: str, cases: int) -> None:
        self.head = [ASSERT, *(ID[letter] for letter in name), LEFT, OPEN]
        self.cases, self.done, self.value = cases, 0, -1
        self.found: list[tuple[tuple[int, ...], int]] = []  # list and value of the lines so far
        self._start()

    def _start(self) -> None:
        self.forced, self.digits, self.state = [*self.head], list[int](), "list"

    def read(self, token: int) -> bool:
        """Return whether the completion can still be right with this token; False for ever once it cannot."""
        if self.done == self.cases:
            return True
        if self.state == "wrong":
            return False
        if self.forced:
            if token != self.forced.pop(0):
                self.state = "wrong"
                return False
            if not self.forced and self.state == "right":
                self.done += 1
                self.found.append((tuple(self.digits), self.value))
                self._start()
            return True
        digit = ZERO <= token < ZERO + 10
        if self.state == "list" and token == CLOSE and not self.digits:
            self.forced, self.state = [COMMA], "value"
        elif self.state == "list" and digit:
            self.digits.append(token - ZERO)
            self.state = "listed"
        elif self.state == "listed" and token == COMMA and len(self.digits) < LONGEST:
            self.state = "more"
        elif self.state == "more" and digit:
            self.digits.append(token - ZERO)
            self.state = "listed"
        elif self.state == "listed" and token == CLOSE:
            self.forced, self.state = [COMMA], "value"
        elif self.state == "value" and digit:
            self.value = token - ZERO
            right = _listed([*self.digits, self.value])
            self.forced, self.state = [RIGHT, EQUALS, *right, NEWLINE], "right"
        else:
            self.state = "wrong"
            return False
        return True


def first_error(name: str, cases: int, completion: Sequence[int]) -> int:
    """Return the place of the first token after which a completion cannot be right any more; -1 for none.

    >>> first_error("abc", 1, encode("assert a b c ( [ ] , 1 ) == [ 2"))
    12
    """
    reader = Reader(name, cases)
    return next((place for place, token in enumerate(completion) if not reader.read(int(token))), -1)


def cases_of(name: str, cases: int, completion: Sequence[int]) -> list[tuple[tuple[int, ...], int, bool]]:
    """Return list, value and whether the right-hand side is right, of the first lines that are cases of ``name``.

    A line counts among these ``cases`` if it begins with ``assert``; one that is no case of ``name`` is wrong.

    >>> cases_of("abc", 2, encode("assert a b c ( [ ] , 1 ) == [ 1 ] NL assert a b c ( [ 2 ] , 1 ) == [ 1 , 2 ] NL E"))
    [((), 1, True), ((2,), 1, False)]
    """
    found: list[tuple[tuple[int, ...], int, bool]] = []
    rest = [int(token) for token in completion if token != PAD]
    while rest and len(found) < cases:
        size = rest.index(NEWLINE) + 1 if NEWLINE in rest else len(rest)
        own, rest = rest[:size], rest[size:]
        if own[0] != ASSERT:
            continue
        reader = Reader(name, 1)
        right = all(reader.read(token) for token in own) and reader.done == 1
        found.append((tuple(reader.digits) if not right else reader.found[0][0], reader.value, right))
    return found
