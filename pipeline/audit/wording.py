"""The numbers in a text, apart from its words: two sentences are compared as words and as numbers.

What counts as a number is what was measured or counted: ``0.21``, ``−4.7e-3``, ``12 %``, ``19,684``. A part of a
name is none (``dyck-k2-d4``, ``2.1.3``, ``M1``), nor is the number of something in a paper (``Figure 10``, ``section
4.1 to 4.3``): these are words. Three of them in the form of ``0.21 [−0.55, 0.73]`` or ``0.21 (−0.55 to 0.73)`` are a
value with its interval.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property

# Up to this a number of which nothing else is known is what rounding leaves of zero: a million operations on doubles.
RESIDUAL = 1e-10

# Digits that a double holds of a whole number.
LONGEST = 15

_MARK = "\0"  # stands for a number among the words
# A comma belongs to a word where three digits follow it: 19,684.
_WORD = re.compile(r"(?:[^\s()\[\]{}:;,=<>≤≥≈±~|/\"“”–—×]|(?<=\d),(?=\d{3}(?!\d)))+")
_NUMBER = re.compile(
    r"(?P<sign>[-+−]?)(?P<digits>\d{1,3}(?:,\d{3})+|\d+)(?P<decimals>\.\d+)?(?:[eE](?P<power>[-+−]?\d{1,4}))?"
    r"(?P<percent>%?)"
)
_PLACE = re.compile(
    r"(algorithm|appendix|assumption|chapter|claim|conjecture|corollary|definition|eq|equation|erratum|errata|example"
    r"|fig|figure|item|lemma|part|paragraph|proposition|remark|sec|section|table|theorem|§+)(s|e?s\.)?",
    re.IGNORECASE,
)
_AND = {"and", "or", "to"}
_INTERVAL = re.compile(rf"{_MARK} ?%? ?(?:\[{_MARK},? ?{_MARK}\]|\({_MARK} to {_MARK}\))")


@dataclass(frozen=True)
class Number:
    """A number as it is printed: ``unit`` is one of its last place; ``whole`` says that it may be a count."""

    value: float
    unit: float
    whole: bool

    def prints(self, value: float) -> bool:
        """Return whether ``value``, or a hundred times it, may have been printed like this."""
        half = self.unit / 2 * (1 + 1e-9)
        return any(abs(scale * value - self.value) <= half + 1e-12 * abs(self.value) for scale in (1, 100))

    def share(self, other: Number) -> float:
        """Return how far two numbers are apart, as a share of the larger, beyond what printing rounds off.

        Each stands for all that is printed like it: ``0.60`` and ``0.61`` may be equal. Two counts are apart by any
        step.
        """
        if self.value == other.value or max(abs(self.value), abs(other.value)) <= RESIDUAL:
            return 0.0
        larger = max(abs(self.value), abs(other.value))
        if self.whole and other.whole:
            return abs(self.value - other.value) / larger
        unit = min(self.unit, other.unit)  # of the two: zeros at the end may have been left out, as in 88 for 88.0
        return max(0.0, abs(self.value - other.value) - unit * (1 + 1e-9)) / larger


@dataclass(frozen=True)
class Wording:
    """A text as its ``words``, with a mark for each number, and its ``numbers`` in order, as they are ``printed``."""

    words: str
    numbers: tuple[Number, ...]
    printed: tuple[str, ...]

    @cached_property
    def intervals(self) -> list[tuple[int, int, int]]:
        """Which numbers are a value with the lower and the upper end of its interval."""
        firsts = [self.words.count(_MARK, 0, hit.start()) for hit in _INTERVAL.finditer(self.words)]
        threes = [(first, first + 1, first + 2) for first in firsts]
        return [three for three in threes if self.numbers[three[1]].value <= self.numbers[three[2]].value]


def read(text: str) -> Wording:
    """Take the numbers out of ``text``."""
    words, numbers, printed = [], [], []
    end = 0
    place = placed = False  # whether the next number is that of something in a paper, and whether the last one was
    for hit in _WORD.finditer(text):
        between, end = text[end : hit.start()], hit.end()
        if between.strip(" (\N{NO-BREAK SPACE}"):
            place = placed = False
        word = hit[0].rstrip(".!?")
        number = None if place else _number(word, percent=text[end:].lstrip(" \N{NO-BREAK SPACE}")[:1] == "%")
        place, placed = bool(_PLACE.fullmatch(word)) or (placed and word in _AND), place
        words += [between, hit[0]] if number is None else [between, _MARK, hit[0][len(word) :]]
        if number:
            numbers.append(number)
            printed.append(word)
    words.append(text[end:])
    return Wording("".join(words), tuple(numbers), tuple(printed))


def _number(word: str, *, percent: bool) -> Number | None:
    """Return ``word`` as a number; None if it is none, or one that a double does not hold."""
    hit = _NUMBER.fullmatch(word)
    if hit is None:
        return None
    sign = "-" if hit["sign"] in ("-", "−") else ""
    digits, decimals = hit["digits"].replace(",", ""), hit["decimals"] or ""
    power = int((hit["power"] or "0").replace("−", "-"))
    value = float(f"{sign}{digits}{decimals}e{power}")
    whole = not (decimals or hit["power"] or hit["percent"] or percent)
    if not math.isfinite(value) or (whole and len(digits) > LONGEST):
        return None
    return Number(value, float(f"1e{power - len(decimals[1:])}"), whole)
