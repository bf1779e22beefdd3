"""What all pages share: parameters, studies, artifacts, their lineage, and the templates."""

from __future__ import annotations

import importlib
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
import pandera.polars as pa
import polars as pl

from pipeline import access
from pipeline.engine import graph
from pipeline.params import Params
from pipeline.report import catalogue, contents, forest, index, results, sources, wording
from pipeline.report.catalogue import Artifact
from pipeline.report.files import Files, identity, read_table
from pipeline.report.lineage import Lineage
from pipeline.store import paths

TEMPLATES = Path(__file__).parent
LARGEST = {"csv": 50_000, "parquet": 500_000}  # bytes of a table that the site holds; all are a command away


class Site:
    """The work tree as pages show it. ``from_store`` says that they are drawn from what is here, however little."""

    def __init__(self, params: Params, from_store: bool = False) -> None:
        self.params, self.from_store = params, from_store
        self.files = Files()
        self.artifacts = catalogue.artifacts(params)
        self.by_path = catalogue.by_path(self.artifacts)
        self.by_name = {(each.kind, each.job.id, each.name): each for each in self.artifacts}
        self.links = catalogue.links(self.artifacts)
        self.told = catalogue.told(self.artifacts)
        self.lineage = Lineage(params)
        self.studies = results.load(params, partial=from_store)
        edits = graph.accepted()
        edited = {edit["job"] for edit in edits}
        code = {
            job.stage: {str(p): self.files.md5(p) for p in graph.code(job, params)}
            for job in sorted(graph.jobs(params), key=lambda job: job.stage)
            if job.stage in edited
        }
        self.accepted = [e for stage, files in code.items() for e in graph.standing(edits, stage, files)]
        self.superseded = len(edits) - len(self.accepted)
        self.identity = identity(params, self.files)
        self.described: dict[type[pa.DataFrameModel], str] = {}
        self._downloads: dict[str, dict[str, bytes]] = {}
        self._tables: dict[Path, pl.DataFrame] = {}
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals |= {"site": self, "words": wording, "catalogue": catalogue, "forest": forest}

    def render(self, template: str, page: str, **values: Any) -> str:
        """Return the HTML of the page at ``page`` (a path from the root of the site)."""
        html = self._environment.get_template(template).render(root=_root(page), page=page, **values)
        if contents.MARK in html:
            html = html.replace(contents.MARK, str(self.blocks(page).contents(contents.headings(html))))
        return html

    def blocks(self, page: str) -> Any:
        """Return the macros of ``blocks.html.j2``, with links that are right on ``page``."""
        return self._environment.get_template("blocks.html.j2").make_module({"root": _root(page)})

    def is_here(self, path: Path) -> bool:
        """Return whether the file at ``path`` can be shown. Of a built work tree all can: a missing one is an error."""
        return not self.from_store or path.is_file()

    def lacks(self, artifact: Artifact) -> list[Path]:
        """Return the files of ``artifact`` that are not here."""
        return [path for path in artifact.paths if not self.is_here(path)]

    def is_outdated(self, study: str) -> bool:
        """Return whether claims from the store were judged with other parameters than those of today."""
        today = graph.job("claims", study, self.params).params_hash(self.params)
        return self.from_store and any(row["params_hash"] != today for row in self.studies[study].claims)

    def says(self, check: str) -> str:
        """Return what a theory check shows, in a sentence: the first line of its module, without ids and sources."""
        job = self.theory(check).job
        module = graph.entry(job, self.params).module
        doc = sources.module_doc(Path("pipeline/studies") / job.study / "theory" / f"{module}.py")
        return wording.statement(doc)

    def theory(self, check: str) -> Artifact:
        """Return the artifact of a theory check."""
        return self.by_name["theory", check, check]

    def figure(self, study: str, name: str) -> Artifact:
        """Return the artifact of a figure."""
        return self.by_name["figure", self.studies[study].figures[name], name]

    def tables(self, study: str, name: str) -> list[Artifact]:
        """Return the artifacts of a result table, one for each experiment that makes it."""
        return [self.by_name["table", experiment, name] for experiment in self.studies[study].tables[name]]

    def source_of(self, artifact: Artifact) -> sources.Source | None:
        """Return the function that makes an artifact."""
        return next(iter(index.made_by(artifact, self.params)), None)

    def code(self, job: graph.Job) -> list[Path]:
        """Return the files of code that decide the result of ``job``."""
        return graph.code(job, self.params)

    @cached_property
    def jobs_by_code(self) -> dict[Path, int]:
        """Return how many jobs depend on each file of code, by path."""
        jobs = dict.fromkeys(artifact.job for artifact in self.artifacts)
        counts = Counter(path for job in jobs for path in self.code(job))
        return dict(sorted(counts.items()))

    def data(self, job: graph.Job) -> list[Path]:
        """Return the files that ``job`` reads and other jobs make."""
        return graph.data(job, self.params)

    def errata(self) -> list[results.Erratum]:
        """Return the errata of all studies."""
        return [erratum for study in self.studies.values() for erratum in study.errata]

    def downloads(self, artifact: Artifact) -> dict[str, bytes]:
        """Return a table's content by suffix, as Parquet and as CSV.

        Empty if it is not here, and without what would be larger than `LARGEST`.
        """
        if artifact.page not in self._downloads:
            files = {}
            if artifact.download and not self.lacks(artifact):
                files["parquet"] = artifact.paths[0].read_bytes()
                files["csv"] = access.to_csv(pl.read_parquet(artifact.paths[0])).encode()
            fit = {suffix: content for suffix, content in files.items() if len(content) <= LARGEST[suffix]}
            self._downloads[artifact.page] = fit
        return self._downloads[artifact.page]

    def table(self, artifact: Artifact) -> tuple[pl.DataFrame, type[pa.DataFrameModel]]:
        """Return a result table of one experiment and its schema."""
        schema = importlib.import_module(f"schemas.{artifact.job.study}.tables").SCHEMAS[artifact.name]
        path = paths.table_path(artifact.job.study, artifact.job.id, artifact.name)
        if path not in self._tables:
            self._tables[path] = self.read(path, schema)
        return self._tables[path], schema

    def read(self, path: Path, schema: type[pa.DataFrameModel]) -> pl.DataFrame:
        """Return the table at ``path``; raises SandglassError as `pipeline.report.files.read_table` does."""
        return read_table(path, schema, pulled=self.from_store)


def _root(page: str) -> str:
    return "../" * page.count("/")
