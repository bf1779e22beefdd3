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
    """Make every table that ``experiments.<id>.tables`` lists.

    The module's ``analyse`` returns, by table, a frame or a list of frames; they get the columns, their order and the
    types of the table's schema, and its constant columns ``scale`` and ``params_hash``.
    """
    module = importlib.import_module(f"pipeline.studies.{job.study}.analysis.{job.entry.module}")
    schemas = importlib.import_module(f"schemas.{job.study}.tables").SCHEMAS
    found = module.analyse(
        Inputs(job.study, job.id, job.entry, job.settings, job.scale, job.seed, job.params_hash)
    )
    stamps = {"scale": job.scale, "params_hash": job.params_hash}
    for name in job.entry.tables:
        if name not in found or name not in schemas:
            known = ", ".join(sorted(set(found) & set(schemas)))
            raise SandglassError(
                f"params/{job.study}.yaml: experiments.{job.id}.tables: no table {name!r}; known: {known}"
            )
        columns = schemas[name].to_schema().columns
        stamp = {key: value for key, value in stamps.items() if key in columns}
        parts = found[name] if isinstance(found[name], list) else [found[name]]
        frame = tables.conform(parts, schemas[name], **stamp)
        path = job.out(paths.table_path(job.study, job.id, name))
        tables.write(frame, path, schemas[name], {"params_hash": job.params_hash})
        job.say(f"{name}: {frame.height} rows")
