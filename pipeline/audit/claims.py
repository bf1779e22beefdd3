"""The commands `claims` and `show`: how claims stand, and one claim with the evidence for its gates.

Both combine this build with the reference sets as the report does (`pipeline.references.standing`).
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pipeline import params
from pipeline.engine import graph
from pipeline.errors import SandglassError, meant
from pipeline.kit.verdicts import short
from pipeline.references import standing
from pipeline.references.reading import Row
from pipeline.references.standing import Line
from schemas.claims import (
    CEILING,
    CONTRADICTED,
    FLOOR,
    HOLDS,
    IN_PART,
    INSIDE,
    NO_INTERVAL,
    NOT_RUN,
    OUTSIDE,
    STATES,
    TOO_FEW,
    UNDECIDED,
)

STYLES = {HOLDS: "green", UNDECIDED: "yellow", IN_PART: "red", CONTRADICTED: "red", TOO_FEW: "yellow", NOT_RUN: "dim"}
SIZES_IN_WORDS = {
    INSIDE: "the published value lies inside our interval",
    OUTSIDE: "the published value lies outside our interval",
    NO_INTERVAL: "no interval to compare the published value with",
}


def show_all(study: str | None, verdict: str | None, *, as_json: bool) -> None:
    """Print every claim in a line: its number, how it stands, its sentence, and the evidence.

    Raises SandglassError if ``study`` or ``verdict`` is not known, or no claims are here.
    """
    criterion = None if verdict is None else _verdict(verdict)
    by_study = {key: standing.lines(rows) for key, rows in _read(study).items()}
    shown = {key: [line for line in lines if criterion in (None, line.verdict)] for key, lines in by_study.items()}
    if as_json:
        print(json.dumps({key: list(map(asdict, lines)) for key, lines in shown.items()}, indent=1))
        return
    console = Console(highlight=False)
    for key, lines in shown.items():
        if lines:
            console.print(_overview(key, lines))
    console.print("one claim with its gates: python -m pipeline show STUDY:NUMBER")


def _read(study: str | None) -> dict[str, list[Row]]:
    """Return the gates of a study, or of all. Raises SandglassError as `show_all` does."""
    loaded = params.load()
    if study is not None:
        graph.check_study(study, loaded, "claims: ")
    gates = {key: standing.rows(key, partial=True) for key in ([study] if study else loaded.studies)}
    if not any(gates.values()):
        raise SandglassError(
            "no claims are here: `dvc pull --allow-missing` fetches the published ones, `make reproduce` builds them"
        )
    return gates


def show_open(study: str | None, *, as_json: bool) -> None:
    """Print the published statements that no evidence decides yet, what was measured, and what would decide each.

    Raises SandglassError as `show_all` does.
    """
    gates = {key: standing.open_gates(rows) for key, rows in _read(study).items()}
    if as_json:
        plain = {key: [_plain(row) | {"decided_by": way} for row, way in each] for key, each in gates.items()}
        print(json.dumps(plain, indent=1))
        return
    console = Console(highlight=False)
    for key, each in gates.items():
        if not each:
            console.print(f"{key}: all that it can test are decided")
            continue
        table = _table(f"open of {key}", "what would decide it")
        for row, way in each:
            evidence = escape(f"{row['scale']}: {measured(row)}")
            table.add_row(row["claim"], way, f"{escape(row['predicate'])}\n[dim]{evidence}[/]")
        console.print(table)
    console.print("models of an arm: replicas in params/<study>/runs.yaml; a gate with all evidence: show STUDY:NUMBER")


def _overview(study: str, lines: list[Line]) -> Table:
    """Return the claims of a study as a table."""
    table = _table(f"claims of {study}", "stands")
    for line in lines:
        style = STYLES[line.verdict]
        evidence = " · ".join(part for part in (line.evidence, line.beside) if part)
        sentence = f"{escape(line.statement)}\n[dim]{escape(evidence)}[/]"
        table.add_row(line.claim, f"[{style}]{short(line.verdict)}[/]", sentence)
    return table


def _table(title: str, second: str) -> Table:
    """Return a table without rows: the number of a claim, a column called ``second``, and words."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in ("claim", second, ""):
        table.add_column(column, justify="right" if column == "claim" else "left")
    return table


