"""Step ``analyse``: the runs of an experiment become its result tables."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from pipeline.errors import SandglassError
from pipeline.kit.inputs import Inputs
from pipeline.store import paths, tables

if TYPE_CHECKING:
    from pipeline.engine.runner import Job

# What an analysis returns for a table: its rows in one frame, in several, or None for a table without rows.
Made = pl.DataFrame | Sequence[pl.DataFrame] | None


def run(job: Job) -> None:
    """Make every table that ``experiments.<id>.tables`` lists.

    Where none of the experiment's runs has a model at this scale, its tables have no rows.
    """
    module = importlib.import_module(f"pipeline.studies.{job.study}.analysis.{job.entry.module}")
    schemas = importlib.import_module(f"schemas.{job.study}.tables").SCHEMAS
    context = Inputs(job.study, job.id, job.entry, job.settings, job.scale, job.seed, job.params_hash)
    if job.entry.runs and not context.runs():
        job.say("none of its runs has a model at this scale")
        results: Mapping[str, Made] = dict.fromkeys(job.entry.tables)
    else:
        results = module.analyse(context)
    for name in job.entry.tables:
        if name not in results or name not in schemas:
            known = ", ".join(sorted(set(results) & set(schemas)))
            raise SandglassError(
                f"params/{job.study}/experiments.yaml: {job.id}.tables: no table {name!r}; known: {known}"
            )
    for name, frame in finished({name: results[name] for name in job.entry.tables}, schemas, context).items():
        path = job.out(paths.table_path(job.study, job.id, name))
        tables.write(frame, path, schemas[name], {"params_hash": job.params_hash})
        job.say(f"{name}: {frame.height} rows")


def finished(
    results: Mapping[str, Made], schemas: Mapping[str, tables.Schema], context: Inputs
) -> dict[str, pl.DataFrame]:
    """Return what an analysis found as tables with the columns, their order and the types of their ``schemas``, and
    with the constant columns ``scale`` and ``params_hash`` where a schema has them."""
    stamps = {"scale": context.scale, "params_hash": context.params_hash}
    made = {}
    for name, parts in results.items():
        columns = schemas[name].to_schema().columns
        frames = [parts] if isinstance(parts, pl.DataFrame) else parts or []
        stamp = {key: value for key, value in stamps.items() if key in columns}
        made[name] = tables.conform(frames, schemas[name], **stamp)
    return made
