"""Reference sets as the report shows them: frozen results of longer runs, beside those built here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.report.files import Files
from pipeline.store import tables
from schemas.claims import NOT_TESTED, Claims
from schemas.theory import Theory

Row = dict[str, Any]
RECORD = "record.json"


@dataclass(frozen=True)
class Reference:
    """One set: its files, claims by number and gate, and theory rows; ``record`` is empty where none came with it."""

    name: str
    scale: str
    record: Row
    files: list[Path]
    claims: dict[tuple[str, str], Row]
    theory: list[Row]

    @property
    def page(self) -> str:
        """Its page, from the root of the site."""
        return f"reference/{self.name}.html"

    def verified(self, files: Files) -> dict[Path, bool]:
        """Which files of the set are named in the record, alone or by their folder, and whether the md5 is that."""
        found: dict[Path, bool] = {}
        for job in self.record.get("jobs", {}).values():
            for output, md5 in job["outputs"].items():
                # data/<kind>/<study>/… lies in data/reference/<set>/<kind>/…
                _, kind, _, *rest = Path(output).parts
                copy = graph.REFERENCE.joinpath(self.name, kind, *rest)
                inside = [path for path in self.files if path == copy or copy in path.parents]
                folder = md5.endswith(".dir")
                now = _folder_md5(copy, inside, files) if folder else "".join(map(files.md5, inside))
                found |= dict.fromkeys(inside, now == md5)
        return found


def load(study: str) -> list[Reference]:
    """The sets of ``study``, that with its own name first.

    Raises SandglassError if one is damaged.
    """
    folders = sorted(graph.REFERENCE.glob("*/"), key=lambda folder: (folder.name != study, folder.name))
    return [_load(folder) for folder in folders if owner(folder) == study and _files(folder)]


def owner(folder: Path) -> str:
    """The study whose results lie in ``folder``: as the record says, or without one its name.

    Raises SandglassError if the record is damaged.
    """
    return str(_record(folder).get("study", folder.name))


def stranger(folder: Path, study: str, studies: Container[str]) -> str | None:
    """The other study that the set ``folder`` is for, by its record or else by its name; None if there is none.

    Raises SandglassError if the record is damaged.
    """
    of = owner(folder)
    return of if of != study and (of != folder.name or of in studies) else None


def beside(references: list[Reference], claim: str, gate: str) -> list[tuple[Reference, Row]]:
    """What the sets say of a gate: those that test it, or, if none does, the first that knows it."""
    known = [
        (reference, reference.claims[claim, gate])
        for reference in references
        if (claim, gate) in reference.claims
    ]
    return [found for found in known if found[1]["verdict"] != NOT_TESTED] or known[:1]


def _load(folder: Path) -> Reference:
    record, claims, theory = _record(folder), folder / "claims" / "claims.parquet", []
    rows = tables.read(claims, Claims).to_dicts() if claims.is_file() else []
    for path in sorted((folder / "theory").glob("*.parquet")):
        theory += tables.read(path, Theory).to_dicts()
    scale = record.get("scale") or (rows[0]["scale"] if rows else "unknown")
    by_gate = {(row["claim"], row["gate"]): row for row in rows}
    return Reference(folder.name, scale, record, _files(folder), by_gate, theory)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _folder_md5(folder: Path, inside: list[Path], files: Files) -> str:
    """As DVC names the content of a folder."""
    entries = [{"md5": files.md5(path), "relpath": str(path.relative_to(folder))} for path in inside]
    return hashlib.md5(json.dumps(entries, sort_keys=True).encode()).hexdigest() + ".dir"


def _record(folder: Path) -> Row:
    path = folder / RECORD
    if not path.is_file():
        return {}
    try:
        found: Row = json.loads(path.read_text(encoding="utf-8"))
        for job in found["jobs"].values():
            for part in ("params", "device", "code", "outputs"):
                job[part]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SandglassError(
            f"{path} is no record of a reference set ({type(error).__name__}: {error})"
        ) from None
    return found
