"""Rows of theory checks, each of which decides a part of a claim."""

from __future__ import annotations

from typing import Any

from pipeline.kit.theory_rows import Rows, of

THESIS = Rows("Li 2025, {}", "verifier")

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
    place: str,
    **more: Any,
) -> dict[str, Any]:
    """Return a row that decides ``part`` of a claim, on what stands at ``place`` of the thesis."""
    return THESIS.row(check, statement, size, measured, comparison, bound, place, **of(claim, part), **more)


def zero(
    check: str, statement: str, size: str, measured: float, claim: str, part: str, place: str, **more: Any
) -> dict[str, Any]:
    """Return a row on a difference that must be 0 up to rounding, or on a count that must be 0."""
    return THESIS.zero(check, statement, size, measured, place, **of(claim, part), **more)
