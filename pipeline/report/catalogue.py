"""The artifacts of a work tree, the page of each, and which job each comes from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.engine import graph
from pipeline.params import Params

KINDS = {
    "dataset": "dataset",
    "train": "run",
    "theory": "theory",
    "analyse": "table",
    "figures": "figure",
    "claims": "claims",
}
INDEX = "artifacts.html"


@dataclass(frozen=True)
class Artifact:
    """What one page tells of: an output file, the files of a run, those of a figure, or those of claims."""

    job: graph.Job
    name: str
    paths: tuple[Path, ...]

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return KINDS[self.job.step]

    @property
    def title(self) -> str:
        """For instance ``table accuracy of dyck`` or ``run dyck-standard``."""
        if self.job.step == "claims":
            return f"claims of {self.name}"
        return f"{self.kind} {self.name}" + (f" of {self.job.study}" if _in_study(self.job) else "")

    @property
    def page(self) -> str:
        """Its page, from the root of the site; ids hold no underscore and names no hyphen, so it is unique."""
        study = f"{self.job.study}-" if _in_study(self.job) else ""
        return f"artifact/{self.kind}-{study}{self.name}.html"

    @property
    def target(self) -> Path:
        """The file to ask an engine for."""
        shown = [path for path in self.paths if path.suffix == ".svg"]
        return (shown or self.paths)[0]


def _in_study(job: graph.Job) -> bool:
    """Whether its artifacts have names that only their study makes unique."""
    return job.step in ("analyse", "figures")


def artifacts(params: Params) -> list[Artifact]:
    """All of them, in the order of the jobs; the report itself is none."""
    found: dict[tuple[graph.Job, str], list[Path]] = {}
    for job in graph.jobs(params):
        if job.step in KINDS:
            for path in graph.outputs(job, params):
                name = path.name.split(".")[0] if _in_study(job) else job.id
                found.setdefault((job, name), []).append(path)
    return [Artifact(job, name, tuple(paths)) for (job, name), paths in found.items()]


def artifact_of(path: Path, known: list[Artifact]) -> Artifact | None:
    """The artifact among ``known`` that the file at ``path`` belongs to."""
    return next((artifact for artifact in known if path in artifact.paths), None)


def link(job: graph.Job, known: list[Artifact]) -> str:
    """Where to read of ``job``: the page of its only artifact, else its part of the list of all artifacts."""
    own = [artifact for artifact in known if artifact.job == job]
    return own[0].page if len(own) == 1 else f"{INDEX}#{job.name}"
