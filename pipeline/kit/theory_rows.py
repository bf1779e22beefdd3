"""Rows of theory checks as code of a study makes them; `schemas.theory.rows` makes the table, and says what holds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

ROUNDING = 1e-12


def row(
    check: str, statement: str, size: str, measured: float, comparison: str, bound: float, **more: Any
) -> dict[str, Any]:
    """Return a row; ``more`` are further columns: source, tolerance, detail, claim and part, erratum and form."""
    return {
        "check": check,
        "statement": statement,
        "size": size,
        "measured": float(measured),
        "comparison": comparison,
        "bound": float(bound),
        **more,
    }


def of(claim: str, part: str) -> dict[str, str]:
    """Return the columns by which a row decides a part of a claim."""
    return {"claim": claim, "part": part}


def judged(claim: str, part: str, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows as such that decide a part of a claim; one that names its own is left as it is."""
    return [{**of(claim, part), **each} for each in rows]


def exceptions(bad: ArrayLike, *outputs: ArrayLike) -> float:
    """Return how often ``bad`` is true; NaN if one of the outputs that it was found from is NaN."""
    broken = any(bool(np.isnan(np.asarray(output, float)).any()) for output in outputs)
    return math.nan if broken else float(np.sum(bad))


@dataclass(frozen=True)
class Rows:
    """Rows on one text: ``text`` makes a source of a place in it, ``study`` begins the ids of its errata.

    >>> rows = Rows("Li 2025, {}", "parallel")
    >>> rows.zero("gap", "Gap minus 1", "N = 3", 0, "Eq. 4.26")["source"], rows.printed("eq-4-26")["erratum"]
    ('Li 2025, Eq. 4.26', 'parallel-eq-4-26')
    """

    text: str
    study: str

    def row(
        self,
        check: str,
        statement: str,
        size: str,
        measured: float,
        comparison: str,
        bound: float,
        place: str,
        **more: Any,
    ) -> dict[str, Any]:
        """Return a row on what stands at ``place``."""
        return row(check, statement, size, measured, comparison, bound, source=self.text.format(place), **more)

    def zero(self, check: str, statement: str, size: str, measured: float, place: str, **more: Any) -> dict[str, Any]:
        """Return a row on a difference that must be 0 up to rounding or a ``bound``, or on a count that must be 0."""
        return self.row(check, statement, size, measured, "<=", more.pop("bound", ROUNDING), place, **more)

    def near(
        self,
        check: str,
        statement: str,
        size: str,
        measured: float,
        expected: float,
        tolerance: float,
        place: str,
        **more: Any,
    ) -> dict[str, Any]:
        """Return a row on a number that is known."""
        return self.row(check, statement, size, measured, "within", expected, place, tolerance=tolerance, **more)

    def printed(self, erratum: str) -> dict[str, str]:
        """Return the columns of a row on the printed form of what is wrong."""
        return {"erratum": f"{self.study}-{erratum}", "form": "printed"}

    def corrected(self, erratum: str) -> dict[str, str]:
        """Return the columns of a row on a form that holds."""
        return {"erratum": f"{self.study}-{erratum}", "form": "corrected"}
