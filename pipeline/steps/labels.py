"""Step ``labels``: a dataset of what the models of a run answer, for other runs to learn from."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipeline.store import checkpoints, paths, tables

if TYPE_CHECKING:
    from pipeline.engine.runner import Job


def run(job: Job) -> None:
    """Make ``data/datasets/<study>/<id>/<member>.parquet`` of each member, from the study's
    ``labels.answers``: those with one teacher at once, so that a study can compute what they share once."""
    module = importlib.import_module(f"pipeline.studies.{job.study}.labels")
    by_teacher: dict[str, dict[str, Any]] = {}
    for member, entry in job.entry.members.items():
        by_teacher.setdefault(entry.teacher, {})[member] = entry
    for teacher, members in by_teacher.items():
        path = next(
            folder / f"{teacher}.safetensors" for folder in job.inputs if (folder / f"{teacher}.safetensors").is_file()
        )
        arrays, header = checkpoints.read(path)
        for member, frame in module.answers(members, job.seed, arrays, header).items():
            out = job.out(paths.dataset_path(job.study, job.id, member))
            # Of datasets of several kinds a file names its own.
            metadata = {"kind": members[member].kind} if isinstance(module.SCHEMA, Mapping) else {}
            tables.write(frame, out, module.SCHEMA, metadata | {"params_hash": job.params_hash})
            job.say(f"{member}: {frame.height} rows")
