"""How far is this build from the committed one? On another processor bytes differ, values a little, verdicts seldom."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pipeline.audit import git, hashing, provenance
from pipeline.audit.compare import ROUNDING
from pipeline.audit.provenance import LOCK, Lock
from pipeline.engine import lockfile
from pipeline.engine.build import Reference
from pipeline.errors import SandglassError
from pipeline.references.upgrade import upgraded
from pipeline.store import paths, tables
from schemas.claims import Claims

KEYS = ["claim", "gate"]
YARDSTICK = Path("profiles/rounding.json")  # made by benchmarks/rounding.py


@dataclass(frozen=True)
class Yardstick:
    """How far two builds are apart: gates that both judged, those with other values, the largest difference of a value
    (as a share of the larger one), and those with other verdicts, by study, claim and gate."""

    gates: int
    moved: int
    largest: float
    turned: list[str]

    @classmethod
    def of(cls, gates: pl.DataFrame) -> Yardstick:
        """Return what `beside` found, as numbers."""
        moved, turned = _differing(gates)
        largest = moved["share"][0] if len(moved) else 0.0
        names = [_name(row) for row in turned.iter_rows(named=True)]
        return cls(len(gates), len(moved), largest, names)

    @classmethod
    def load(cls, scale: str) -> Yardstick | None:
        """Return what rounding alone did to the committed results at ``scale``; None if that was not measured."""
        try:
            return cls(**json.loads(YARDSTICK.read_text(encoding="utf-8"))[scale])
        except (OSError, ValueError, KeyError, TypeError):
            return None


def committed_lock() -> Lock | None:
    """Return the dvc.lock of the commit that is checked out; None if it has none.

    Raises SandglassError if it is not a lock file of DVC.
    """
    text = git.committed(LOCK)
    return None if text is None else Lock(text, f"the committed {LOCK}")


def committed_claims(study: str, lock: Lock | None) -> pl.DataFrame | None:
    """Return the claims table that ``lock`` names, if DVC's cache or remote still holds it."""
    try:
        entry = lock[f"claims-{study}"].outs[paths.claims_path(study, "parquet")] if lock else None
    except KeyError:
        return None
    content = None if entry is None else hashing.stored_file(entry.md5)
    return None if content is None else upgraded(pl.read_parquet(io.BytesIO(content)))


def distance(studies: Iterable[str], scale: str, ours: Lock | None = None) -> str:
    """Return in a sentence how this build, by ``ours`` or else by the dvc.lock that lies here, stands to the committed
    one: bytes, values of claims, verdicts, and on which machines they were made.

    Of ``studies`` alone; results of another scale than the committed ones are not compared with them.

    Raises SandglassError if a lock file is not one of DVC.
    """
    ours, committed = ours or provenance.read_lock(), committed_lock()
    if committed is None:
        why = git.trouble() or f"no commit holds a {LOCK}"
        return f"{why}: nothing to compare with; {_made_on('this one', ours, scale)}"
    if committed.text == ours.text:
        return f"{LOCK} is the committed one ({_made_on('', ours, scale)})"
    if (theirs := _scale(committed)) not in (None, scale):
        return f"the committed results are of scale {theirs}, these of scale {scale}: they are not compared"
    here, there = _stages(ours, studies), _stages(committed, studies)
    both = here & there
    other = [name for name in both if ours[name].outs != committed[name].outs]
    alone = len(here ^ there)
    text = f"{LOCK} is not the committed one: another build, in which {len(other)} of {len(both)} jobs made other bytes"
    text += f"; {alone} jobs are in one of the two only" if alone else ""
    text += f"; {_claims(studies, committed)}{_rounding(scale)}"
    return f"{text} ({_made_on('this one', ours, scale)}; {_made_on('the committed one', committed, scale)})"


def _scale(lock: Lock) -> str | None:
    """Return the scale of the results in ``lock``, by what its claims were judged with; None without claims."""
    judged = next((lock[name] for name in lock if name.startswith("claims-")), None)
    return None if judged is None else judged.params.get("scale")


def _stages(lock: Lock, studies: Iterable[str]) -> set[str]:
    """Return the stages of ``lock`` that belong to ``studies``, and the report."""
    starts = tuple(f"{study}-" for study in studies)
    return {name for name in lock if f"{name.partition('-')[2]}-".startswith(starts) or name == "report"}


