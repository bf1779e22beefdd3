"""Step ``report``: one plain page with every figure, claim and theory check."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from pipeline import graph, tables, verdicts
from schemas.claims import Claims
from schemas.theory import Theory

if TYPE_CHECKING:
    from pipeline.runner import Job

TEMPLATE = Path(__file__).parents[1] / "report" / "page.html.j2"


def run(job: Job) -> None:
    """Make ``data/report/``: the page, and the figures that it shows."""
    studies = [_study(job, key, study) for key, study in job.studies.items()]
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    page = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        studies=studies, scale=job.scale, params_hash=job.params_hash, number=_number
    )
    job.out(graph.DATA / "report" / "index.html").write_text(page, encoding="utf-8")


def _study(job: Job, key: str, study: Any) -> dict[str, Any]:
    claims = tables.read(graph.claims_path(key, "parquet"), Claims)
    theory = [
        row
        for check in study.theory
        for row in tables.read(graph.theory_path(key, check), Theory).iter_rows(named=True)
    ]
    return {
        "id": key,
        "title": study.title,
        "source": study.source,
        "claims": claims.to_dicts(),
        "summary": verdicts.summary(claims).to_dicts(),
        "theory": theory,
        "figures": [_figure(job, key, name) for name in study.figures],
    }


def _figure(job: Job, study: str, name: str) -> dict[str, Any]:
    """Copy the figure's files beside the page; the md5 is that of the data it shows."""
    for suffix in graph.FIGURE_SUFFIXES:
        content = graph.figure_path(study, name, suffix).read_bytes()
        job.out(graph.DATA / "report" / "figures" / study / f"{name}.{suffix}").write_bytes(content)
    data = graph.figure_path(study, name, "parquet")
    chart = json.loads(graph.figure_path(study, name, "vl.json").read_text(encoding="utf-8"))
    return {
        "name": name,
        "path": f"figures/{study}/{name}",
        "data": str(data),
        "md5": hashlib.md5(data.read_bytes()).hexdigest(),
        "description": chart.get("description", name),
        "command": f"snakemake {graph.figure_path(study, name, 'svg')}",
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
