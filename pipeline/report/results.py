"""What the report shows of each study: claims beside those of a reference set, theory rows, verdicts."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline import graph, tables, verdicts
from pipeline.errors import SandglassError
from pipeline.params import Params
from pipeline.report.files import Files
from schemas.claims import NOT_REPRODUCED, NOT_TESTED, PARTLY, REPRODUCED, Claims
from schemas.theory import Theory

Row = dict[str, Any]
VERDICTS = (REPRODUCED, PARTLY, NOT_REPRODUCED, NOT_TESTED)
RECORD = "record.json"


@dataclass(frozen=True)
class Reference:
    """A frozen set of results beside those built here; ``record`` is empty where none came with it."""

    study: str
    scale: str
    record: dict[str, Any]
    files: list[Path]
    claims: dict[tuple[str, str], Row]
    theory: list[Row]

    @property
    def page(self) -> str:
        """Its page, from the root of the site."""
        return f"reference/{self.study}.html"

    def verified(self, files: Files) -> dict[Path, bool]:
        """Which files of the set are named in the record, alone or by their folder, and whether the md5 is that."""
        found: dict[Path, bool] = {}
        for job in self.record.get("jobs", {}).values():
            for output, md5 in job["outputs"].items():
                # data/<kind>/<study>/… lies in data/reference/<study>/<kind>/…
                _, kind, study, *rest = Path(output).parts
                copy = graph.REFERENCE.joinpath(study, kind, *rest)
                inside = [path for path in self.files if path == copy or copy in path.parents]
                folder = md5.endswith(".dir")
                now = _folder_md5(copy, inside, files) if folder else "".join(map(files.md5, inside))
                found |= dict.fromkeys(inside, now == md5)
        return found


def _folder_md5(folder: Path, inside: list[Path], files: Files) -> str:
    """As DVC names the content of a folder."""
    entries = [{"md5": files.md5(path), "relpath": str(path.relative_to(folder))} for path in inside]
    return hashlib.md5(json.dumps(entries, sort_keys=True).encode()).hexdigest() + ".dir"


@dataclass(frozen=True)
class Study:
    """A study as it stands: its entry of params.yaml and its results."""

    id: str
    entry: Any
    claims: list[Row]
    verdicts: dict[str, str]
    theory: dict[str, list[Row]]
    reference: Reference | None

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
    reference = _reference(key)
    known = reference.claims if reference else {}
    rows = [
        row | {"row": number, "reference": known.get((row["claim"], row["gate"]))}
        for number, row in enumerate(frame.iter_rows(named=True))
    ]
    rows.sort(key=lambda row: (int(row["claim"].rstrip("abcdefghijklmnopqrstuvwxyz")), row["claim"]))
    whole = {row["claim"]: row["verdict"] for row in verdicts.summary(frame).iter_rows(named=True)}
    theory = {check: tables.read(graph.theory_path(key, check), Theory).to_dicts() for check in entry.theory}
    ordered = {row["claim"]: whole[row["claim"]] for row in rows}
    return Study(key, entry, rows, ordered, theory, reference)


def _reference(study: str) -> Reference | None:
    folder = graph.REFERENCE / study
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if not files:
        return None
    record, claims, theory = _record(folder / RECORD), folder / "claims" / "claims.parquet", []
    rows = tables.read(claims, Claims).to_dicts() if claims.is_file() else []
    for path in sorted((folder / "theory").glob("*.parquet")):
        theory += tables.read(path, Theory).to_dicts()
    scale = record.get("scale") or (rows[0]["scale"] if rows else "unknown")
    by_gate = {(row["claim"], row["gate"]): row for row in rows}
    return Reference(study, scale, record, files, by_gate, theory)


def _record(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for job in found["jobs"].values():
            for part in ("params", "device", "code", "outputs"):
                job[part]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SandglassError(
            f"{path} is no record of a reference set ({type(error).__name__}: {error})"
        ) from None
    return found


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
