"""Step ``analyse``: the runs of an experiment become its result tables."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from pipeline.errors import SandglassError
from pipeline.kit.inputs import Inputs
from pipeline.store import paths, tables

if TYPE_CHECKING:
    from pipeline.engine.runner import Job


def run(job: Job) -> None:
    """Make every table that ``experiments.<id>.tables`` lists."""
    module = importlib.import_module(f"pipeline.studies.{job.study}.analysis.{job.entry.module}")
    schemas = importlib.import_module(f"schemas.{job.study}.tables").SCHEMAS
    found = module.analyse(
        Inputs(job.study, job.id, job.entry, job.settings, job.scale, job.seed, job.params_hash)
    )
    for name in job.entry.tables:
        if name not in found or name not in schemas:
            known = ", ".join(sorted(set(found) & set(schemas)))
            raise SandglassError(
                f"params/{job.study}.yaml: experiments.{job.id}.tables: no table {name!r}; known: {known}"
            )
        path = job.out(paths.table_path(job.study, job.id, name))
        tables.write(found[name], path, schemas[name], {"params_hash": job.params_hash})
        job.say(f"{name}: {found[name].height} rows")
