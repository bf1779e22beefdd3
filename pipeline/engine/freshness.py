"""What Snakemake may believe: parameters as files, its own records read with care, and file times.

Snakemake compares times only: an input newer than an output is a reason to run. Everything here is
about giving it times that say what is true. Paths are relative to the work tree.
"""

from __future__ import annotations

import base64
import json
import math
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from pipeline.engine import graph
from pipeline.params import Params

TRACKED = graph.STATE / "params"
RECORDS = graph.STATE / "records"  # Snakemake's, of jobs that DVC may not know of yet
SNAKEMAKE = Path(".snakemake")
STALE_BEFORE = 1e8  # seconds: an output dated before 1973 was marked stale


# --- parameters -----------------------------------------------------------------------------------


def tracked_file(job: graph.Job) -> Path:
    """Return the file of the tracked parameters of ``job``, which the Snakefile states as an input."""
    return TRACKED / f"{job.name}.json"


def write_tracked(params: Params) -> None:
    """Write the file of every job whose tracked parameters differ from it; remove those of other jobs."""
    TRACKED.mkdir(parents=True, exist_ok=True)
    for job in graph.jobs(params):
        file, text = tracked_file(job), job.tracked_text(params)
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            temporary = file.with_suffix(".tmp")
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(file)
    # Looked at only now: a file that a kill left under a temporary name may have been written over and renamed.
    for file in set(TRACKED.iterdir()) - {tracked_file(job) for job in graph.jobs(params)}:
        file.unlink()


# --- what Snakemake finished ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Record:
    """Snakemake's note of the job that made a file: its inputs and its times, by the clock of the file system."""

    inputs: tuple[str, ...]
    started: float
    ended: float  # the time of the file itself


def set_records_aside() -> None:
    """Move Snakemake's records away from it: it would trust them although DVC has built other files since."""
    for file in _files(SNAKEMAKE / "metadata"):
        target = RECORDS / file.relative_to(SNAKEMAKE / "metadata")
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)
    for file in _files(SNAKEMAKE / "incomplete"):  # marks of a killed run; DVC sees what is incomplete
        file.unlink()


def drop_records() -> None:
    """Delete the records of Snakemake that were set aside."""
    shutil.rmtree(RECORDS, ignore_errors=True)


def finished(params: Params) -> dict[graph.Job, bool]:
    """Return the jobs whose outputs are as Snakemake left them, by its records, and whether they are current.

    Current means that none of their inputs was touched after they started, and that the step read the
    parameters that params.yaml has now. A time of change (ctime) is asked for, which cannot be set back.
    """
    records = _records()
    states = {}
    for job in graph.jobs(params):
        outputs = [(path, records.get(str(path))) for path in graph.outputs(job, params)]
        made = [r for path, r in outputs if r is not None and path.is_file() and _mtime(path) == r.ended]
        if len(made) == len(outputs):
            untouched = all(_changed(path) <= record.started for record in made for path in record.inputs)
            states[job] = untouched and _read_by_step(job) in (None, job.params_hash(params))
    return states


def _records() -> dict[str, _Record]:
    """Return Snakemake's records by the path of the file that was made.

    Of two records of one file, the one that was not set aside yet is returned: it is the newer one.
    """
    records = {}
    for folder, file in [(each, file) for each in (RECORDS, SNAKEMAKE / "metadata") for file in _files(each)]:
        # Its name is that path in base64, in pieces of which all but the last begin with "@".
        name = "".join(part.removeprefix("@") for part in file.relative_to(folder).parts)
        try:
            noted = json.loads(file.read_text(encoding="utf-8"))
            record = _Record(tuple(noted["input"]), float(noted["starttime"]), float(noted["endtime"]))
            records[base64.urlsafe_b64decode(name).decode()] = record
        except (ValueError, KeyError, TypeError):  # cut off by a kill
            continue
    return records


def _read_by_step(job: graph.Job) -> str | None:
    """Return the md5 of the parameters that the step says it read (params.yaml may have changed to and fro)."""
    try:
        noted = json.loads((graph.LOGS / "steps" / f"{job.name}.json").read_text(encoding="utf-8"))
        return noted.get("params_hash")
    except (OSError, ValueError, AttributeError):
        return None


# --- file times -----------------------------------------------------------------------------------


def set_times(params: Params, stale: set[str]) -> None:
    """Date the outputs of stale stages before any input, and those of fresh ones not before their inputs.

    Inputs dated later than now, by a clock that goes ahead, are dated now: whatever is made of them would be older than
    they are, which Snakemake takes for a failure.
    """
    times: dict[Path, float] = {}  # by file, minus infinity where there is none; code is an input of many jobs

    def time_of(path: Path) -> float:
        if path not in times:
            times[path] = _mtime(path) if path.is_file() else -math.inf
            if times[path] > time.time():
                os.utime(path)
                times[path] = _mtime(path)
        return times[path]

    for job in graph.jobs(params):
        inputs = (*graph.data(job, params), *graph.code(job, params), tracked_file(job))
        newest = max(map(time_of, inputs))
        outputs = [path for path in graph.outputs(job, params) if path.is_file()]
        if job.stage in stale:
            for path in outputs:
                _mark_stale(path)
        elif outputs and newest > min(map(_mtime, outputs)):
            for path in outputs:
                os.utime(path)


def _mark_stale(path: Path) -> None:
    if _mtime(path) > STALE_BEFORE:
        # Each time another: DVC knows a file's md5 by inode, time and size, and inodes are used again.
        early = time.time_ns() // 1000
        os.utime(path, ns=(early, early))


def _mtime(path: Path) -> float:
    return path.stat().st_mtime


def _changed(path: str) -> float:
    """Return when the file or its name last changed; infinity if the file is gone."""
    try:
        return Path(path).stat().st_ctime
    except OSError:
        return float("inf")


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
