"""What the report shows of each study: claims beside those of reference sets, theory rows, verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from ruamel.yaml import YAML, YAMLError

from pipeline.errors import SandglassError, meant
from pipeline.params import Params
from pipeline.references import reading as reference
from pipeline.references import standing
from pipeline.references.reading import Reference
from pipeline.references.standing import Line
from pipeline.report.files import read_table
from pipeline.report.wording import slug
from pipeline.store import paths, tables
from schemas.theory import Theory

Row = dict[str, Any]

ERRATA = "errata.yaml"  # of a study: in words, what each erratum says


@dataclass(frozen=True)
class Study:
    """A study as it stands: what its parameter file says of it, and its results.

    ``tables`` names the experiments that make each table, ``figures`` the one that draws each. ``claims`` and
    ``lines`` are empty, and a theory check has no rows, where their files are not here.
    """

    id: str
    title: str
    source: str
    figures: dict[str, str]
    tables: dict[str, list[str]]
    claims: list[Row]
    lines: dict[str, Line]
    theory: dict[str, list[Row]]
    errata: list[Erratum]
    references: list[Reference]

    @property
    def page(self) -> str:
        """Return the path of the study's page from the root of the site."""
        return f"study/{self.id}.html"

    @property
    def counts(self) -> list[tuple[str, list[tuple[str, int]]]]:
        """Return, of each kind of statement, how many of the study's gates have each verdict (`standing.counts`)."""
        return standing.counts(self.claims)

    @property
    def decided(self) -> tuple[int, int]:
        """Return how many statements of the source are decided, and how many could be (`standing.decided`)."""
        return standing.decided(self.claims)

    def answered(self, reference: Reference) -> dict[int, Row]:
        """Return the gates of this build whose question a set answers, by the number of the set's row."""
        return {
            found["row"]: gate
            for gate in reversed(self.claims)
            for kept, found in gate["references"]
            if kept is reference and found["same"]
        }

    def differing(self, rows: list[Row]) -> list[Row]:
        """Return the theory rows of a reference set that are not, number by number, rows of this build."""
        compared = ("check", "statement", "source", "size", "measured", "comparison", "bound", "tolerance", "detail")
        here = {tuple(row[name] for name in compared) for found in self.theory.values() for row in found}
        return [row for row in rows if tuple(row[name] for name in compared) not in here]

    def gates(self, claim: str) -> dict[str, Row]:
        """Return the rows of a claim by gate.

        Raises SandglassError naming the claims that there are.
        """
        gates = {row["gate"]: row for row in self.claims if row["claim"] == claim}
        if not gates:
            raise SandglassError(f"no claim {claim!r}; known: {', '.join(self.lines)}")
        return gates

    def gate(self, claim: str, gate: str) -> Row:
        """Return one row of the claims table.

        Raises SandglassError naming the claims or gates that there are.
        """
        gates = self.gates(claim)
        if gate not in gates:
            raise SandglassError(f"claim {claim} has no gate {gate!r}; known: {', '.join(map(repr, gates))}")
        return gates[gate]


def load(params: Params, partial: bool = False) -> dict[str, Study]:
    """Return every study of params.yaml by id; with ``partial``, without what is not here.

    Raises SandglassError if a result is damaged or, without ``partial``, missing.
    """
    return {key: _study(params, key, partial) for key in params.studies}


def _study(params: Params, key: str, partial: bool) -> Study:
    header = params.studies[key]
    figures: dict[str, str] = {}
    made: dict[str, list[str]] = {}
    for experiment, entry in params.of_study("experiments", key).items():
        figures |= dict.fromkeys(entry.figures, experiment)
        for table in entry.tables:
            made.setdefault(table, []).append(experiment)
    references = reference.load(key)
    rows = standing.rows(key, references, partial)
    ordered = {line.claim: line for line in standing.lines(rows)}
    checks = {check: _read(paths.theory_path(key, check), Theory, partial) for check in params.of_study("theory", key)}
    theory = {check: [] if frame is None else frame.to_dicts() for check, frame in checks.items()}
    errata = _errata(key, theory)
    return Study(key, header.title, header.source, figures, made, rows, ordered, theory, errata, references)


def _read(path: Path, schema: tables.Schema, partial: bool) -> pl.DataFrame | None:
    return None if partial and not path.is_file() else read_table(path, schema, pulled=partial)


# What an erratum is, by the word for it in errata.yaml, the gravest first.
ERRATUM_KINDS = {
    "result": "A result, or the construction behind it, fails as printed",
    "constant": "A constant, a rate or a width is another",
    "misprint": "A misprint, or a slip that nothing rests on",
}


@dataclass(frozen=True)
class Erratum:
    """A printed statement that is wrong: the rows that show it, and those of a form that holds.

    ``kind`` is one of `ERRATUM_KINDS`, ``title`` says it in a sentence, ``follows`` what that means for the source (the
    study's ``errata.yaml``).
    """

    study: str
    id: str
    kind: str
    title: str
    follows: str
    printed: list[Row]
    corrected: list[Row]

    @property
    def source(self) -> str:
        """Return where the statement is printed."""
        rows = self.printed or self.corrected
        return "; ".join(dict.fromkeys(row["source"] for row in rows))

    @property
    def anchor(self) -> str:
        """Return its id on the page of errata."""
        return slug(f"{self.study}-{self.id}")


def _errata(study: str, theory: dict[str, list[Row]]) -> list[Erratum]:
    """Return the errata of ``study`` in the order of the theory checks that they come from.

    Raises SandglassError if ``errata.yaml`` is damaged.
    """
    rows = [row for checks in theory.values() for row in checks if row["erratum"]]
    path = Path("pipeline/studies") / study / ERRATA
    try:
        words = YAML(typ="safe").load(path.read_text(encoding="utf-8")) if path.is_file() else {}
        texts = {name: (entry["kind"], entry["title"], entry["follows"]) for name, entry in words.items()}
    except (YAMLError, AttributeError, KeyError, TypeError) as error:
        raise SandglassError(f"{path}: no errata: {' '.join(str(error).split())}") from None
    for name, (kind, *_) in texts.items():
        if kind not in ERRATUM_KINDS:
            raise SandglassError(f"{path}: {name}: no kind {kind!r}; {meant(str(kind), list(ERRATUM_KINDS))}")
    return [
        Erratum(
            study,
            name,
            kind,
            title,
            follows,
            [row for row in rows if row["erratum"] == name and row["form"] == "printed"],
            [row for row in rows if row["erratum"] == name and row["form"] == "corrected"],
        )
        for name in dict.fromkeys(row["erratum"] for row in rows)
        for kind, title, follows in [texts.get(name, ("misprint", name, ""))]
    ]
