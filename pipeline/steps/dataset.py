"""Step ``dataset``: a study's generator, validated and written."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from pipeline.store import paths, tables

if TYPE_CHECKING:
    from pipeline.engine.runner import Job


def run(job: Job) -> None:
    """Make ``data/datasets/<study>/<id>/<member>.parquet`` of each member, from the study's ``datasets.generate``."""
    module = importlib.import_module(f"pipeline.studies.{job.study}.datasets")
    for member, entry in job.entry.members.items():
        frame, metadata = module.generate(entry, member, job.seed)
        path = job.out(paths.dataset_path(job.study, job.id, member))
        tables.write(frame, path, module.SCHEMA, metadata | {"params_hash": job.params_hash})
        job.say(f"{member}: {frame.height} rows")
