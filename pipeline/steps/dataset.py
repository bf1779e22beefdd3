"""Step ``dataset``: a study's generator, validated and written."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from pipeline.engine import graph
from pipeline.store import tables

if TYPE_CHECKING:
    from pipeline.engine.runner import Job


def run(job: Job) -> None:
    """Make ``data/datasets/<study>/<id>.parquet`` from the study's ``datasets.generate``."""
    module = importlib.import_module(f"pipeline.studies.{job.study}.datasets")
    frame, metadata = module.generate(job.entry, job.id, job.seed)
    path = graph.dataset_path(job.study, job.id)
    tables.write(frame, job.out(path), module.SCHEMA, metadata | {"params_hash": job.params_hash})
    job.say(f"{frame.height} rows")
