"""Step ``figures`` without the renderer: to start that takes longer than all else that a job of the toy study does."""

from __future__ import annotations

import importlib
import json
from typing import Any

from pipeline.kit import charts
from pipeline.kit.results import Results
from pipeline.store import paths, tables


def run(job: Any) -> None:
    """Write each figure as its specification, a drawing of its bars, and its data."""
    module = importlib.import_module(f"pipeline.studies.{job.study}.figures.{job.entry.module}")
    results = Results(job.study, job.id, job.entry, job.settings, job.scale, job.seed, job.params_hash, job.experiments)
    for name in job.entry.figures:
        chart, data = getattr(module, name)(results)
        specification = charts.specification(chart)
        values = data[specification["encoding"]["y"]["field"]].to_list()
        bars = "".join(f'<path d="M{place},0h1v{value}h-1z"/>' for place, value in enumerate(values))
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="{len(values)}" height="100">{bars}</svg>\n'
        drawing, chart_file, table = (
            job.out(paths.figure_path(job.study, job.id, name, suffix)) for suffix in ("svg", "vl.json", "parquet")
        )
        drawing.write_text(svg, encoding="utf-8")
        chart_file.write_text(json.dumps(specification, sort_keys=True) + "\n", encoding="utf-8")
        tables.store(data, table)