def show(name: str, *, as_json: bool) -> None:
    """Print the claim ``name``, for instance ``dyck:5``: its sentence, and every gate with what was measured.

    Raises SandglassError if there is no such claim, or the claims of its study are not here.
    """
    study, _, claim = name.rpartition(":")
    loaded = params.load()
    studies = [study] if study else loaded.studies
    if name in loaded.studies:
        raise SandglassError(
            f"show {name}: shows one claim, for instance {name}:1; all of {name}: python -m pipeline claims {name}"
        )
    if study:
        graph.check_study(study, loaded, f"show {name}: ")
    gates = {key: standing.rows(key, partial=True) for key in studies}
    having = [key for key, rows in gates.items() if any(row["claim"] == claim for row in rows)]
    if not any(gates.values()):
        raise SandglassError(f"show {name}: the claims are not here: dvc pull --allow-missing, or make reproduce")
    if len(having) != 1:
        numbers = [f"{key}:{each}" for key, rows in gates.items() for each in dict.fromkeys(r["claim"] for r in rows)]
        which = ", ".join(f"{key}:{claim}" for key in having)
        raise SandglassError(
            f"show {name}: several studies have it; say which: {which}"
            if having
            else f"show {name}: no such claim; {meant(name, numbers, 'python -m pipeline claims')}"
        )
    rows = [row for row in gates[having[0]] if row["claim"] == claim]
    (line,) = standing.lines(rows)
    if as_json:
        print(json.dumps(asdict(line) | {"study": having[0], "gates": list(map(_plain, rows))}, indent=1))
    else:
        _print(having[0], line, rows)


def _print(study: str, line: Line, rows: list[Row]) -> None:
    console = Console(highlight=False)
    console.print(f"[bold]{study}:{line.claim}[/] {escape(line.statement)}", soft_wrap=True)
    how = f"{line.verdict}, {line.share}" if line.share else line.verdict
    evidence = "; ".join(part for part in (line.evidence, line.beside) if part)
    console.print(f"[{STYLES[line.verdict]}]{how}[/] ({escape(evidence)})", soft_wrap=True)
    console.print(f"source: {escape(line.source)}")
    for row in rows:
        console.print(f"\n[bold]{escape(row['gate'])}[/] ({row['kind']}): {escape(row['predicate'])}", soft_wrap=True)
        console.print(f"  asks: {escape(row['bound']) or 'nothing that can be tested here'}")
        if row["published"] is not None:
            console.print(f"  published: {escape(published(row))}")
        console.print(f"  {row['scale']}, this build: {escape(measured(row))}", soft_wrap=True)
        for reference, other in row["references"]:
            text = f"{other['scale']}, reference set {reference.name}: {measured(other)}"
            asked = "" if other["same"] else f"; it asked another question, and does not count: {other['predicate']}"
            console.print(f"  {escape(text + asked)}", soft_wrap=True)
    console.print(f"\nwhere it comes from: python -m pipeline trace {study}:{line.claim}")


def measured(row: Row) -> str:
    """Return what a row of a claims table found, in words: value, interval, replicas, verdict and its reason."""
    parts = []
    if row["value"] is not None:
        interval = "" if row["lo"] is None or row["hi"] is None else f" [{row['lo']:.4g}, {row['hi']:.4g}]"
        kind = f", {row['interval']}" if row["interval"] and interval else ""
        count = f"{kind}, n = {row['n']}" if row["n"] is not None else kind
        parts.append(f"{row['value']:.4g}{interval}{count}:")
    parts.append(f"{row['verdict']} ({row['reason']})")
    if row["replicas_needed"] is not None:
        parts.append(f"about {row['replicas_needed']:,} would decide it")
    if row["size"] in SIZES_IN_WORDS:
        parts.append(SIZES_IN_WORDS[row["size"]])
    return " ".join(parts[:2]) + "".join(f"; {part}" for part in parts[2:])


def published(row: Row) -> str:
    """Return the published number of a row with its form: ``at least 0.97``, ``0.8 = 2.27 / 2.85``, ``0.75 to 1``."""
    form = f"{row['published_form']} " if row["published_form"] in (FLOOR, CEILING) else ""
    high = "" if row["published_high"] is None else f" to {row['published_high']:.4g}"
    derived = f" = {row['derivation']}" if row["derivation"] else ""
    return f"{form}{row['published']:.4g}{high}{derived}"


def _plain(row: Row) -> dict[str, Any]:
    """Return a row for JSON, with the rows of the reference sets in place of the sets."""
    others = [{"set": reference.name} | other for reference, other in row["references"]]
    return {key: value for key, value in row.items() if key != "row"} | {"references": others}


def _verdict(text: str) -> str:
    """Return the verdict that ``text`` begins, for instance ``undecided``.

    Raises SandglassError if none or several do.
    """
    matches = [verdict for verdict in STATES if verdict == text] or [v for v in STATES if v.startswith(text)]
    if len(matches) != 1:
        known = ", ".join(STATES)
        raise SandglassError(f"claims: no verdict is called {text!r}; there are: {known}")
    return matches[0]
