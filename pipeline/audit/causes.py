"""In what a job differs from its record in dvc.lock: parameters, code, software, data, outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pipeline.audit import git, hashing, provenance
from pipeline.audit.provenance import Entry, Stage
from pipeline.engine import graph
from pipeline.engine import snakemake as engines
from pipeline.engine.repository import Difference, View
from pipeline.engine.software import REQUIREMENTS
from pipeline.params import Params
from pipeline.params.scales import SCALES
from pipeline.store.paths import DATA

SHOWN = 60  # characters of a value
SHOWN_JOBS = 4
STRAY = "no job makes it; the next start of an engine deletes it"


@dataclass(frozen=True)
class Cause:
    """One thing that differs: a parameter's value, or the md5 of a file (None where there is or was none)."""

    kind: str  # never built, command, parameter, code, software, data, output
    what: str  # a path of a parameter, a file (and a package), a stage
    old: Any = None
    new: Any = None
    note: str = ""
    makers: tuple[graph.Job, ...] = ()  # of data: the jobs it comes from

    def __str__(self) -> str:
        """Return one line, old → new."""
        if self.kind == "never built":
            return "never built: dvc.lock has no record of it"
        text = f"{self.kind} {self.what}"
        if (self.old, self.new) != (None, None):
            text += f": {self._difference()}"
        if self.note:
            return f"{text} ({self.note})"
        return f"{text}, made by {names(self.makers)}" if self.makers else text

    @property
    def is_absence(self) -> bool:
        """Return whether an output that is recorded is not here: it was deleted, or never fetched."""
        return self.kind == "output" and self.new is None

    def _difference(self) -> str:
        old, new = self.old, self.new
        if isinstance(old, list) and isinstance(new, list):  # they can be long
            gone, come = [x for x in old if x not in new], [x for x in new if x not in old]
            if gone or come:
                parts = (("without", gone), ("with", come))
                return ", ".join(f"{word} {_value(some)}" for word, some in parts if some)
        if self.kind in ("parameter", "command") or ": " in self.what:
            return f"{_value(old)} → {_value(new)}"
        return f"md5 {str(old)[:8] if old else 'none'} → {str(new)[:8] if new else 'none'}"


def names(jobs: Iterable[graph.Job]) -> str:
    """Return the stages of ``jobs`` as text, the first few if they are many."""
    stages = [job.stage for job in jobs]
    more = len(stages) - SHOWN_JOBS
    return ", ".join(stages[:SHOWN_JOBS]) + (f" and {more} more" if more > 0 else "")


def _value(value: Any) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


