"""How claims stand: what this build and the reference sets say of each together, the best evidence first.

Of each gate the strongest evidence counts: that of a reference set at a larger scale where one tests it, else that of
this build and of the sets at its scale. A claim some of whose gates nothing tests never shows as one that holds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import polars as pl

from pipeline.kit.verdicts import COUNTED, short, whole
from pipeline.references import reading
from pipeline.references.reading import Reference, Row
from pipeline.store import paths, tables
from schemas.claims import HOLDS, KINDS, NOT_TESTED, PARTLY, SCALES, UNDECIDED, VERDICTS, Claims

PLURAL = COUNTED | {PARTLY: "hold partly"}  # of gates; partly where two sets of a scale disagree


@dataclass(frozen=True)
class Line:
    """A claim: its number, the sentence that says it, where it is stated, its combined verdict, and the evidence.

    ``evidence`` is for instance ``quick: holds (all 3 gates) · paper: fails (all 2 gates) · 4 gates untested``.
    """

    claim: str
    statement: str
    source: str
    verdict: str
    evidence: str


def rows(study: str, references: list[Reference] | None = None, partial: bool = False) -> list[Row]:
    """Return the claims table of ``study``, claims in the order of their numbers, as `lines` takes it.

    Each row has its place in the table as ``row`` and what the sets say of its gate as ``references``. The sets are
    read unless they are given; with ``partial`` a table that is not here has no rows.

    Raises SandglassError if the table is damaged or, without ``partial``, missing.
    """
    path = paths.claims_path(study, "parquet")
    if partial and not path.is_file():
        return []
    sets = reading.load(study) if references is None else references
    return beside_sets(tables.read(path, Claims), sets)


def beside_sets(claims: pl.DataFrame, sets: list[Reference]) -> list[Row]:
    """Return the rows of a claims table as `rows` does."""
    gates = [
        row | {"row": number, "references": reading.beside(sets, row["claim"], row["gate"])}
        for number, row in enumerate(claims.iter_rows(named=True))
    ]
    return sorted(gates, key=lambda row: _by_number(row["claim"]))


def _by_number(claim: str) -> tuple[int, str]:
    """Return what sorts claims by their numbers: 2, 10, 10a."""
    letters = claim.lstrip("0123456789")
    return int(claim.removesuffix(letters)), letters


def lines(rows: list[Row]) -> list[Line]:
    """Return the line of every claim in the order of ``rows``, those of a claims table with their ``references``."""
    claims = dict.fromkeys(row["claim"] for row in rows)
    return [_line(claim, [row for row in rows if row["claim"] == claim]) for claim in claims]


def best(row: Row) -> str:
    """Return the verdict on a gate by the strongest evidence that there is of it."""
    by_scale = [_at_scale(row, scale) for scale in SCALES]
    tested = [verdict for verdict in by_scale if verdict != NOT_TESTED]
    return tested[-1] if tested else NOT_TESTED


def _at_scale(row: Row, scale: str) -> str:
    """Return the verdict on a gate by the evidence of a scale: what few models leave undecided, more may decide."""
    evidence = [
        result for result in (row, *(result for _, result in row["references"])) if result["scale"] == scale
    ]
    decided = [
        result.get("n") or 0 for result in evidence if result["verdict"] not in (UNDECIDED, NOT_TESTED)
    ]
    return whole(
        result["verdict"]
        for result in evidence
        if result["verdict"] != UNDECIDED or (result.get("n") or 0) >= max(decided, default=0)
    )


def counts(rows: list[Row]) -> list[tuple[str, list[tuple[str, int]]]]:
    """Return, of each kind of statement, how many gates have each verdict by the strongest evidence."""
    totals = Counter((row["kind"], best(row)) for row in rows)
    by_kind = [
        (kind, [(verdict, totals[kind, verdict]) for verdict in VERDICTS if totals[kind, verdict]])
        for kind in KINDS
    ]
    return [(kind, each) for kind, each in by_kind if each]


def _line(claim: str, rows: list[Row]) -> Line:
    together = [best(row) for row in rows]
    untested = together.count(NOT_TESTED)
    verdict = whole(together)
    parts = [text for scale in SCALES if (text := _at(scale, [_at_scale(row, scale) for row in rows]))]
    if untested:
        parts.append(f"{untested} gate{'s' if untested > 1 else ''} untested")
    sources = dict.fromkeys(row["source"] for row in rows)
    return Line(
        claim,
        rows[0]["statement"],
        "; ".join(sources),
        PARTLY if verdict == HOLDS and untested else verdict,
        " · ".join(parts),
    )


def _at(scale: str, verdicts: list[str]) -> str:
    """Return what the gates that were tested at a scale say; empty where none was."""
    tested = [verdict for verdict in verdicts if verdict != NOT_TESTED]
    if not tested:
        return ""
    totals = Counter(tested)
    if len(totals) == 1:
        return f"{scale}: {short(tested[0])} ({_gates(len(tested))})"
    words = ", ".join(
        f"{totals[each]} {short(each) if totals[each] == 1 else PLURAL[each]}"
        for each in VERDICTS
        if totals[each]
    )
    return f"{scale}: {short(whole(tested))} ({words})"


def _gates(count: int) -> str:
    return "1 gate" if count == 1 else f"all {count} gates"
