"""What the report shows of each study: claims beside those of reference sets, theory rows, verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.kit import verdicts
from pipeline.params import Params
from pipeline.references import reading as reference
from pipeline.references.reading import Reference
from pipeline.store import tables
from schemas.claims import NOT_REPRODUCED, NOT_TESTED, PARTLY, REPRODUCED, Claims
from schemas.theory import Theory

Row = dict[str, Any]
VERDICTS = (REPRODUCED, PARTLY, NOT_REPRODUCED, NOT_TESTED)


@dataclass(frozen=True)
class Study:
    """A study as it stands: its entry of params.yaml and its results."""

    id: str
    entry: Any
    claims: list[Row]
    verdicts: dict[str, str]
    theory: dict[str, list[Row]]
    references: list[Reference]

    @property
    def page(self) -> str:
        """Its page, from the root of the site."""
        return f"study/{self.id}.html"

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How many of its claims have each verdict, those with none left out."""
        found = list(self.verdicts.values())
        return [(verdict, found.count(verdict)) for verdict in VERDICTS if verdict in found]

    def gate(self, claim: str, gate: str) -> Row:
        """One row of the claims table.

        Raises SandglassError naming the claims or gates that there are.
        """
        gates = {row["gate"]: row for row in self.claims if row["claim"] == claim}
        if not gates:
            raise SandglassError(f"no claim {claim!r}; known: {', '.join(self.verdicts)}")
        if gate not in gates:
            raise SandglassError(f"claim {claim} has no gate {gate!r}; known: {', '.join(map(repr, gates))}")
        return gates[gate]


def load(params: Params) -> dict[str, Study]:
    """Every study of params.yaml, by id."""
    return {key: _study(key, entry) for key, entry in params.studies.items()}


def _study(key: str, entry: Any) -> Study:
    frame = tables.read(graph.claims_path(key, "parquet"), Claims)
    references = reference.load(key)
    rows = [
        row | {"row": number, "references": reference.beside(references, row["claim"], row["gate"])}
        for number, row in enumerate(frame.iter_rows(named=True))
    ]
    rows.sort(key=lambda row: (int(row["claim"].rstrip("abcdefghijklmnopqrstuvwxyz")), row["claim"]))
    whole = {row["claim"]: row["verdict"] for row in verdicts.summary(frame).iter_rows(named=True)}
    theory = {check: tables.read(graph.theory_path(key, check), Theory).to_dicts() for check in entry.theory}
    ordered = {row["claim"]: whole[row["claim"]] for row in rows}
    return Study(key, entry, rows, ordered, theory, references)


@dataclass(frozen=True)
class Erratum:
    """A printed statement that is wrong: the rows that show it, and those of a form that holds."""

    study: str
    id: str
    printed: list[Row]
    corrected: list[Row]

    @property
    def source(self) -> str:
        """Where it is printed."""
        rows = self.printed or self.corrected
        return "; ".join(dict.fromkeys(row["source"] for row in rows))


def errata(study: Study) -> list[Erratum]:
    """In the order of the theory checks that they come from."""
    rows = [row for checks in study.theory.values() for row in checks if row["erratum"]]
    return [
        Erratum(
            study.id,
            name,
            [row for row in rows if row["erratum"] == name and row["form"] == "printed"],
            [row for row in rows if row["erratum"] == name and row["form"] == "corrected"],
        )
        for name in dict.fromkeys(row["erratum"] for row in rows)
    ]
