"""Step ``labels``: a dataset of what the models of a run answer, for other runs to learn from."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from pipeline.store import checkpoints, paths, tables

if TYPE_CHECKING:
    from pipeline.engine.runner import Job


def run(job: Job) -> None:
    """Make ``data/datasets/<study>/<id>/<member>.parquet`` of each member, from the study's ``labels.answer``."""
    module = importlib.import_module(f"pipeline.studies.{job.study}.labels")
    for member, entry in job.entry.members.items():
        file = f"{entry.teacher}.safetensors"
        path = next(folder / file for folder in job.inputs if (folder / file).is_file())
        arrays, header = checkpoints.read(path)
        frame, metadata = module.answer(entry, member, job.seed, arrays, header)
        out = job.out(paths.dataset_path(job.study, job.id, member))
        tables.write(frame, out, module.SCHEMA, metadata | {"params_hash": job.params_hash})
        job.say(f"{member}: {frame.height} rows")
