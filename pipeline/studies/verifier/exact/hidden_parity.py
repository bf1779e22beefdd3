"""How many queries find the prefix that an oracle hides: the game behind Theorem 3.1.1, by enumeration (Li
2025, 3.5.2).

A searcher asks the oracle of an unknown hidden prefix of D - 1 bits and has to name the only even string that
this oracle can give. What an answer tells follows from the oracle's laws alone: the searcher keeps the
prefixes under which each answer could come, by Bayes' rule.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from pipeline.languages.constrained import hidden_parity

ENUMERATED = 4  # D up to which all searchers are enumerated: 2^(2^(D - 1)) sets of prefixes


def closed_form(length: int) -> Fraction:
    """Return (N + 1)/2 - 1/N, N = 2^(D - 1): the expected number of queries where the last candidate may be
    inferred.

    >>> [str(closed_form(length)) for length in (2, 3, 4)]
    ['1', '9/4', '35/8']
    """
    n = 2 ** (length - 1)
    return Fraction(n + 1, 2) - Fraction(1, n)


def until_asked(length: int) -> Fraction:
    """Return (N + 1)/2: the expected number of queries until the hidden prefix is asked."""
    return Fraction(2 ** (length - 1) + 1, 2)


def bayes_value(length: int) -> Fraction:
    """Return the fewest expected queries of any deterministic searcher, the hidden prefix being uniform.

    By Yao's principle no randomised searcher needs fewer for every hidden prefix. All searchers are gone
    through that end: a state is the set of hidden prefixes that the answers allow, with equal weights; a
    query is any prefix of length 0 to D - 1. A query after which every answer leaves the same set costs a
    call for nothing and is left out. Raises ValueError for D above `ENUMERATED`.
    """
    if length > ENUMERATED:
        raise ValueError(f"searchers are enumerated up to D = {ENUMERATED}, got {length}")
    count = 2 ** (length - 1)
    oracles = [hidden_parity(length, hidden).laws for hidden in range(count)]

    @cache
    def value(known: frozenset[int]) -> Fraction:
        if len(known) == 1:
            return Fraction(0)
        best: Fraction | None = None
        for h in range(length):
            for query in range(2**h):
                after = _after(oracles, known, h, query)
                if any(rest == known for _, rest in after):
                    continue
                cost = 1 + sum((share * value(rest) for share, rest in after), Fraction(0))
                best = cost if best is None else min(best, cost)
        assert best is not None
        return best

    return value(frozenset(range(count)))


def informative(length: int) -> list[int]:
    """Return the lengths of queries whose answer can tell anything, for the uniform law over all hidden
    prefixes."""
    count = 2 ** (length - 1)
    oracles = [hidden_parity(length, hidden).laws for hidden in range(count)]
    told = []
    for h in range(length):
        laws = np.stack([oracle[h] for oracle in oracles])
        if (laws != laws[0]).any():
            told.append(h)
    return told


def _after(
    oracles: list[tuple[NDArray[np.float64], ...]], known: frozenset[int], h: int, query: int
) -> list[tuple[Fraction, frozenset[int]]]:
    """Return the probability of each answer, and what is known after it.

    The states have equal weights, and keep them: a query of full length is answered for certain under each
    hidden prefix, any shorter one alike under all.
    """
    after = []
    for answer in (0, 1):
        chances = {hidden: Fraction(float(oracles[hidden][h][query, answer])) for hidden in known}
        share = sum(chances.values(), Fraction(0)) / len(known)
        if share:
            after.append((share, frozenset(hidden for hidden, chance in chances.items() if chance)))
    return after


def queries(order: tuple[int, ...], hidden: int) -> int:
    """Return after how many queries the searcher that asks in this order knows ``hidden``: the last one is
    inferred."""
    return min(order.index(hidden) + 1, len(order) - 1)


def random_order(length: int) -> list[Fraction]:
    """Return the expected queries of the random order for each hidden prefix: over all N! orders for N up to
    4, else over the place of the hidden prefix, which is uniform."""
    count = 2 ** (length - 1)
    if count <= 4:
        orders = list(permutations(range(count)))
        return [Fraction(sum(queries(order, hidden) for order in orders), len(orders)) for hidden in range(count)]
    places = [min(place + 1, count - 1) for place in range(count)]
    return [Fraction(sum(places), count)] * count


def fixed_order(length: int) -> list[int]:
    """Return the queries of the searcher that asks in the order of numbers, for each hidden prefix."""
    count = 2 ** (length - 1)
    order = tuple(range(count))
    return [queries(order, hidden) for hidden in range(count)]
