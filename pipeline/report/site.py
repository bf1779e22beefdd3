"""The site: every page from the results as they lie there, with one set of templates."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import pandera.polars as pa
import polars as pl

from pipeline.engine import graph
from pipeline.kit import charts
from pipeline.params import Params
from pipeline.report import cards, catalogue, figures, results, wording
from pipeline.report.catalogue import Artifact
from pipeline.report.files import Files, identity
from pipeline.report.lineage import Lineage
from pipeline.report.study import StudyText
from pipeline.store import tables

TEMPLATES = Path(__file__).parent
COPIED = ("style.css", "site.js")
VEGA = "vega.js"


class Site:
    """What all pages share: parameters, studies, artifacts, their lineage, and the templates."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self.files = Files()
        self.artifacts = catalogue.artifacts(params)
        self.lineage = Lineage(params)
        self.studies = results.load(params)
        self.accepted = graph.accepted()
        self.identity = identity(params, self.files)
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._environment.globals |= {"site": self, "words": wording, "cards": cards, "catalogue": catalogue}

    def render(self, template: str, page: str, **values: Any) -> str:
        """The page at ``page`` (from the root of the site)."""
        return self._environment.get_template(template).render(root=_root(page), page=page, **values)

    def blocks(self, page: str) -> Any:
        """The macros of ``blocks.html.j2``, with links that are right on ``page``."""
        return self._environment.get_template("blocks.html.j2").make_module({"root": _root(page)})

    def artifact(self, kind: str, study: str, name: str) -> Artifact:
        """By kind, study and name."""
        return next(a for a in self.artifacts if (a.kind, a.job.study, a.name) == (kind, study, name))

    def artifact_of(self, path: Path) -> Artifact | None:
        """The artifact that the file at ``path`` belongs to."""
        return catalogue.artifact_of(path, self.artifacts)

    def code(self, job: graph.Job) -> list[Path]:
        """The files of code that decide the result of ``job``."""
        return graph.code(job, self.params)

    def data(self, job: graph.Job) -> list[Path]:
        """The files that ``job`` reads and other jobs make."""
        return graph.data(job, self.params)

    def errata(self) -> list[results.Erratum]:
        """Of all studies."""
        return [erratum for study in self.studies.values() for erratum in results.errata(study)]

    def link(self, job: graph.Job) -> str:
        """Where to read of ``job``, from the root of the site."""
        return catalogue.link(job, self.artifacts)

    def table(self, study: str, name: str) -> tuple[pl.DataFrame, type[pa.DataFrameModel]]:
        """A result table and its schema."""
        schema = importlib.import_module(f"schemas.{study}.tables").SCHEMAS[name]
        return tables.read(graph.table_path(study, name), schema), schema


def build(params: Params, out: Callable[[Path], Path]) -> int:
    """Write the site of ``params``; ``out`` says where to write a file of ``data/report/``. Returns its pages.

    Raises SandglassError if a result is damaged, or a study's text asks for what is not there.
    """
    site = Site(params)
    pages = _pages(site)
    for page, text in pages.items():
        out(graph.DATA / "report" / page).write_text(text, encoding="utf-8")
    for name, content in _assets(site).items():
        out(graph.DATA / "report" / name).write_bytes(content)
    return len(pages)


def _pages(site: Site) -> dict[str, str]:
    pages = {
        name: site.render(f"{name}.j2", name)
        for name in ("index.html", "theory.html", "errata.html", catalogue.INDEX)
    }
    for study in site.studies.values():
        content, headings = StudyText(site, study).render()
        pages[study.page] = site.render(
            "study.html.j2", study.page, study=study, content=content, headings=headings
        )
        for each in study.references:
            pages[each.page] = site.render("reference.html.j2", each.page, study=study, reference=each)
    for artifact in site.artifacts:
        card = cards.card(site, artifact)
        pages[artifact.page] = site.render("artifact.html.j2", artifact.page, artifact=artifact, card=card)
    return pages


def _assets(site: Site) -> dict[str, bytes]:
    found = {name: (TEMPLATES / name).read_bytes() for name in COPIED}
    found[VEGA] = charts.script_bundle().encode()
    for artifact in site.artifacts:
        if artifact.kind == "figure":
            found |= figures.files(artifact.job.study, artifact.name)
    return found


def _root(page: str) -> str:
    return "../" * page.count("/")
