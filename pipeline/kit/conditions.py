"""Bars: what a number has to meet, and the same in words, so that no bar is typed twice."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass

NAMES = {"value": "value", "lo": "lower end", "hi": "upper end"}
WHAT = {name: what for what, name in NAMES.items()}
_RELATIONS = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}
_OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def defined(number: float | None) -> bool:
    """Return whether ``number`` is neither None nor NaN."""
    return number is not None and not math.isnan(number)


@dataclass(frozen=True)
class Condition:
    """``Condition("hi", "<", 0.5)``: the upper end of the interval is below 0.5."""

    what: str  # value, lo or hi
    comparison: str  # <, <=, > or >=
    bound: float

    def meets(self, number: float | None) -> bool:
        """Return whether ``number`` meets the bound; False where it is not defined."""
        return number is not None and defined(number) and bool(_OPERATORS[self.comparison](number, self.bound))

    @property
    def text(self) -> str:
        """Return the condition as the column ``bound`` shows it, for instance ``upper end < 0.5``."""
        return f"{self.name} {self.comparison} {self.bound:.4g}"

    @property
    def name(self) -> str:
        """Return the name of the number that is asked for, for instance ``upper end``."""
        return NAMES[self.what]


def parsed(bound: str) -> tuple[Condition, ...]:
    """Return the conditions of a column ``bound`` (`Condition.text`), with the four digits that it has of each bar.

    >>> parsed("value >= 0.8 and upper end < 0.5")
    (Condition(what='value', comparison='>=', bound=0.8), Condition(what='hi', comparison='<', bound=0.5))
    """
    words = (condition.rsplit(" ", 2) for condition in bound.split(" and ") if condition)
    return tuple(Condition(WHAT[name], comparison, float(bar)) for name, comparison, bar in words)


def in_words(conditions: Iterable[Condition]) -> str:
    """Return what the conditions ask for in words, so that no bar stands in a sentence beside the one that decides.

    >>> in_words(at_least(0.97)), in_words(within(1.0, 0.2)), in_words((Condition("hi", "<", 0),))
    ('at least 0.97', '0.8 to 1.2', 'below 0 with its whole interval')
    >>> in_words(within(3, 0)), in_words(within(0.6931, 1e-9))
    ('exactly 3', '0.6931 ± 1e-09')
    """
    words: list[str] = []
    asked = list(dict.fromkeys(conditions))
    low = [each for each in asked if each.what == "value" and each.comparison == ">="]
    high = [each for each in asked if each.what == "value" and each.comparison == "<="]
    if len(low) == len(high) == 1 and low[0].bound <= high[0].bound:
        words.append(_range(low[0].bound, high[0].bound))
        asked = [each for each in asked if each not in (low[0], high[0])]
    whole = {(each.comparison, each.bound) for each in asked if each.what != "value"}
    values = {(each.comparison, each.bound) for each in asked if each.what == "value"}
    for each in asked:
        with_interval = (each.comparison, each.bound) in whole
        if each.what == "value" or (each.comparison, each.bound) not in values:
            text = f"{_RELATIONS[each.comparison]} {each.bound:.4g}"
            words.append(f"{text} with its whole interval" if with_interval else text)
    return " and ".join(words)


def _range(low: float, high: float) -> str:
    ends = f"{low:.4g}", f"{high:.4g}"
    if ends[0] != ends[1]:
        return " to ".join(ends)
    return f"{(low + high) / 2:.4g} ± {(high - low) / 2:.1g}" if low < high else f"exactly {ends[0]}"


def within(center: float, tolerance: float) -> tuple[Condition, Condition]:
    """Return the conditions that the value lies within ``center`` ± ``tolerance``."""
    return Condition("value", ">=", center - tolerance), Condition("value", "<=", center + tolerance)


def above(bar: float) -> tuple[Condition, ...]:
    """Return the condition that the value is above ``bar``."""
    return (Condition("value", ">", bar),)


def at_least(bar: float) -> tuple[Condition, ...]:
    """Return the condition that the value is at least ``bar``."""
    return (Condition("value", ">=", bar),)


def below(bar: float) -> tuple[Condition, ...]:
    """Return the condition that the value is below ``bar``."""
    return (Condition("value", "<", bar),)


def at_most(bar: float) -> tuple[Condition, ...]:
    """Return the condition that the value is at most ``bar``."""
    return (Condition("value", "<=", bar),)
