"""Rows of theory checks: what they share (`schemas.theory.rows`)."""

from __future__ import annotations

from typing import Any

SOURCE = "Li 2025, {}"

# Parts of claims that theory checks decide, and gates count (`claims.exact`)
POWERS = "expected calls"
BOUND, STUCK = "fewest queries", "a verifier of A alone"
PROGRAM, GREEDY = "dynamic program", "superincreasing weights"
LAW = "the law of tokenwise rejection"
COIN = "closed forms"
LEAVES, SPEED, OUTPUTS = "leaves for any values", "conductance and gap", "a node of the path at random"
LAZY, COUNTS = "laziness", "the walk that counts solutions"
POINTWISE = "bound on every leaf"
SHARED, SPREADS, ROWS = "cells in two tables", "what spreads are", "rows under a wrong setting"
WORDS, PROMPTS = "what captions and text say", "numbers of prompts"


def row(
    check: str,
    statement: str,
    size: str,
    measured: float,
    comparison: str,
    bound: float,
    claim: str,
    part: str,
    source: str,
    **more: Any,
) -> dict[str, Any]:
    """Return a row that decides ``part`` of a claim; ``source`` is a place of the thesis."""
    return {
        "check": check,
        "statement": statement,
        "size": size,
        "measured": float(measured),
        "comparison": comparison,
        "bound": float(bound),
        "claim": claim,
        "part": part,
        "source": SOURCE.format(source),
        **more,
    }


def zero(
    check: str, statement: str, size: str, measured: float, claim: str, part: str, source: str, **more: Any
) -> dict:
    """Return a row on a difference that must be 0 up to rounding, or on a count that must be 0."""
    return row(check, statement, size, measured, "<=", more.pop("bound", 1e-12), claim, part, source, **more)
