"""``python -m pipeline prune``: the disk that old artifacts and caches hold, and its release.

Reference sets and the remote in .dvcstore are never touched; nor is what resumes unfinished work, or what
`dvc checkout` of older results needs, unless that is asked for.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pipeline import params as parameters
from pipeline.audit import changes
from pipeline.audit.changes import Changes
from pipeline.audit.listing import size
from pipeline.engine import freshness, graph
from pipeline.engine import snakemake as engines
from pipeline.engine.repository import Repository, View, alive
from pipeline.errors import SandglassError
from pipeline.params import Params
from pipeline.store.paths import DATA, WORK

SHOWN = 12  # paths of one kind
STRAY, UNFINISHED, STAGING, CACHE = "files that no job makes", "resume checkpoints", "staging", "DVC's cache"
SNAKEMAKE, STATE, LOGS = "Snakemake's notes", "state of the engines", "logs of former jobs"


@dataclass(frozen=True)
class Leftover:
    """A file or folder that no result needs."""

    kind: str
    path: Path
    bytes: int
    kept: str = ""  # why it stays; empty if it goes


def prune(*, delete: bool, work: bool, cache: bool, as_json: bool = False) -> None:
    """Show what is left over; with ``delete``, delete it.

    ``work`` includes checkpoints of unfinished training, ``cache`` the objects in DVC's cache that the
    results of today do not need. Raises SandglassError where something is to be deleted while an engine
    is at work.
    """
    params = parameters.load()
    with engines.alone() if delete else changes.looking() as view:
        busy = None if delete else changes.at_work(view)
        leftovers = sorted(_leftovers(view, params, work, cache), key=lambda each: (each.kind, each.path))
        going = [each for each in leftovers if not each.kept]
        if isinstance(view, Repository):
            _delete(view, params, going)
    if as_json:
        entries = [each.__dict__ | {"path": str(each.path)} for each in leftovers]
        freed = sum(each.bytes for each in going)
        print(json.dumps({"deleted": delete, "bytes": freed, "leftovers": entries, "at_work": busy}, indent=1))
    else:
        _print(leftovers, going, busy, delete)


def _leftovers(view: View, params: Params, work: bool, cache: bool) -> Iterator[Leftover]:
    diff = changes.find(view, params)
    for path in engines.strays(Path(), params):
        yield Leftover(STRAY, path, _size(path))
    yield from _checkpoints(diff, params, work)
    yield from _staging()
    why_not = "" if cache else "dvc checkout of older results needs it; --cache deletes it"
    for path, count in view.unused().items():
        yield Leftover(CACHE, path, count, why_not)
    yield from _notes(diff)
    names = {job.name for job in graph.jobs(params)}
    steps = "|".join(sorted({job.step for job in graph.jobs(params)}))
    for folder in (graph.LOGS, graph.LOGS / "steps", graph.STATE / "jobs", freshness.TRACKED):
        for path in _in(folder):
            if re.match(rf"({steps})-", path.name) and path.stem not in names and not _runs(path.stem):
                yield Leftover(LOGS if graph.LOGS in path.parents else STATE, path, _size(path))


def _checkpoints(diff: Changes, params: Params, work: bool) -> Iterator[Leftover]:
    runs = {(job.study, job.id): job for job in graph.jobs(params) if job.step == "train"}
    for study in _in(WORK):
        for folder in _in(study):
            job = runs.get((study.name, folder.name))
            kept = "" if work or job not in diff.jobs else "its training is not finished; --work deletes it"
            if job and _runs(job.name):
                kept = "its training is running"
            yield Leftover(UNFINISHED, folder, _size(folder), kept)


def _staging() -> Iterator[Leftover]:
    """Yield folders in which steps write; a step that was killed with SIGKILL leaves its own."""
    for folder in _in(DATA / ".tmp"):
        owner, _, pid = folder.name.rpartition(".")
        kept = ""
        if not owner.endswith(f".{platform.node()}") or not pid.isdecimal():
            kept = "another machine's, where its step may be running"
        elif alive(int(pid), folder.stat().st_mtime):
            kept = f"process {pid} writes there"
        yield Leftover(STAGING, folder, _size(folder), kept)


def _notes(diff: Changes) -> Iterator[Leftover]:
    """Yield what Snakemake and this work tree's engines keep; a start needs none of it, but for unrecorded work."""
    kept = "a killed run's work is not recorded yet; the next start of snakemake does it" if diff.unrecorded else ""
    for path in _in(freshness.SNAKEMAKE):
        if _size(path):
            yield Leftover(SNAKEMAKE, path, _size(path), kept)
    if freshness.RECORDS.is_dir():
        yield Leftover(STATE, freshness.RECORDS, _size(freshness.RECORDS), kept)


def _runs(job: str) -> bool:
    """Return whether a process is at this job: one that an engine left behind, or that was started by hand."""
    lock = graph.STATE / "jobs" / f"{job}.lock"
    try:
        return alive(int(lock.read_text()), lock.stat().st_mtime)
    except (OSError, ValueError):
        return False


def _delete(repository: Repository, params: Params, going: list[Leftover]) -> None:
    engines.prune(Path(), params)  # it notes each file in logs/prune.log, and forgets stages
    try:
        for each in going:
            if each.kind == CACHE:
                continue
            if each.path.is_dir():
                shutil.rmtree(each.path)
            else:
                each.path.unlink(missing_ok=True)
    except OSError as error:
        raise SandglassError(f"prune: {error.filename} cannot be deleted: {error.strerror}") from None
    if any(each.kind == CACHE for each in going):
        repository.collect_garbage()


def _in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() and not path.is_symlink() else [path]
    return sum(file.lstat().st_size for file in files if not file.is_dir())


def _print(leftovers: list[Leftover], going: list[Leftover], busy: str | None, delete: bool) -> None:
    console = Console(highlight=False)
    if busy:
        console.print(f"note: {escape(busy)} is at work here; --yes would refuse")
    table = Table()
    for column in ("left over", "files", "size", "deleted" if delete else "would go"):
        table.add_column(column, justify="left" if column == "left over" else "right")
    for kind in dict.fromkeys(each.kind for each in leftovers):
        of = [each for each in leftovers if each.kind == kind]
        goes = sum(each.bytes for each in of if not each.kept)
        table.add_row(kind, str(len(of)), size(sum(each.bytes for each in of)), size(goes))
    if not leftovers:
        console.print("nothing is left over")
        return
    console.print(table)
    for (kind, kept), paths in _by_fate(leftovers).items():
        fate = f"kept: {kept}" if kept else "deleted" if delete else "would go"
        console.print(f"{kind}, {escape(fate)}", soft_wrap=True)
        if kind != CACHE:
            for path in paths[:SHOWN]:
                console.print(f"  {escape(str(path))}", soft_wrap=True)
            if len(paths) > SHOWN:
                console.print(f"  and {len(paths) - SHOWN} more")
    total = size(sum(each.bytes for each in going))
    console.print(f"freed {total}" if delete else f"nothing was deleted; --yes frees {total}")


def _by_fate(leftovers: list[Leftover]) -> dict[tuple[str, str], list[Path]]:
    fates: dict[tuple[str, str], list[Path]] = {}
    for each in leftovers:
        fates.setdefault((each.kind, each.kept), []).append(each.path)
    return fates
