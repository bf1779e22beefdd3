"""Reference sets as they are read: frozen results of longer runs, beside those built here.

A set keeps its files as ``data/reference/<set>/<kind>/<experiment>/…``. Sets that were frozen when a study had one
analysis have all tables in ``tables/``; they are read as they are.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from pipeline.kit.conditions import in_words, parsed
from pipeline.kit.evidence import ends
from pipeline.kit.verdicts import Gate, Measured
from pipeline.references.record import RECORD, kept_path, read_record
from pipeline.references.upgrade import upgraded
from pipeline.store import tables
from pipeline.store.paths import REFERENCE
from schemas.claims import NOT_RUN, SCALES, Claims
from schemas.theory import Theory

__all__ = ["RECORD", "Reference", "Row", "beside", "load", "owner", "read_table", "stranger", "table_files"]

Row = dict[str, Any]
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")


class Files(Protocol):
    """Whoever knows the md5 of files, each read once: for instance `pipeline.report.files.Files`."""

    def md5(self, path: Path) -> str:
        """Return the md5 of the bytes of the file at ``path``."""


@dataclass(frozen=True)
class Reference:
    """One set: its files, and its claims by number and gate, each with its place in the table as ``row``.

    ``record`` is empty where none came with it.
    """

    name: str
    scale: str
    record: Row
    files: list[Path]
    claims: dict[tuple[str, str], Row]

    @cached_property
    def theory(self) -> list[Row]:
        """Return the rows of its theory checks, read when they are first asked for.

        Raises SandglassError if they are damaged.
        """
        files = [path for path in self.files if path.parent == REFERENCE / self.name / "theory"]
        return [row for path in files if path.suffix == ".parquet" for row in read_table(path, Theory).to_dicts()]

    def has(self, path: Path) -> bool:
        """Return whether the set holds a copy of the result ``path``."""
        return kept_path(self.name, path) in self.files

    @property
    def page(self) -> str:
        """Return the path of the set's page from the root of the site."""
        return f"reference/{self.name}.html"

    def verified(self, files: Files) -> dict[Path, bool]:
        """Return which files of the set the record names, alone or by their folder, and whether their md5 is that."""
        matches: dict[Path, bool] = {}
        for job in self.record.get("jobs", {}).values():
            for output, md5 in job["outputs"].items():
                copy = kept_path(self.name, Path(output))
                inside = [path for path in self.files if path == copy or copy in path.parents]
                folder = md5.endswith(".dir")
                now = _folder_md5(copy, inside, files) if folder else "".join(map(files.md5, inside))
                matches |= dict.fromkeys(inside, now == md5)
        return matches


def ordered(sets: Iterable[Path], study: str) -> list[Path]:
    """Return the files or folders of sets with that of the study's own name first, then by name."""
    return sorted(sets, key=lambda path: (path.stem != study, path.stem))


def load(study: str) -> list[Reference]:
    """Return the sets of ``study``, the one with its own name first.

    Raises SandglassError if one is damaged.
    """
    folders = ordered(REFERENCE.glob("*/"), study)
    return [_load(folder) for folder in folders if owner(folder) == study and _files(folder)]


def owner(folder: Path) -> str:
    """Return the study whose results lie in ``folder``: as the record says, or without a record the folder's name.

    Raises SandglassError if the record is damaged.
    """
    return str(read_record(folder).get("study", folder.name))


def stranger(folder: Path, study: str, studies: Container[str]) -> str | None:
    """Return the other study that the set ``folder`` is for, by its record or else by its name; None if there is none.

    Raises SandglassError if the record is damaged.
    """
    of = owner(folder)
    return of if of != study and (of != folder.name or of in studies) else None


def beside(references: list[Reference], gate: Row) -> list[tuple[Reference, Row]]:
    """Return what the sets say of a gate of this build: those that test it, or, if none does, the first that knows it.

    Each row says as ``same`` whether it answers the question of the gate (`asks_the_same`); only then it counts. What
    measured the same, and was held against another bar, or was to be judged from another scale on, is judged as this
    build does.
    """
    known = [(reference, found) for reference in references if (found := _counterpart(reference, gate)) is not None]
    return [pair for pair in known if pair[1]["verdict"] != NOT_RUN] or known[:1]


def _counterpart(reference: Reference, gate: Row) -> Row | None:
    """Return the row of a set that asks the same as ``gate``, that of its name and then of its claim before others; if
    there is none, one that measures the same, judged anew, or else the row that has its name, which asked something
    else and is not the ``same``. Where this build has no bar, as what it comes from was not run, that of the set
    judges."""
    named = reference.claims.get((gate["claim"], gate["gate"]))
    first = [named] if named else []
    rows = first + sorted(reference.claims.values(), key=lambda row: row["claim"] != gate["claim"])
    if found := next((row for row in rows if asks_the_same(gate, row)), None):
        then, now = (_large_enough(row, reference.scale) for row in (found, gate))
        return (found if then == now else _judged_anew(gate, found, reference.scale)) | {"same": True}
    if found := next((row for row in rows if _measures_the_same(gate, row)), None):
        return (_judged_anew(gate, found, reference.scale) if gate["bound"] else found) | {"same": True}
    return named and named | {"same": False}


