"""The jobs that params.yaml asks for: their names, commands, tracked parameters and files.

Snakefile and dvc.yaml state the same graph in their own languages (a test compares the two); this
module is what the steps themselves, the start of an engine and the summaries know of it.
Paths are relative to the root of the repository.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pipeline.errors import SandglassError
from pipeline.params import Params

DATA = Path("data")
REFERENCE = DATA / "reference"  # one folder per frozen set of results (`pipeline.references.importing`)
STATE = Path(".sandglass")  # parameter files and locks of this work tree, git-ignored
LOGS = Path("logs")
WORK = Path(".work")  # resume checkpoints, git-ignored
FIGURE_SUFFIXES = ("vl.json", "parquet", "svg", "png")
RUN_FILES = ("model.safetensors", "curves.parquet", "curves.json")
ACCEPTED = Path("accepted.jsonl")  # cosmetic edits of code, declared harmless; part of the report

_SECTION = {"dataset": "datasets", "train": "runs", "theory": "theory"}
# Lists are tracked so that a job runs again when something it consumed is removed.
_STUDY_FIELDS = {
    "analyse": ("analysis", "datasets", "language", "model", "runs", "tables"),
    "figures": ("figures", "tables", "theory"),
    "claims": ("claims", "tables", "theory"),
}


# Code is an input, as single modules: a neighbour's edit must not rerun a step. What ends in / stands for all
# files of that folder. {fields} are those of the job's entry in params.yaml. dvc.yaml states the same (a test
# compares), and another test compares with what each step really imports.
_EVERY = "requirements.txt pipeline/params/scales.py pipeline/steps/{step}.py "
_CODE = {
    "dataset": """pipeline/kit/streams.py pipeline/store/tables.py pipeline/languages/{language}.py
        pipeline/studies/{study}/datasets.py schemas/{study}/datasets.py""",
    "train": """pipeline/kit/streams.py pipeline/store/tables.py pipeline/store/checkpoints.py pipeline/languages/{language}.py
        pipeline/models/{model}.py pipeline/training/objectives/{objective}.py
        pipeline/training/core.py pipeline/training/packing.py pipeline/training/ensemble.py
        pipeline/studies/{study}/runs.py schemas/{study}/datasets.py schemas/curves.py""",
    "theory": """pipeline/kit/streams.py pipeline/store/tables.py pipeline/kit/stats.py schemas/theory.py
        pipeline/languages/{language}.py pipeline/models/{model}.py pipeline/store/checkpoints.py
        pipeline/studies/{study}/constructions.py pipeline/studies/{study}/theory/{module}.py""",
    "analyse": """pipeline/kit/streams.py pipeline/store/tables.py pipeline/store/checkpoints.py pipeline/kit/stats.py schemas/curves.py
        pipeline/languages/{language}.py pipeline/models/ pipeline/studies/{study}/analysis/
        schemas/{study}/datasets.py schemas/{study}/tables.py""",
    "figures": """pipeline/store/tables.py pipeline/kit/charts.py pipeline/kit/results.py
        pipeline/studies/{study}/figures/ schemas/{study}/tables.py schemas/theory.py""",
    "claims": """pipeline/store/tables.py pipeline/kit/results.py pipeline/kit/verdicts.py schemas/claims.py
        pipeline/studies/{study}/claims/ schemas/{study}/tables.py schemas/theory.py""",
    # It prints the md5 of all code, so it depends on all of it.
    "report": """pipeline/kit/charts.py pipeline/store/checkpoints.py pipeline/kit/results.py pipeline/kit/stats.py
        pipeline/kit/streams.py pipeline/store/tables.py pipeline/kit/verdicts.py accepted.jsonl
        pipeline/languages/ pipeline/models/ pipeline/report/ pipeline/steps/ pipeline/studies/ pipeline/training/
        schemas/""",
}


@dataclass(frozen=True)
class Job:
    """One job of the graph, for instance ``Job("train", "dyck-standard", "dyck")``."""

    step: str
    id: str
    study: str

    @property
    def name(self) -> str:
        """For file names and messages: ``train-dyck-standard``."""
        return f"{self.step}-{self.id}"

    @property
    def stage(self) -> str:
        """Its name in dvc.yaml: ``train@dyck-standard``."""
        return self.step if self.step == "report" else f"{self.step}@{self.id}"

    @property
    def tracked(self) -> tuple[str, ...]:
        """Dotted paths of the parameters that decide its result; nothing else of params.yaml reaches it."""
        if self.step in _SECTION:
            return ("scale", "seed", f"{_SECTION[self.step]}.{self.id}")
        if self.step == "report":
            return ("scale", "seed", "studies")  # other files name their parameters: `params_hash`
        fields = _STUDY_FIELDS[self.step]
        return ("scale", "seed", *(f"studies.{self.id}.{field}" for field in fields))

    def tracked_text(self, params: Params) -> str:
        """Its tracked parameters as they stand in params.yaml, by path, as JSON."""
        return json.dumps({path: params.value(path) for path in self.tracked}, sort_keys=True)

    def params_hash(self, params: Params) -> str:
        """md5 of ``tracked_text``: what a step says it read, and what an engine compares with today's."""
        return hashlib.md5(self.tracked_text(params).encode()).hexdigest()

    @property
    def study_fields(self) -> tuple[str, ...]:
        """The fields of its study's entry that it may read: the tracked ones."""
        return _STUDY_FIELDS.get(self.step, ())


