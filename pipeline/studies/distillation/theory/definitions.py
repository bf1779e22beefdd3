"""Definitions whose printed form cannot be executed as meant: hierarchical parity, windows, levels, and a grid.

Liu 2024, sections 4.2.7.3 (decision tree), 4.2.3.1 (Definitions 25 and 26), 4.2.9 (equations 4.98 to 4.101), 4.2.8.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import judged, of, row
from pipeline.studies.distillation.constructions import ERRATUM, LIU, corrected, printed
from pipeline.studies.distillation.exact import relu
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.distillation.params import Definitions

TREE, WINDOW, LEVELS, CAUSAL, GRID = (
    LIU.format(place)
    for place in ("7.3, c(i, j)", "3.1.1, Definition 25", "3.1.1, Definition 26", "9, equations 4.100 and 4.101", "8.5")
)
PRINTED_GRID, HORIZON = (500, 1000, 15000, 2000), 4000  # section 4.2.8.5, and the steps in all of Figure 4.7
READ = 1500


def check(entry: Definitions, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on definitions."""
    rng = stream(seed, entry.study, key)
    made = [*_tree(entry), *_windows(entry), *_levels(entry, rng), *_causal(entry), *_grid()]
    return theory.rows(entry.study, key, TREE, judged("32", "all other checks", made))


def _counted(
    form: str,
    erratum: str,
    source: str,
    check: str,
    statement: str,
    size: str,
    count: float,
    detail: str = "",
    least: float = 1.0,
) -> dict[str, Any]:
    """Return a row on exceptions: the printed form has at least ``least``, the corrected one none."""
    if form == "printed":
        return row(check, statement, size, count, ">=", least, source=source, detail=detail, **printed(erratum))
    return row(check, statement, size, count, "<=", 0, source=source, detail=detail, **corrected(erratum))


def sign(i: int, j: int, depth: int, form: str) -> int:
    """Return c(i, j): which way the path to leaf ``i`` goes at its j-th node, counted from 1; +1 is right.

    As printed it is +1 for i >= 2^(depth - j); the form that holds asks the j-th binary digit of i, counted from the
    left, with leaves from 0.

    >>> [sign(4, j, 3, "corrected") for j in (1, 2, 3)], [sign(4, j, 3, "printed") for j in (1, 2, 3)]
    ([1, -1, -1], [1, 1, 1])
    """
    high = i >= 2 ** (depth - j) if form == "printed" else (i >> (depth - j)) & 1
    return 1 if high else -1


def leaves(depth: int, form: str, first: int = 0) -> np.ndarray:
    """Return how many leaves each of the 2^(K-1) sets of signs of nodes leads to, K = 2^depth; ``first`` numbers
    leaves.

    The path to a leaf is that of the tree (a heap), as the definition has it; only c(i, j) differs.
    """
    count = 2**depth
    nodes = relu.cube(count - 1)
    total = np.zeros(len(nodes), int)
    for leaf in range(count):
        right, v = np.ones(len(nodes), bool), 1
        for j in range(1, depth + 1):
            right &= nodes[:, v - 1] * sign(leaf + first, j, depth, form) > 0
            v = 2 * v + ((leaf >> (depth - j)) & 1)
        total += right
    return total


def _tree(entry: Definitions) -> Iterator[dict[str, Any]]:
    for form, first in (("printed", 0), ("printed", 1), ("corrected", 0)):
        wrong = [float((leaves(depth, form, first) != 1).sum()) for depth in entry.depths]
        name = (
            "c(i, j) = 1 iff i >= 2^(D-j)" if form == "printed" else "c(i, j) = 1 iff the j-th binary digit of i is 1"
        )
        counted = _counted(
            form,
            "tree-rule",
            TREE,
            f"tree.{form}" + (f"-from-{first}" if form == "printed" else ""),
            f"With {name}, leaves from {first}, every input belongs to one class: signs of nodes that belong to none "
            "or several",
            f"D = {', '.join(map(str, entry.depths))}, all signs",
            sum(wrong),
            ", ".join(f"{value:.0f}" for value in wrong),
        )
        yield counted | (of("19", "classes") if form == "corrected" else {})


