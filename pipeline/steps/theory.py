"""Step ``theory``: theorems and closed forms, executed; one row per check."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from pipeline.store import paths, tables
from schemas.theory import Theory

if TYPE_CHECKING:
    from pipeline.engine.runner import Job


def run(job: Job) -> None:
    """Make ``data/theory/<study>/<id>.parquet`` from the module's ``check``."""
    module = importlib.import_module(f"pipeline.studies.{job.study}.theory.{job.entry.module}")
    frame = module.check(job.entry, job.id, job.seed)
    path = job.out(paths.theory_path(job.study, job.id))
    tables.write(frame, path, Theory, {"params_hash": job.params_hash})
    failed = frame.filter(~frame["passed"])["check"].to_list()
    job.say(f"{frame.height} checks" + (f", of which do not hold: {', '.join(failed)}" if failed else ", all hold"))