class Search:
    """Looks for the causes behind DVC's judgement. Nothing in the work tree changes."""

    def __init__(self, view: View, params: Params, lock: Mapping[str, Stage]) -> None:
        """Take ``lock``, which is dvc.lock by stage."""
        self._params, self._lock = params, lock
        self._md5s = cache(view.md5s)  # many jobs read the same folder
        self._listing = cache(self._find_listing)

    def causes(self, job: graph.Job, difference: Difference) -> Iterator[Cause]:
        """Yield what of ``job`` differs from dvc.lock, where DVC found ``difference``."""
        stage = self._lock.get(job.stage)
        if stage is None:
            yield Cause("never built", job.stage)
            return
        if difference.command:
            yield Cause("command", job.stage, stage.cmd, difference.command)
        parameters = [
            cause
            for name in job.tracked
            for cause in self._parameters(name, stage.params.get(name), self._params.value(name))
        ]
        yield from parameters
        if difference.params and not parameters:
            own = job.tracked[2]  # after scale and seed
            yield Cause("parameter", own, note="it says what it did, but is written differently, here or in `shared`")
        for path in sorted(difference.deps):
            yield from self._input(path, stage)
        for path in sorted(set(stage.deps) - difference.reads):
            yield Cause(_kind(path), str(path), stage.deps[path].md5, None, "no longer read")
        for path, word in sorted(difference.outs.items()):
            yield from self._output(path, word, stage)

    def _parameters(self, path: str, old: Any, new: Any) -> Iterator[Cause]:
        if isinstance(old, dict) and isinstance(new, dict):
            for key in {**old, **new}:
                yield from self._parameters(f"{path}.{key}", old.get(key), new.get(key))
        elif old != new:
            last = path.rpartition(".")[2]
            other = last in SCALES and last != self._params.scale
            yield Cause("parameter", path, old, new, "tracked, though of another scale" if other else "")

    def _input(self, path: Path, stage: Stage) -> Iterator[Cause]:
        old, now = stage.deps.get(path), self._md5s(path)
        if old is None:
            yield Cause(_kind(path), str(path), None, now.get(path), "newly read", self._from(path))
        elif not old.is_folder:
            yield from self._file(path, old.md5, now.get(path))
        else:
            before = self._listing(path, old.md5)
            if before is None:
                new = _folder_md5(path, now) if now else None
                yield Cause(_kind(path), f"{path}/", old.md5, new, "", self._from(path))
            else:
                for file in sorted({*before, *now}):
                    if before.get(file) != now.get(file):
                        yield from self._file(file, before.get(file), now.get(file))

    def _file(self, path: Path, old: str | None, new: str | None) -> Iterator[Cause]:
        kind = _kind(path)
        version = git.find(path, old) if old and kind in ("code", "software") else None
        if kind == "software" and version and new and (lines := requirements(version.content, path)):
            yield from lines
        else:
            note = f"git diff {version.commit} -- {path}" if version else ""
            if kind == "data" and graph.maker(path, self._params) is None and path.parts[1] in engines.KINDS:
                note = STRAY if new else "no job makes it any more"
            yield Cause(kind, str(path), old, new, note, self._from(path))

    def _from(self, path: Path) -> tuple[graph.Job, ...]:
        """Return the jobs that make ``path`` or, of a folder, what lies in it; of a stray, its neighbours."""
        known = graph.of(self._params)
        neighbours = [file for file in known.inside.get(path.parent, ()) if file.parent == path.parent]
        files = [path] if path in known.maker else known.inside.get(path) or neighbours
        return tuple(dict.fromkeys(known.maker[file] for file in files))

    def _output(self, path: Path, word: str, stage: Stage) -> Iterator[Cause]:
        recorded, now = stage.outs.get(path), self._md5s(path)
        if recorded is None:
            yield Cause("output", str(path), None, now.get(path), "dvc.lock does not know it")
            return
        before = {path: recorded.md5}
        if recorded.is_folder:
            listed = _stored(path, recorded.md5)
            if listed is None or not now:
                new = _folder_md5(path, now) if now else None
                yield Cause("output", f"{path}/", recorded.md5, new, _output_note(recorded.md5, new, path, True))
                return
            before = listed
        differing = [file for file in sorted({*before, *now}) if before.get(file) != now.get(file)]
        for file in differing:
            note = _output_note(before.get(file), now.get(file), file, graph.maker(file, self._params) is not None)
            yield Cause("output", str(file), before.get(file), now.get(file), note)
        if not differing:
            yield Cause("output", str(path), recorded.md5, recorded.md5, word)

    def _find_listing(self, folder: Path, md5: str) -> dict[Path, str] | None:
        """Return the files that a folder with this md5 held, as DVC, dvc.lock, the committed one or git knows them."""
        if (stored := _stored(folder, md5)) is not None:
            return stored
        if _kind(folder) == "data":
            locks = (lambda: self._recorded, lambda: self._committed)
            candidates: Iterator[dict[Path, str]] = (self._made(below, folder) for below in locks)
        else:
            candidates = git.listings(folder)
        return next((files for files in candidates if _folder_md5(folder, files) == md5), None)

    def _made(self, below: Callable[[], dict[Path, list[Entry]]], folder: Path) -> dict[Path, str]:
        files: dict[Path, str] = {}
        for entry in below().get(folder, ()):
            files |= (_stored(entry.path, entry.md5) if entry.is_folder else {entry.path: entry.md5}) or {}
        return files

    @cached_property
    def _recorded(self) -> dict[Path, list[Entry]]:
        return provenance.outs_below(self._lock)

    @cached_property
    def _committed(self) -> dict[Path, list[Entry]]:
        text = git.committed(provenance.LOCK)
        return provenance.outs_below(provenance.Lock(text or "", "the committed dvc.lock"))


def _stored(folder: Path, md5: str) -> dict[Path, str] | None:
    """Return the files that a folder with this md5 held, if DVC's cache or a remote in a folder has the list."""
    listing = hashing.stored_listing(md5)
    return None if listing is None else {folder / name: md5 for name, md5 in listing.items()}


def _folder_md5(folder: Path, files: dict[Path, str]) -> str:
    return hashing.digest({path.relative_to(folder).as_posix(): md5 for path, md5 in files.items()})


def _kind(path: Path) -> str:
    if path == Path(REQUIREMENTS):
        return "software"
    return "data" if DATA in path.parents else "code"


def requirements(old: bytes, path: Path) -> list[Cause]:
    """Return the requirements that differ from ``old``, by package."""
    before, after = _pins(old.decode("utf-8", "replace")), _pins(path.read_text(encoding="utf-8"))
    names = sorted(name for name in {**before, **after} if before.get(name) != after.get(name))
    return [Cause("software", f"{path}: {name}", before.get(name), after.get(name)) for name in names]


def _pins(text: str) -> dict[str, str]:
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return {re.split(r"[\s<>=!~;\[@]", line, maxsplit=1)[0].lower(): line for line in lines if line}


def _output_note(old: str | None, new: str | None, file: Path, made: bool) -> str:
    if new is None:
        return "not here"
    if not made:
        return STRAY
    return "not the file that was recorded: edited, damaged, or made by hand"
