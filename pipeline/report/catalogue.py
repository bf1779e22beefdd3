"""The artifacts of a work tree, the page of each, and which job each comes from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pipeline.engine import graph
from pipeline.params import Params

KINDS = {
    "dataset": "dataset",
    "train": "run",
    "labels": "dataset",
    "theory": "theory",
    "analyse": "table",
    "figures": "figure",
    "claims": "claims",
}
INDEX = "artifacts.html"
SEVERAL = ("analyse", "figures")  # steps that make an artifact of each of their files' names


@dataclass(frozen=True)
class Artifact:
    """What one page tells of: a table, the files of a figure, of claims, or of all members of a dataset or run."""

    job: graph.Job
    name: str
    paths: tuple[Path, ...]

    @property
    def kind(self) -> str:
        """Return one of the values of `KINDS`."""
        return KINDS[self.job.step]

    @property
    def title(self) -> str:
        """Return the artifact's name in a sentence: ``table accuracy of dyck-table1``, ``run dyck-standard``."""
        if self.job.step == "claims":
            return f"claims of {self.name}"
        return f"{self.kind} {self.name}" + (f" of {self.job.id}" if self.job.step in SEVERAL else "")

    @property
    def page(self) -> str:
        """Return the path of the artifact's page from the root of the site.

        A figure's name is unique in its study, a table's in its experiment. Ids hold no underscore and names no
        hyphen, so no two pages have the same name.
        """
        owner = {"analyse": f"{self.job.id}-", "figures": f"{self.job.study}-"}.get(self.job.step, "")
        return f"artifact/{self.kind}-{owner}{self.name}.html"

    @property
    def download(self) -> str:
        """Return the stem of its rows on the site, as CSV and as Parquet; empty where it is no table."""
        is_table = self.kind in ("table", "claims", "theory")
        return f"files/{self.page.removeprefix('artifact/').removesuffix('.html')}" if is_table else ""

    @property
    def exported(self) -> str:
        """Return what ``python -m pipeline export`` takes to print its rows, those of a check with all of its study."""
        if self.kind == "table":
            return f"{self.job.study} {self.name} --experiment {self.job.id}"
        return f"{self.job.study} {self.kind}"

    @property
    def target(self) -> Path:
        """Return the file to ask an engine for."""
        shown = [path for path in self.paths if path.suffix == ".svg"]
        return (shown or self.paths)[0]

    def label(self, path: Path) -> str:
        """Return what to call a file of the artifact: the dataset or run member it holds, else its own name."""
        return path.stem if path in self._held else self.name

    def place(self, path: Path) -> str:
        """Return where the artifact's page shows a file: at the member that it holds, where there are several."""
        several = len(self._held) > 1 and path in self._held
        return f"{self.page}#member-{path.stem}" if several else self.page

    @cached_property
    def members(self) -> dict[str, Path]:
        """Return the files of a dataset's or run's members by their ids; of other artifacts none."""
        suffix = {"dataset": ".parquet", "labels": ".parquet", "train": ".safetensors"}.get(self.job.step)
        return {path.stem: path for path in self.paths if path.suffix == suffix and path.stem != "curves"}

    @cached_property
    def _held(self) -> frozenset[Path]:
        return frozenset(self.members.values())


def artifacts(params: Params) -> list[Artifact]:
    """Return all artifacts in the order of the jobs; the report itself is none."""
    outputs: dict[tuple[graph.Job, str], list[Path]] = {}
    for job in graph.jobs(params):
        if job.step in KINDS:
            for path in graph.outputs(job, params):
                name = path.name.split(".")[0] if job.step in SEVERAL else job.id
                outputs.setdefault((job, name), []).append(path)
    return [Artifact(job, name, tuple(paths)) for (job, name), paths in outputs.items()]


def by_path(known: list[Artifact]) -> dict[Path, Artifact]:
    """Return the artifact that each file belongs to."""
    return {path: artifact for artifact in known for path in artifact.paths}


def told(known: list[Artifact]) -> dict[graph.Job, str]:
    """Return the page that says what decided a job: that of the first of its artifacts."""
    pages: dict[graph.Job, str] = {}
    for artifact in known:
        pages.setdefault(artifact.job, artifact.page)
    return pages


def links(known: list[Artifact]) -> dict[graph.Job, str]:
    """Return where to read of each job: the page of its only artifact, else its part of the list of all artifacts."""
    own: dict[graph.Job, list[Artifact]] = {}
    for artifact in known:
        own.setdefault(artifact.job, []).append(artifact)
    return {job: made[0].page if len(made) == 1 else f"{INDEX}#{job.name}" for job, made in own.items()}
