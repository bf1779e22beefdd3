"""Step ``figures``: result tables become Vega-Lite charts, with the data they show."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from altair.utils.schemapi import debug_mode

from pipeline.errors import SandglassError
from pipeline.kit import charts
from pipeline.kit.results import Results
from pipeline.store import paths

if TYPE_CHECKING:
    from pipeline.engine.runner import Job


def run(job: Job) -> None:
    """Draw every figure that ``experiments.<id>.figures`` lists.

    Where the experiment has runs, and none with a model at this scale, a figure says so.
    """
    module = importlib.import_module(f"pipeline.studies.{job.study}.figures.{job.entry.module}")
    context = Results(job.study, job.id, job.entry, job.settings, job.scale, job.seed, job.params_hash, job.experiments)
    rows = not job.entry.runs or not job.entry.tables or context.has_rows(job.entry.tables)
    for name in job.entry.figures:
        draw = getattr(module, name, None)
        if draw is None:
            raise SandglassError(
                f"params/{job.study}/experiments.yaml: {job.id}.figures: no function {name} in {module.__name__}"
            )
        title = name.replace("_", " ").capitalize()
        # Altair would check each part of a chart when it is made, and all of them again when the chart is written.
        with debug_mode(False):
            chart, data = draw(context) if rows else charts.empty(title, "no model is trained at this scale")
        charts.save(chart, data, job.out(paths.figure_path(job.study, job.id, name, "svg")).parent, name)
        job.say(name)