def _windows(entry: Definitions) -> Iterator[dict[str, Any]]:
    """Yield how often a window of Definition 25 holds a position that does not exist, whatever positions are counted
    from.
    """
    for name, first, lowest, highest in (
        ("printed-from-0", 0, 0, 0),
        ("printed-from-1", 1, 0, 0),
        ("corrected", 0, 0, -1),
    ):
        outside = 0
        for length in range(1, entry.longest + 1):
            for n in range(1, length + 1):
                for i in range(first, length + first):
                    low, high = max(i - n // 2, lowest), min(i + (n - 1) // 2, length + highest)
                    outside += low < first or high > length + first - 1
        yield _counted(
            name.split("-")[0],
            "window-end",
            WINDOW,
            f"window.{name}",
            f"With positions from {first}, windows that are cut off to [0, {'h - 1' if highest else 'h'}] "
            "lie in the sentence: windows that do not",
            f"h to {entry.longest}, n to h",
            outside,
        )


def _levels(entry: Definitions, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield on random trees that levels counted from the leaves have the properties that the text uses, from the
    root not.

    A tree of depth D is the list of its symbols' spans by depth. Right boundaries of depth D are all tokens.
    """
    counts = {"printed": 0, "corrected": 0}
    for _ in range(entry.draws):
        ends = [np.arange(1)]  # right boundaries by depth, as places among the symbols of that depth
        for _ in range(entry.levels - 1):
            children = rng.integers(2, 4, size=len(ends[-1]))
            ends.append(np.arange(children.sum()))
            last = np.cumsum(children) - 1
            ends = [last[each] for each in ends[:-1]] + [ends[-1]]
        tokens = len(ends[-1])
        for form, by_level in (
            ("printed", ends),
            ("corrected", ends[::-1]),
        ):  # level i at distance i - 1 from root or leaf
            sets = [set(each.tolist()) for each in by_level]
            nested = all(outer >= inner for outer, inner in pairwise(sets))
            counts[form] += not (nested and len(sets[0]) == tokens)
    for form, start in (("printed", "root"), ("corrected", "leaves")):
        yield _counted(
            form,
            "level-count",
            LEVELS,
            f"levels.{form}",
            f"With levels counted from the {start}, boundaries of level 1 are all tokens, and those "
            "of higher levels are among those of lower ones: trees for which not",
            f"{entry.draws} random trees of {entry.levels} levels",
            counts[form],
            least=entry.draws,
        )


def _causal(entry: Definitions) -> Iterator[dict[str, Any]]:
    """Yield what windows of next-token prediction hold: the n - 1 tokens to the left of i (positions from 1)."""
    words = formula = own = shifted = 0
    for n in range(3, entry.longest):
        for i in range(n + 1, entry.longest + 1):
            window = {j for j in range(1, i) if i - n < j}  # within n - 1 to the left of i
            words += window != set(range(i - n + 2, i))  # the text's parenthesis
            formula += window != set(range(i - n + 1, i))  # equation 4.100
            own += i in {*range(1, i - n + 2), i}  # what equation 4.101 keeps: x_i, which is to be predicted
            kept = {*range(1, i - n + 1), i - 1}  # shifted by one: all up to i - n, and i - 1
            shifted += set(range(1, i)) - kept != window - {i - 1} or i in kept
    size = f"n from 3 and i to {entry.longest}"
    for check, statement, count, form, erratum in (
        (
            "causal.window.printed",
            "The window of n tokens is i - n + 2, ..., i - 1, as the parenthesis before equation "
            "4.100 says: windows for which not",
            words,
            "printed",
            "causal-window",
        ),
        (
            "causal.window.corrected",
            "It is i - n + 1, ..., i - 1, as equation 4.100 itself has it: windows for which not",
            formula,
            "corrected",
            "causal-window",
        ),
        (
            "causal.skip.printed",
            "What equation 4.101 keeps leaves out the token that is predicted: windows for which not",
            own,
            "printed",
            "equation-4.101",
        ),
        (
            "causal.skip.corrected",
            "With indices one less it does, and hides the window but for token i - 1: windows for which not",
            shifted,
            "corrected",
            "equation-4.101",
        ),
    ):
        yield _counted(form, erratum, CAUSAL, check, statement, size, count)


def _grid() -> Iterator[dict[str, Any]]:
    read = [READ if steps > HORIZON else steps for steps in PRINTED_GRID]
    for form, grid, comparison, bound in (("printed", PRINTED_GRID, ">=", 1), ("corrected", read, "<=", 0)):
        # Two printed numbers, whose order no run can change: no gates of their own.
        yield row(
            f"grid.{form}",
            f"The split T of (2, T)-distillation lies within its {HORIZON} steps: values that do not",
            ", ".join(map(str, grid)),
            sum(steps > HORIZON for steps in grid),
            comparison,
            bound,
            source=GRID,
            form=form,
            erratum=ERRATUM.format("grid"),
        )
