"""Step ``figures``: result tables become Vega-Lite charts, with the data they show."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.kit import charts
from pipeline.kit.results import Results

if TYPE_CHECKING:
    from pipeline.engine.runner import Job


def run(job: Job) -> None:
    """Draw every figure that ``studies.<id>.figures`` lists."""
    module = importlib.import_module(f"pipeline.studies.{job.study}.figures")
    context = Results(job.study, job.entry, job.scale, job.seed, job.params_hash)
    for name in job.entry.figures:
        if name not in module.FIGURES:
            known = ", ".join(module.FIGURES)
            raise SandglassError(
                f"params.yaml: studies.{job.study}.figures: no figure {name!r}; known: {known}"
            )
        chart, data = module.FIGURES[name](context)
        charts.save(chart, data, job.out(graph.figure_path(job.study, name, "svg")).parent, name)
        job.say(name)