def made_on(lock: Lock, scale: str) -> str | None:
    """Return on which machine the results of ``lock`` were made; None where that is not recorded.

    It is recorded of one build at each scale, with the md5 of all that this build made.
    """
    recorded = Reference.load(scale)
    made = lockfile.digest({path: out.md5 for path, out in lock.made.items()})
    return recorded.made_on if recorded.outputs == made else None


def _made_on(which: str, lock: Lock, scale: str) -> str:
    return f"{which} made on {made_on(lock, scale) or 'a machine that is not recorded'}".lstrip()


def _claims(studies: Iterable[str], committed: Lock) -> str:
    both = [each for study in studies if (each := _tables(study, committed)) is not None]
    if not both:
        return "its claims cannot be compared with the committed ones"
    gates = pl.concat(beside(*each) for each in both)
    moved, turned = _differing(gates)
    alone = [name for each in both for name in _in_one_alone(*each)]
    missing = f"; {len(alone)} more are gates of one build alone, {alone[0]} first" if alone else ""
    if moved.is_empty() and turned.is_empty():
        return f"the values of all {len(gates)} gates are the committed ones, to rounding{missing}"
    sentence = f"of {len(gates)} gates {len(moved)} have other values"
    if not moved.is_empty():
        sentence += f", the most {_gate(moved.row(0, named=True), 'value')}"
    names = ", ".join(_gate(row, "verdict") for row in turned.head(3).iter_rows(named=True))
    verdicts = f"{len(turned) or 'no'} verdict{'' if len(turned) == 1 else 's'} turned"
    return f"{sentence}; {verdicts}{f': {names}' if names else ''}{missing}"


def _differing(gates: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return gates of `beside` with other values, those that differ most first, and gates with other verdicts."""
    moved = gates.filter(pl.col("share") > ROUNDING.share).sort("share", descending=True)
    return moved, gates.filter(pl.col("verdict") != pl.col("verdict_committed"))


def _rounding(scale: str) -> str:
    """Return what rounding alone does, so that a reader knows what a difference is worth."""
    yardstick = Yardstick.load(scale)
    if yardstick is None:
        return ""
    turned = f"turns {len(yardstick.turned) or 'no'} verdict{'' if len(yardstick.turned) == 1 else 's'}"
    share = f"by at most {yardstick.largest:.2g} of a value"
    return f"; rounding alone moves {yardstick.moved} of {yardstick.gates}, {share}, and {turned}"


def _tables(study: str, committed: Lock) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """Return the claims table that is here and the committed one, where both are known; a damaged one is not."""
    before, path = committed_claims(study, committed), paths.claims_path(study, "parquet")
    if before is None or not path.is_file():
        return None
    try:
        return tables.read(path, Claims), before
    except SandglassError:
        return None


def _in_one_alone(ours: pl.DataFrame, committed: pl.DataFrame) -> list[str]:
    """Return the gates that one of the tables lacks, such as those of an experiment that was taken out."""
    columns = ["study", *KEYS]
    pairs = [(ours, committed), (committed, ours)]
    alone = pl.concat(one.select(columns).join(other, on=KEYS, how="anti") for one, other in pairs)
    return [_name(row) for row in alone.iter_rows(named=True)]


def beside(ours: pl.DataFrame, committed: pl.DataFrame) -> pl.DataFrame:
    """Return the gates that both claims tables judge, with the difference of their values as a share of the larger."""
    columns = ["study", *KEYS, "value", "verdict"]
    gates = ours.select(columns).join(committed.select(columns), on=KEYS, suffix="_committed")
    larger = pl.max_horizontal(pl.col("value").abs(), pl.col("value_committed").abs())
    share = (pl.col("value") - pl.col("value_committed")).abs() / larger
    one_alone = pl.col("value").is_null() != pl.col("value_committed").is_null()
    return gates.with_columns(share=pl.when(one_alone).then(math.inf).otherwise(share.fill_nan(0.0).fill_null(0.0)))


def _gate(row: dict[str, object], name: str) -> str:
    """Return a gate with what the committed build found and what this one did: ``dyck:5 M1 1.384 → 1.353``."""
    then, now = (f"{each:.4g}" if isinstance(each, float) else each for each in (row[f"{name}_committed"], row[name]))
    return f"{_name(row)} {then} → {now}"


def _name(row: dict[str, object]) -> str:
    return f"{row['study']}:{row['claim']} {row['gate']}"