def _large_enough(row: Row, scale: str) -> bool:
    return SCALES.index(scale) >= SCALES.index(row["scale_needed"])


def asks_the_same(gate: Row, frozen: Row) -> bool:
    """Return whether a frozen row is about the same comparison and condition as a gate of this build.

    It may have stood under another claim, and in other words; but which units a share counts its words alone say, in
    numbers. A gate without a comparison, such as one on theory checks, is known by its claim and its words. Sets that
    are older than comparisons have their words alone, and what was compared they do not say, so that they answer no
    gate on one.
    """
    keys = ("comparison", "bound") if gate["comparison"] else ("claim", "comparison", "bound", "predicate")
    return all(gate[key] == frozen[key] for key in keys) and _counted(gate) <= _counted(frozen)


def _counted(row: Row) -> set[str]:
    """Return the numbers in the words of a share; of what is none, nothing."""
    words = _measure(row)
    return set(_NUMBER.findall(words)) if words.startswith("share of ") else set()


def _measures_the_same(gate: Row, frozen: Row) -> bool:
    """Return whether a frozen row is of the same comparison, in the same words but for the bar: those of a share say
    which units it counts."""
    same = gate["comparison"] == frozen["comparison"] and _measure(gate) == _measure(frozen)
    return bool(gate["comparison"]) and same


def _measure(row: Row) -> str:
    return str(row["predicate"]).removesuffix(f": {in_words(parsed(row['bound']))}")


def _judged_anew(gate: Row, frozen: Row, scale: str) -> Row:
    """Return a frozen row as ``gate`` judges it: by its bar, and from the scale on that it asks for."""
    measured = Measured(
        frozen["value"], *ends(frozen), frozen["n"], interval=frozen["interval"], fewest=frozen["fewest"]
    )
    asked = Gate(
        gate["claim"],
        gate["gate"],
        _measure(gate),
        gate["source"],
        parsed(gate["bound"]),
        None if frozen["verdict"] == NOT_RUN and frozen["value"] is None else measured,
        frozen["reason"],
        scale_needed=gate["scale_needed"],
    )
    verdict, reason = asked.verdict(scale)
    by = "the scale that this build asks for" if gate["bound"] == frozen["bound"] else "the bar of this build"
    told = frozen["reason"] if asked.measured is None else f"{reason} (by {by})"
    judged = {"verdict": verdict, "reason": told, "replicas_needed": asked.replicas(scale)}
    return frozen | judged | {key: gate[key] for key in ("bound", "predicate", "scale_needed")}


def table_files(name: str, paths: list[Path], root: Path = Path()) -> list[Path]:
    """Return the files of the set ``name`` that hold what lies in ``paths`` of a work tree, those that exist.

    In a set of the old layout one file holds the rows of all experiments.
    """
    copies = [kept_path(name, path) for path in paths]
    flat = [REFERENCE / name / "tables" / path.name for path in paths if path.parts[1] == "tables"]
    return [path for path in copies if (root / path).is_file()] or [
        path for path in dict.fromkeys(flat) if (root / path).is_file()
    ]


def read_table(path: Path, schema: tables.Schemas) -> pl.DataFrame:
    """Return a table of a set. What its schema has got since then is empty, in claims, in theory or where it may be
    null; a column that its schema no longer has is left out.

    Raises SandglassError if the file is damaged or breaks the schema in another way.
    """
    model = tables.of_kind(schema, tables.read_metadata(path), path)
    frame = pl.read_parquet(path)
    if model is Claims:
        frame = upgraded(frame)
    if model is Theory:
        unsaid = {name: pl.lit("") for name in ("claim", "part", "group") if name not in frame.columns}
        frame = frame.with_columns(**unsaid)
    columns = model.to_schema().columns
    new = {key: each for key, each in columns.items() if key not in frame.columns and each.nullable}
    frame = frame.with_columns(pl.lit(None, dtype=each.dtype.type).alias(key) for key, each in new.items())
    frame = frame.select(key for key in columns if key in frame.columns)
    tables.validate(frame, model, str(path))
    return frame


def read_former(path: Path) -> pl.DataFrame:
    """Return a table of a set that no study makes any more, so that no schema knows it.

    Raises SandglassError if the file is damaged.
    """
    tables.read_metadata(path)  # it checks every byte
    return pl.read_parquet(path)


def _load(folder: Path) -> Reference:
    record, claims = read_record(folder), folder / "claims" / "claims.parquet"
    table = read_table(claims, Claims).to_dicts() if claims.is_file() else []
    rows = [row | {"row": number} for number, row in enumerate(table)]
    scale = record.get("scale") or (rows[0]["scale"] if rows else "unknown")
    by_gate = {(row["claim"], row["gate"]): row for row in rows}
    return Reference(folder.name, scale, record, _files(folder), by_gate)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _folder_md5(folder: Path, inside: list[Path], files: Files) -> str:
    """Return the name that DVC gives to the content of a folder."""
    entries = [{"md5": files.md5(path), "relpath": str(path.relative_to(folder))} for path in inside]
    return hashlib.md5(json.dumps(entries, sort_keys=True).encode()).hexdigest() + ".dir"
