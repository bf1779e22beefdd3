"""How claims stand: what this build and the reference sets say of each together, the best evidence first.

Of each gate the strongest evidence counts: that of a reference set at a larger scale where one answers the same
question, else that of this build and of the sets at its scale. A claim's gates on published statements decide how it
stands; the other kinds stand beside them (`pipeline.kit.verdicts.stands`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import polars as pl

from pipeline.kit.verdicts import UNTESTED, beside, by_kind, deciding, short, stands
from pipeline.references import reading
from pipeline.references.reading import Reference, Row
from pipeline.store import paths, tables
from schemas.claims import EXTERNAL, FAILS, HOLDS, KINDS, NOT_RUN, SCALES, STATED, TOO_FEW, UNDECIDED, VERDICTS, Claims

PLURAL = {HOLDS: "hold", FAILS: "fail"}  # of gates
MEASURED = ("verdict", "value", "lo", "hi", "n")  # of a gate: what makes two rows say the same

# What would decide a gate that is open.
MANY = 30  # models of an arm
FEWER_MODELS, MORE_MODELS = f"up to {MANY} models", f"more than {MANY}"
LARGER, OTHERS = f"scale {SCALES[-1]}", "other models"
WAYS = (FEWER_MODELS, MORE_MODELS, LARGER, OTHERS)


@dataclass(frozen=True)
class Line:
    """A claim: its number, the sentence that says it, where it is stated, how it stands, by how many of its gates, what
    the other kinds of gates say beside it, and the evidence.

    ``share`` is for instance ``2 of 7 gates``, and ``evidence`` ``quick: holds (all 3 gates) · 4 gates not run``.
    """

    claim: str
    statement: str
    source: str
    verdict: str
    share: str
    beside: str
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
        row | {"row": number, "references": reading.beside(sets, row)}
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
    verdict: str = strongest(row)[0]["verdict"]
    if verdict in UNTESTED:
        return TOO_FEW if TOO_FEW in [_at_scale(row, scale) for scale in SCALES] else NOT_RUN
    return verdict


def strongest(row: Row) -> tuple[Row, Reference | None]:
    """Return the row that is the strongest evidence of a gate, and the set it is from; None if it is of this build.

    That of the largest scale at which the gate was tested; where a smaller scale measured the very same, nothing there
    depends on the scale, and that of the smallest such scale. Where it was tested at none, the row of this build.
    """
    tested = [each for scale in SCALES if (each := _tested(row, scale)) is not None]
    if not tested:
        return row, None
    measured = [[each.get(name) for name in MEASURED] for each, _ in tested]
    return tested[-1] if tested[-1][0].get("value") is None else tested[measured.index(measured[-1])]


def measured_at(row: Row, scale: str) -> tuple[Row, Reference | None] | None:
    """Return the row that tells what a scale measured of a gate, and the set it is from; None if it measured nothing.

    Of what answers the gate's question that with most models. Without such, of what asked another: numbers that were
    held against another bar are told all the same, though no verdict rests on them.
    """
    others = [(result, reference) for reference, result in row["references"] if not result["same"]]
    for rows in (_evidence(row, scale), [each for each in others if each[0]["scale"] == scale]):
        measured = [each for each in rows if each[0].get("value") is not None]
        if measured:
            return max(measured, key=lambda each: each[0].get("n") or 0)
    return None


def _evidence(row: Row, scale: str) -> list[tuple[Row, Reference | None]]:
    """Return the rows on a gate at a scale, each with the set it is from."""
    sets = [(result, reference) for reference, result in row["references"] if result["same"]]
    return [each for each in [(row, None), *sets] if each[0]["scale"] == scale]


def _tested(row: Row, scale: str) -> tuple[Row, Reference | None] | None:
    """Return the row that counts at a scale, and the set it is from; None if the gate was not tested there.

    What few models leave undecided more may decide, and where two sets disagree, the one with more models counts; with
    as many, the one against the claim.
    """
    order = {FAILS: 3, HOLDS: 2, UNDECIDED: 1}
    tested = [each for each in _evidence(row, scale) if each[0]["verdict"] not in UNTESTED]
    return max(tested, key=lambda each: (each[0].get("n") or 0, order[each[0]["verdict"]]), default=None)


def _at_scale(row: Row, scale: str) -> str:
    """Return the verdict on a gate by the evidence of a scale."""
    tested = _tested(row, scale)
    if tested is not None:
        return str(tested[0]["verdict"])
    return TOO_FEW if any(found["verdict"] == TOO_FEW for found, _ in _evidence(row, scale)) else NOT_RUN


def decided(rows: list[Row]) -> tuple[int, int]:
    """Return how many published statements the strongest evidence decides, and how many there are.

    Those that need models or data which the repository does not hold are not counted.
    """
    asked = _asked(rows)
    return sum(best(row) in (HOLDS, FAILS) for row in asked), len(asked)


def _asked(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["kind"] == STATED and not row["reason"].startswith(EXTERNAL)]


def open_gates(rows: list[Row]) -> list[tuple[Row, str]]:
    """Return the gates of `decided` that are not, each as the row that tells most of it, and what would decide it.

    What is undecided, or on too few models, takes more of them, by the estimate ``replicas_needed``; where the measured
    value is so near to the bar that there is none, more than any. What was not run takes the published size, where it
    is about that, or else other models than those of builds and sets, as does what leaves all of them out, for instance
    for not having learned.
    """
    found = []
    for row in _asked(rows):
        told, _ = strongest(row)
        if told["verdict"] in (HOLDS, FAILS):
            continue
        if told["verdict"] in UNTESTED:
            tried = [each for scale in SCALES for each, _ in _evidence(row, scale) if each["verdict"] == TOO_FEW]
            told = max(tried, key=lambda each: each.get("n") or 0, default=told)
        if told["verdict"] == NOT_RUN and told["scale_needed"] == SCALES[-1]:
            way = LARGER
        elif told["verdict"] == NOT_RUN or not told.get("n"):
            way = OTHERS
        else:
            way = FEWER_MODELS if (told.get("replicas_needed") or MANY + 1) <= MANY else MORE_MODELS
        found.append((row | told, way))
    return found


def counts(rows: list[Row]) -> list[tuple[str, list[tuple[str, int]]]]:
    """Return, of each kind of statement, how many gates have each verdict by the strongest evidence."""
    totals = Counter((row["kind"], best(row)) for row in rows)
    each_kind = [
        (kind, [(verdict, totals[kind, verdict]) for verdict in VERDICTS if totals[kind, verdict]]) for kind in KINDS
    ]
    return [(kind, each) for kind, each in each_kind if each]


def _line(claim: str, rows: list[Row]) -> Line:
    gates = [(row["kind"], best(row)) for row in rows]
    verdict, share = stands(gates)
    kind = deciding(by_kind(gates))
    judging = [row for row in rows if row["kind"] == kind]
    parts = [text for scale in SCALES if (text := _at(scale, [_at_scale(row, scale) for row in judging]))]
    untested = Counter(found for row in judging if (found := best(row)) in UNTESTED)
    parts += [f"{_gates(untested[each])} {_UNTESTED[each]}" for each in UNTESTED if untested[each]]
    sources = dict.fromkeys(row["source"] for row in rows)
    return Line(claim, rows[0]["statement"], "; ".join(sources), verdict, share, beside(gates), " · ".join(parts))


_UNTESTED = {TOO_FEW: "on too few models", NOT_RUN: "not run"}


def _at(scale: str, verdicts: list[str]) -> str:
    """Return what the gates that were tested at a scale say; empty where none was."""
    tested = [verdict for verdict in verdicts if verdict not in UNTESTED]
    totals = Counter(tested)
    if not tested:
        return ""
    if len(totals) == 1:
        every = "all " if len(tested) > 1 else ""
        return f"{scale}: {short(tested[0])} ({every}{_gates(len(tested))})"
    return f"{scale}: " + ", ".join(
        f"{totals[each]} {short(each) if totals[each] == 1 else PLURAL.get(each, short(each))}"
        for each in VERDICTS
        if totals[each]
    )


def _gates(count: int) -> str:
    return "1 gate" if count == 1 else f"{count} gates"
