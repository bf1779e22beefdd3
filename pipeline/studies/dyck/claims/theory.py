"""Claims 1, 2 and 15 to 20: the sampler, random attention, executable theory.

Theory checks say which claim they decide, and as which part of it: a gate for each part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from pipeline.errors import SandglassError
from pipeline.kit.conditions import at_most
from pipeline.kit.evidence import check_gate, largest
from pipeline.kit.verdicts import Gate
from schemas.claims import OWN, STATED

CLAIMS = ("1", "2", "15", "16", "17", "18", "19", "20")
# How parts begin that the paper does not state: it gives no such numbers.
OURS = (
    "law of prefixes",
    "depth 0",
    "random causal maps",
    "most matrices",
    "maps without mask",
    "variation, sigma",
    "masks",
)
QUOTED = "published value"  # how parts begin whose bound is a number that the paper prints
SLOPE = "slope, "  # how parts begin that have an interval, in two rows of the same group


def gates(theory: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates on theory checks. Raises SandglassError if a claim has none."""
    checks = {row["check"]: row for row in theory.iter_rows(named=True)}
    for claim in CLAIMS:
        rows = theory.filter(claim=claim)
        if not rows.height:
            raise SandglassError(f"claim {claim}: no theory check belongs to it")
        for (part,), own in rows.group_by("part", maintain_order=True):
            yield _gate(theory, checks, claim, str(part), own)


def _gate(
    theory: pl.DataFrame, checks: dict[str, dict[str, Any]], claim: str, part: str, rows: pl.DataFrame
) -> Gate:
    """Return the gate of one part. Where several instances of one statement were checked, their largest decides."""
    row = rows.row(0, named=True)
    published = row["bound"] if part.startswith(QUOTED) else None
    kind = OWN if part.startswith(OURS) else STATED
    gate = check_gate(checks, claim, part, row["check"], row["source"], published, kind)
    if rows.height > 1:
        measured, _ = largest(rows, "measured", "")
        found = replace(measured, n=rows.height) if measured else None
        return replace(gate, measured=found, conditions=at_most(rows["bound"].min()))  # type: ignore[arg-type]
    if part.startswith(SLOPE) and gate.measured is not None:
        lo, hi = (
            theory.filter(group=f"{end} end of the {row['group']}")["measured"].item()
            for end in ("lower", "upper")
        )
        return replace(gate, measured=replace(gate.measured, lo=lo, hi=hi))
    return gate
