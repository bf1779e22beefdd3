"""DYCK-TH10: in the layer of GPT a balanced signal vanishes with the length (Wen et al. 2023, appendix C.7, eq. 52)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.languages import dyck
from pipeline.studies.dyck.constructions import Language, Solver, exact_solvers, uniform_scores
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.dyck.params import ResidualOrderCheck

LANGUAGE = Language(2, 4)
VARIES_BELOW = 0.05
NORMAL = "blocks.0.ln"

SOURCE = "Wen et al. 2023, appendix C.7, eq. (52)"


def check(entry: ResidualOrderCheck, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory`: an open of either type and closed pairs, of each of
    ``entry.lengths``."""
    balanced = uniform_scores(LANGUAGE)
    checks = [
        *_signal(exact_solvers(LANGUAGE, balanced, block="eq52"), entry.lengths),
        *_kept(exact_solvers(LANGUAGE, balanced), entry.lengths),
    ]
    return theory.rows("dyck", theory_id, SOURCE, checks)


def prefixes(length: int) -> NDArray[np.int8]:
    """Return two prefixes (2, N), N odd: ``[`` or ``(``, then pairs ``()``. They differ in the only unmatched open."""
    return dyck.parse(*(first + "()" * (length // 2) for first in "[("))


def separation(solver: Solver, length: int) -> float:
    """Return the distance of what g reads of the two prefixes, at their last token."""
    tokens = prefixes(length)
    _, recorded = solver.run(tokens, [NORMAL])
    first, second = recorded[NORMAL][0, :, -1]
    return float(np.linalg.norm(first - second))


def _signal(solver: Solver, lengths: list[int]) -> Iterator[dict[str, Any]]:
    """Yield rows on the layer (52): with one unmatched open among N + 1 keys, a = b/(N+1), and LN(a + X)
    divides by about |P e|."""
    width = solver.ensemble.spec.width
    scaled = {}
    for n in lengths:
        scaled[n] = n * separation(solver, n)
        share = 1 / (n + 1)
        yield {
            "check": f"vanishing-{n}",
            "statement": "Under (52) with uniform, balanced attention the two prefixes come as close as 1/N: "
            "N times their distance",
            "size": f"k={LANGUAGE.k}, D={LANGUAGE.depth}, N={n}",
            "measured": scaled[n],
            "comparison": "within",
            "bound": n * np.sqrt(2) * share / np.sqrt(1 - 1 / width + share**2),
            "tolerance": 1e-9,
            "detail": f"distance {scaled[n] / n:.3g}",
        }
    if len(scaled) > 1:
        first, second = sorted(scaled)[-2:]
        yield {
            "check": "vanishing-rate",
            "claim": "20",
            "part": "N times distance",
            "statement": f"N times the distance has settled: relative change between N={first} and {second}",
            "size": f"k={LANGUAGE.k}, D={LANGUAGE.depth}",
            "measured": abs(scaled[second] / scaled[first] - 1),
            "comparison": "<=",
            "bound": VARIES_BELOW,
        }


def _kept(solver: Solver, lengths: list[int]) -> Iterator[dict[str, Any]]:
    """Yield rows on the layer (6), where the attention output is normalised by itself."""
    for n in lengths:
        yield {
            "check": f"kept-{n}",
            "statement": "Under (6) the same two prefixes stay as far apart as two orthogonal unit vectors",
            "source": "Wen et al. 2023, eq. (6) and appendix C.7",
            "size": f"k={LANGUAGE.k}, D={LANGUAGE.depth}, N={n}",
            "measured": separation(solver, n),
            "comparison": "within",
            "bound": np.sqrt(2),
            "tolerance": 1e-9,
        }
