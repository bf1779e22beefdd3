"""Step ``report``: one plain page with every figure, claim and theory check.

Figures are vector images; where scripts run, ``vega.js`` (the only script file) puts the interactive chart in
their place. Specifications stand in the page itself, since browsers do not let a local page read local files.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from pipeline import charts, graph, tables, verdicts
from schemas.claims import Claims
from schemas.theory import Theory

if TYPE_CHECKING:
    from pipeline.runner import Job

SCRIPT = "vega.js"
TEMPLATE = Path(__file__).parents[1] / "report" / "page.html.j2"


def run(job: Job) -> None:
    """Make ``data/report/``: the page, its script, and the figures that it shows."""
    studies = [_study(job, key, study) for key, study in job.studies.items()]
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    page = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        studies=studies, scale=job.scale, params_hash=job.params_hash, number=_number, script=SCRIPT
    )
    job.out(graph.DATA / "report" / SCRIPT).write_text(charts.script_bundle(), encoding="utf-8")
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
        "chart": _inline(chart),
        "command": f"snakemake {graph.figure_path(study, name, 'svg')}",
    }


def _inline(chart: dict[str, Any]) -> Markup:
    """A specification as JSON that may stand inside a page: nothing in it can end its element."""
    drawn = {key: value for key, value in chart.items() if key != "$schema"}
    text = json.dumps(drawn, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
