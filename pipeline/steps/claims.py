"""Step ``claims``: predicates over result tables become verdicts."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING

from pipeline.kit import verdicts
from pipeline.kit.results import Results
from pipeline.store import paths, tables
from schemas.claims import Claims

if TYPE_CHECKING:
    from pipeline.engine.runner import Job


def run(job: Job) -> None:
    """Make the claims table, and how its claims stand as JSON for ``dvc metrics``."""
    module = importlib.import_module(f"pipeline.studies.{job.study}.claims")
    frame = module.judge(
        Results(job.study, job.id, job.entry, job.settings, job.scale, job.seed, job.params_hash, job.experiments)
    )
    tables.write(frame, job.out(paths.claims_path(job.study, "parquet")), Claims)
    text = json.dumps(verdicts.as_metrics(frame), indent=1)
    job.out(paths.claims_path(job.study, "json")).write_text(text + "\n", encoding="utf-8")
    counts = frame["verdict"].value_counts(sort=True).iter_rows()
    job.say("; ".join(f"{count} {verdict}" for verdict, count in counts))
