"""The chain of jobs behind some artifacts, with what dvc.lock recorded of each.

``Chain`` joins three statements of the same thing: the graph as the parameters ask for it now
(`pipeline.engine.graph`), the record of what was built (`pipeline.audit.provenance`) and the files that lie here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pipeline.audit import hashing
from pipeline.audit.hashing import Listing
from pipeline.audit.provenance import Artifact, Entry, Stage, outs_below, read_lock
from pipeline.engine import graph
from pipeline.params import Params, scales
from pipeline.store.paths import DATA


@dataclass(frozen=True)
class File:
    """What dvc.lock says of a file; ``md5`` and ``size`` (bytes) are None where it does not say."""

    path: Path
    md5: str | None
    size: int | None


class Chain:
    """The jobs that ``artifacts`` come from, each after the jobs it depends on."""

    def __init__(self, artifacts: Iterable[Artifact], params: Params) -> None:
        """Read dvc.lock in the current directory. Raises SandglassError if it is damaged."""
        self.artifacts = list(artifacts)
        self.params = params
        self.lock = read_lock()
        self.parents: dict[graph.Job, list[graph.Job]] = {}
        ahead = [artifact.job for artifact in self.artifacts if artifact.job]
        while ahead:
            job = ahead.pop()
            if job not in self.parents:
                self.parents[job] = graph.parents(job, params)
                ahead += self.parents[job]
        self.jobs = [job for job in graph.jobs(params) if job in self.parents]
        self._read = {parent for parents in self.parents.values() for parent in parents}
        self._asked: dict[graph.Job | None, dict[Path, None]] = {}  # in order, each path once
        for artifact in self.artifacts:
            self._asked.setdefault(artifact.job, {})[artifact.path] = None
        # Each file and each list is asked for many times.
        self.md5 = cache(hashing.md5)
        self.contents = cache(self._contents)

    @property
    def made(self) -> dict[Path, Entry]:
        """Return the outputs that all stages recorded, by path."""
        return self.lock.made

    @cached_property
    def _made_below(self) -> dict[Path, list[Entry]]:
        return outs_below(self.lock)

    @cached_property
    def _read_in(self) -> dict[Path, Listing]:
        """Return, by folder, the files in it that stages recorded as read one by one, as trainings read datasets."""
        listings: dict[Path, Listing] = {}
        for stage in self.lock.values():
            for path, entry in stage.deps.items():
                if is_data(path) and not entry.is_folder:
                    listings.setdefault(path.parent, {})[path.name] = entry.md5
        return listings

    def stage(self, job: graph.Job) -> Stage | None:
        """Return the record of ``job`` in dvc.lock, or None."""
        return self.lock.get(job.stage)

    def behind(self, job: graph.Job) -> list[graph.Job]:
        """Return ``job`` and all jobs that it comes from, in the order of the graph."""
        ancestry, ahead = {job}, [job]
        while ahead:
            fresh = [parent for parent in self.parents[ahead.pop()] if parent not in ancestry]
            ancestry.update(fresh)
            ahead += fresh
        return [each for each in self.jobs if each in ancestry]

    def is_asked(self, path: Path) -> bool:
        """Return whether ``path`` is one of the artifacts that the chain was asked for."""
        return any(path in paths for paths in self._asked.values())

    def requested_outputs(self, job: graph.Job) -> list[Path]:
        """Return the outputs that were asked for; of a job whose results others on the chain read, all."""
        return graph.outputs(job, self.params) if job in self._read else list(self._asked[job])

    def outputs(self, job: graph.Job) -> list[File]:
        """Return the wanted outputs of ``job``, as recorded."""
        stage = self.stage(job)
        return [self.recorded(stage.outs if stage else {}, path) for path in self.requested_outputs(job)]

    def code(self, job: graph.Job) -> list[File]:
        """Return the code that the job read when its outputs were recorded; a folder whose list is lost as one."""
        stage = self.stage(job)
        files: list[File] = []
        for entry in stage.deps.values() if stage else ():
            if is_data(entry.path):
                continue
            listing = self.contents(entry) if entry.is_folder else None
            if listing is None:
                files.append(File(entry.path, entry.md5, entry.size))
            else:
                files += [File(entry.path / name, each, None) for name, each in listing.items()]
        return sorted(files, key=lambda file: file.path)

    def data(self, job: graph.Job) -> list[Entry]:
        """Return the data that the job read when its outputs were recorded: files and folders."""
        stage = self.stage(job)
        return [entry for entry in stage.deps.values() if is_data(entry.path)] if stage else []

    def recorded(self, entries: dict[Path, Entry], path: Path) -> File:
        """Return what ``entries`` say of ``path``: itself, or in the list of a folder."""
        entry = covering(entries, path)
        if entry is None or not entry.is_folder:
            return File(path, entry.md5, entry.size) if entry else File(path, None, None)
        md5 = (self.contents(entry) or {}).get(path.relative_to(entry.path).as_posix())
        size = path.stat().st_size if md5 and path.is_file() else None
        return File(path, md5, size)

    def _contents(self, entry: Entry) -> Listing | None:
        """Return the files of a recorded folder, from the first list that has the recorded md5, or None."""
        proposals = (
            lambda: hashing.stored_listing(entry.md5),
            lambda: self.made_in(entry.path),
            lambda: self._read_in.get(entry.path),
            lambda: {file.relative_to(entry.path).as_posix(): self.md5(file) for file in hashing.files_in(entry.path)},
        )
        for propose in proposals:
            listing = propose()
            if listing and hashing.digest(listing) == entry.md5:
                return listing
        return None

    def made_in(self, folder: Path) -> Listing | None:
        """Return the files below ``folder`` that stages recorded as outputs; None if one folder's list is lost."""
        files: Listing = {}
        for out in self._made_below.get(folder, ()):
            if out.path == folder:
                continue
            below = out.path.relative_to(folder)
            if not out.is_folder:
                files[below.as_posix()] = out.md5
            elif (listing := self.contents(out)) is not None:
                files |= {(below / name).as_posix(): each for name, each in listing.items()}
            else:
                return None
        return files


def is_data(path: Path) -> bool:
    """Return whether ``path`` lies in data/, where jobs and reference sets have their files."""
    return DATA in path.parents


def covering(entries: dict[Path, Entry], path: Path) -> Entry | None:
    """Return the entry of ``path``, or of a folder that holds it; None if there is neither."""
    return next((entries[each] for each in (path, *path.parents) if each in entries), None)


@dataclass(frozen=True)
class Parameter:
    """A value that decided a result: as written in the parameter files, and at its scale."""

    name: str  # path, as `Params.value` takes it
    written: Any
    value: Any


def parameters(stage: Stage) -> list[Parameter]:
    """Return every single value that the job tracked, when its outputs were recorded."""
    scale = stage.params.get("scale")
    leaves = (leaf for name, value in stage.params.items() for leaf in _leaves(name, value))
    return [Parameter(name, value, scales.resolve(value, str(scale))) for name, value in leaves]


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and not scales.is_per_scale(value):
        for key, child in value.items():
            yield from _leaves(f"{name}.{key}", child)
    else:
        yield name, value


def accepted_for(chain: Chain, job: graph.Job, edits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those edits by which a file of code came into the record of ``job`` that was not there when it ran."""
    return graph.standing(edits, job.stage, {str(file.path): file.md5 for file in chain.code(job)})