def jobs(params: Params) -> Iterator[Job]:
    """Every job, each after the jobs it depends on."""
    for step, section in _SECTION.items():
        for key, entry in getattr(params, section).items():
            yield Job(step, key, entry.study)
    for step in ("analyse", "figures", "claims"):
        for study in params.studies:
            yield Job(step, study, study)
    yield Job("report", "all", "all")


def dataset_path(study: str, dataset: str) -> Path:
    """One file per dataset."""
    return DATA / "datasets" / study / f"{dataset}.parquet"


def run_folder(study: str, run: str) -> Path:
    """Holds ``model.safetensors`` (parameters of all replicas), ``curves.parquet`` and, for ``dvc plots``,
    ``curves.json`` (medians over replicas)."""
    return DATA / "runs" / study / run


def theory_path(study: str, check: str) -> Path:
    """One file per theory entry."""
    return DATA / "theory" / study / f"{check}.parquet"


def table_path(study: str, table: str) -> Path:
    """One file per result table."""
    return DATA / "tables" / study / f"{table}.parquet"


def figure_path(study: str, figure: str, suffix: str) -> Path:
    """The specification, its data, SVG and PNG of a figure (`FIGURE_SUFFIXES`)."""
    return DATA / "figures" / study / f"{figure}.{suffix}"


def claims_path(study: str, suffix: str) -> Path:
    """``parquet`` or, for ``dvc metrics``, ``json``."""
    return DATA / "claims" / study / f"claims.{suffix}"


def outputs(job: Job, params: Params) -> list[Path]:
    """The files that ``job`` makes."""
    if job.step == "dataset":
        return [dataset_path(job.study, job.id)]
    if job.step == "train":
        return [run_folder(job.study, job.id) / name for name in RUN_FILES]
    if job.step == "theory":
        return [theory_path(job.study, job.id)]
    if job.step == "analyse":
        return [table_path(job.study, name) for name in params.studies[job.study].tables]
    if job.step == "figures":
        names = params.studies[job.study].figures
        return [figure_path(job.study, name, suffix) for name in names for suffix in FIGURE_SUFFIXES]
    if job.step == "claims":
        return [claims_path(job.study, suffix) for suffix in ("parquet", "json")]
    return [DATA / "report" / "index.html"]


def entry(job: Job, params: Params) -> Any:
    """The entry of ``job`` in params.yaml, resolved at its scale; of the report, an empty one."""
    section = _SECTION.get(job.step, "studies")
    return getattr(params, section).get(job.id, SimpleNamespace())


def code(job: Job, params: Params) -> list[Path]:
    """The files of code that decide the result of ``job``, the pinned software among them."""
    fields = vars(entry(job, params)) | {"step": job.step, "study": job.study}
    words = [word.format_map(fields) for word in (_EVERY + _CODE[job.step]).split()]
    files = [path for word in words for path in (_files(Path(word)) if word.endswith("/") else [Path(word)])]
    return list(dict.fromkeys(files))


def data(job: Job, params: Params) -> list[Path]:
    """The files which ``job`` reads that other jobs make; for the report, the reference sets as well."""
    if job.step in ("dataset", "theory"):
        return []
    if job.step == "train":
        return [dataset_path(job.study, params.runs[job.id].dataset)]
    kinds = {
        "analyse": ("dataset", "train"),
        "figures": ("analyse", "theory"),
        "claims": ("analyse", "theory"),
    }
    made = [
        path
        for other in jobs(params)
        if (job.step == "report" and other != job)
        or (other.study == job.study and other.step in kinds.get(job.step, ()))
        for path in outputs(other, params)
    ]
    return made + (_files(REFERENCE) if job.step == "report" else [])


def accepted() -> list[dict[str, Any]]:
    """The edits of code that were declared harmless: ``job``, ``files`` (path, old, new), ``reason``, ``author``,
    ``diff``. A line without a job is a comment.

    Raises SandglassError if a line is anything else.
    """
    found = []
    text = ACCEPTED.read_text(encoding="utf-8") if ACCEPTED.is_file() else ""
    for number, line in enumerate(text.splitlines(), 1):
        try:
            edit = json.loads(line)
            if "job" in edit:
                found.append(edit | {"files": [dict(file) for file in edit["files"]], "job": edit["job"]})
        except (ValueError, KeyError, TypeError):
            raise SandglassError(f"{ACCEPTED}: line {number} is not an accepted edit") from None
    return found


def _files(folder: Path) -> list[Path]:
    """Sorted, as they lie there now; without Python's caches, which .dvcignore names as well."""
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(found)


def parents(job: Job, params: Params) -> list[Job]:
    """The jobs that make what ``job`` reads, in the order of ``jobs``."""
    read = set(data(job, params))
    return [other for other in jobs(params) if read & set(outputs(other, params))]
