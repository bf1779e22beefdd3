"""The jobs that the parameters ask for: their names, commands, tracked parameters and files.

Both engines run this graph: the Snakefile makes a rule of each job, and dvc.yaml is written from it
(`pipeline.engine.stages`). The steps themselves, the start of an engine and the summaries know it from here, too.
Paths are relative to the root of the repository.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pipeline.engine.imports import BLANK, Sources
from pipeline.errors import SandglassError, meant
from pipeline.params import GRAPH, SECTIONS, SETTINGS, Params, study_file
from pipeline.params.sharing import SHARED
from pipeline.store import paths
from pipeline.store.paths import DATA, FIGURE_SUFFIXES, REFERENCE

STATE = Path(".sandglass")  # parameter files and locks of this work tree, git-ignored
LOGS = Path("logs")
ACCEPTED = Path("accepted.jsonl")  # cosmetic edits of code, declared harmless; part of the report
SOFTWARE = Path("requirements.txt")
REPORT_PAGE = paths.REPORT / "index.html"

STEPS = ("dataset", "train", "labels", "theory", "analyse", "figures", "claims", "report")
_SECTION = {
    "dataset": "datasets",
    "train": "runs",
    "labels": "datasets",  # those that the models of a run make
    "theory": "theory",
    "analyse": "experiments",
    "figures": "experiments",
}

# Code is an input: the module of the step and all that it imports (`pipeline.engine.imports`), file by file, so that an
# edit makes stale what depends on it and nothing else. Beside it stand the pinned libraries, how arithmetic is set up
# for all of them, and what turns the text of parameter files into values.
ALWAYS = (
    str(SOFTWARE),
    "pipeline/arithmetic.py",
    "pipeline/params/grids.py",
    "pipeline/params/scales.py",
    "pipeline/params/sharing.py",
)
# The report prints the md5 of all code, so it depends on all of it. It depends on the parameter files as such, too:
# where DVC runs on a graph that is out of date, at least this step starts, and says so.
OF_REPORT = (
    "accepted.jsonl",
    "params",
    "pipeline/access",
    "pipeline/kit",
    "pipeline/languages",
    "pipeline/models",
    "pipeline/references",
    "pipeline/report",
    "pipeline/steps",
    "pipeline/store",
    "pipeline/studies",
    "pipeline/training",
    "schemas",
)
# Modules that parameters name: a field of the entries that say which.
_BY_FIELD = {
    f"pipeline.languages.{BLANK}": "language",
    f"pipeline.models.{BLANK}": "model",
    f"pipeline.training.objectives.{BLANK}": "objective",
}


@dataclass(frozen=True)
class Job:
    """One job of the graph, for instance ``Job("train", "dyck-standard", "dyck")``."""

    step: str
    id: str
    study: str

    @property
    def name(self) -> str:
        """Return the job's name in files and messages: ``train-dyck-standard``."""
        return f"{self.step}-{self.id}"

    @property
    def command(self) -> str:
        """Return the command line that both engines call; `claims` there shows claims, and `judge` makes them."""
        verb = "judge" if self.step == "claims" else self.step
        return f"python -m pipeline {verb}" + ("" if self.step == "report" else f" {self.id}")

    @property
    def stage(self) -> str:
        """Return the job's name in dvc.yaml: ``train-dyck-standard``."""
        return self.step if self.step == "report" else self.name

    @property
    def tracked(self) -> tuple[str, ...]:
        """Return the parameters that decide the job's result, as `Params.value` takes them; it reads no others."""
        if self.step == "report":
            return ("scale", "seed", "studies")  # other files name their parameters: `params_hash`
        if self.step == "claims":
            claims = f"{study_file(self.study, 'claims')}:claims"
            # They read whole folders, in which a table of a removed experiment may still lie.
            return ("scale", "seed", claims, f"{GRAPH}:claims.{self.study}")
        own = f"{study_file(self.study, _SECTION[self.step])}:{self.id}"
        analysis = f"{study_file(self.study, 'analysis')}:analysis"
        return ("scale", "seed", own, *((analysis,) if self.step in ("analyse", "figures") else ()))

    def tracked_text(self, params: Params) -> str:
        """Return the job's tracked parameters as JSON, as `text_of` states them."""
        return self.text_of({path: params.value(path) for path in self.tracked})

    def text_of(self, values: Mapping[str, Any]) -> str:
        """Return the text whose md5 is stored in the job's results, for these values of its ``tracked`` parameters.

        It says of a value of the study in which section it stands, and not in which file. The words are those of when a
        study was one file, ``params/dyck.yaml:runs.dyck-standard``: in others, every stored hash would be another.
        """
        one = f"params/{self.study}.yaml:"
        places = {study_file(self.study, each): f"{one}{each}." for each in SECTIONS}
        places |= {study_file(self.study, each): one for each in SETTINGS}
        split = {path: path.rpartition(":") for path in values}
        names = {path: f"{places[file]}{key}" for path, (file, _, key) in split.items() if file in places}
        return json.dumps({names.get(path, path): value for path, value in values.items()}, sort_keys=True)

    def params_hash(self, params: Params) -> str:
        """Return the md5 of ``tracked_text``: what a step says it read, and what an engine compares with today's."""
        return hashlib.md5(self.tracked_text(params).encode()).hexdigest()


class Graph:
    """The jobs of ``params`` with their files, worked out once."""

    def __init__(self, params: Params) -> None:
        self.jobs = _jobs(params)
        self.by_name = {(job.step, job.id): job for job in self.jobs}
        self.outputs = {job: _outputs(job, params) for job in self.jobs}
        self.maker = {path: job for job, made in self.outputs.items() for path in made}
        self.inside: dict[Path, list[Path]] = {}  # by folder, the files made in it
        for path in self.maker:
            for folder in path.parents:
                self.inside.setdefault(folder, []).append(path)
        self.rank = {job: place for place, job in enumerate(self.jobs)}
        self.data: dict[Job, list[Path]] = {}
        self.parents: dict[Job, list[Job]] = {}
        self.sources = Sources()
        self.code: dict[Job, list[Path]] = {}


def of(params: Params) -> Graph:
    """Return the graph of ``params``; the second call costs nothing."""
    if "graph" not in params.memo:
        params.memo["graph"] = Graph(params)
    graph: Graph = params.memo["graph"]
    return graph


def check_study(name: str, params: Params, where: str = "") -> None:
    """Raise SandglassError unless params.yaml lists a study ``name``; ``where`` begins the message."""
    if name not in params.studies:
        raise SandglassError(f"{where}no study is called {name!r}; {meant(name, params.studies)}")


def jobs(params: Params) -> list[Job]:
    """Return every job, each after the jobs it depends on."""
    return of(params).jobs


def job(step: str, key: str, params: Params) -> Job:
    """Return one job. Raises KeyError if the parameters ask for no such job."""
    return of(params).by_name[step, key]


def outputs(job: Job, params: Params) -> list[Path]:
    """Return the files that ``job`` makes."""
    return of(params).outputs[job]


def maker(path: Path, params: Params) -> Job | None:
    """Return the job that makes the file ``path``, or None."""
    return of(params).maker.get(path)


def data(job: Job, params: Params) -> list[Path]:
    """Return the files which ``job`` reads that other jobs make; for the report, the reference sets as well."""
    graph = of(params)
    if job not in graph.data:
        graph.data[job] = _data(job, params)
    return graph.data[job]


def parents(job: Job, params: Params) -> list[Job]:
    """Return the jobs that make what ``job`` reads, in the order of ``jobs``."""
    graph = of(params)
    if job not in graph.parents:
        makers = {graph.maker[path] for path in data(job, params) if path in graph.maker}
        graph.parents[job] = sorted(makers, key=graph.rank.__getitem__)
    return graph.parents[job]


def with_ancestors(jobs: Iterable[Job], params: Params) -> set[Job]:
    """Return ``jobs`` and all jobs that they depend on."""
    closure: set[Job] = set()
    todo = list(jobs)
    while todo:
        if (job := todo.pop()) not in closure:
            closure.add(job)
            todo += parents(job, params)
    return closure


def entry(job: Job, params: Params) -> Any:
    """Return the entry of ``job`` in the parameters, resolved at its scale; of claims, the ids of its theory checks."""
    if job.step in _SECTION:
        return getattr(params, _SECTION[job.step])[job.id]
    if job.step == "claims":
        return SimpleNamespace(study=job.study, theory=list(params.of_study("theory", job.study)))
    return SimpleNamespace()


def shared_parameters(job: Job, params: Params) -> list[str]:
    """Return the parameters that the entry of ``job`` is like: ``params/dyck/runs.yaml:shared.standard``.

    DVC tracks them beside the entry as it stands; `Job.tracked` is the entry with what it takes from them.
    """
    if job.step not in _SECTION:
        return []
    section = _SECTION[job.step]
    return [f"{study_file(job.study, section)}:{SHARED}.{name}" for name in params.shared[section][job.id]]


def settings(job: Job, params: Params) -> Any:
    """Return what the study says for all jobs of this kind: section ``claims`` for claims, else ``analysis``."""
    study = params.studies.get(job.study)
    return None if study is None else study.claims if job.step == "claims" else study.analysis


def experiments(job: Job, params: Params) -> list[str]:
    """Return the experiments whose tables ``job`` reads: of figures its own and those beside it, of claims all."""
    known = params.of_study("experiments", job.study)
    named = [job.id, *known[job.id].beside] if job.step == "figures" else list(known)
    return [key for key in named if known[key].tables]


def code(job: Job, params: Params) -> list[Path]:
    """Return the files of code that decide the result of ``job``, the pinned software among them.

    Raises SandglassError if one of them is missing, or imports what cannot be followed.
    """
    graph = of(params)
    if job not in graph.code:
        named = [Path(name) for name in code_named(job, params)]
        files = [file for path in named for file in (_files(path) if path.is_dir() else [path])]
        graph.code[job] = list(dict.fromkeys(files))
    return graph.code[job]


def code_named(job: Job, params: Params) -> list[str]:
    """Return the code inputs of ``job`` as dvc.yaml states them: files, and of the report whole folders."""
    if job.step == "report":
        return [*ALWAYS, *OF_REPORT]
    sources = of(params).sources
    starts = [f"pipeline/steps/{job.step}.py"]
    found = sources.closure(starts, lambda pattern: stands_for(pattern, job, params))
    return [*ALWAYS, *(file for file in found if file not in ALWAYS)]


def stands_for(pattern: str, job: Job, params: Params) -> list[str]:
    """Return the modules that a step of ``job`` imports by a name of this pattern.

    Analyses read models of all their runs. Raises SandglassError for a pattern that is not of a study, and of which no
    field of the entries says more.
    """
    own = entry(job, params)
    if pattern in _BY_FIELD:
        entries = [params.runs[key] for key in own.runs] if job.step == "analyse" else [own]
        names = {getattr(each, _BY_FIELD[pattern], None) for each in entries}
        if None not in names:
            return sorted(pattern.replace(BLANK, str(name).replace("/", ".")) for name in names)
    elif pattern.startswith((f"pipeline.studies.{BLANK}.", f"schemas.{BLANK}.")):
        of_study = pattern.replace(BLANK, job.study, 1)
        if BLANK not in of_study or hasattr(own, "module"):
            return [of_study.replace(BLANK, getattr(own, "module", ""))]
    raise SandglassError(f"{job.name} imports {pattern}, and no field of its entry says which module that is")


def is_published(path: Path) -> bool:
    """Return whether dvc.yaml lets ``dvc push`` take the output ``path``.

    Datasets, checkpoints with their curves, and the report are large, and can be built again from the rest.
    """
    kind = path.parts[1]
    return kind not in ("datasets", "report") and (kind != "runs" or path.suffix == ".json")


def _jobs(params: Params) -> list[Job]:
    jobs = [Job("dataset", key, own.study) for key, own in params.datasets.items() if not own.teachers]
    jobs += _trainings(params)
    jobs += [Job("theory", key, own.study) for key, own in params.theory.items()]
    experiments = params.experiments.items()
    jobs += [Job("analyse", key, own.study) for key, own in experiments if own.tables]
    jobs += [Job("figures", key, own.study) for key, own in experiments if own.figures]
    jobs += [Job("claims", study, study) for study in params.studies]
    return [*jobs, Job("report", "all", "all")]


def _trainings(params: Params) -> list[Job]:
    """Return the jobs that train, each after those that make the answers it learns from, and after their teachers."""
    jobs: list[Job] = []

    def add(key: str) -> None:
        own = params.runs[key]
        for group in (params.owner("datasets", dataset) for dataset in own.datasets):
            for teacher in group.teachers:
                add(params.owner("runs", teacher).id)
            if group.teachers:
                jobs.append(Job("labels", group.id, group.study))
        jobs.append(Job("train", key, own.study))

    for key in params.runs:
        add(key)
    jobs += [Job("labels", key, own.study) for key, own in params.datasets.items() if own.teachers]  # for analyses
    return list(dict.fromkeys(jobs))


def _outputs(job: Job, params: Params) -> list[Path]:
    study, key = job.study, job.id
    if job.step in ("dataset", "labels"):
        return [paths.dataset_path(study, key, member) for member in params.datasets[key].members]
    if job.step == "train":
        models = [paths.checkpoint_path(study, key, member) for member in params.runs[key].members]
        return [*models, paths.curves_path(study, key), paths.plot_path(study, key)]
    if job.step == "theory":
        return [paths.theory_path(study, key)]
    if job.step == "analyse":
        return [paths.table_path(study, key, name) for name in params.experiments[key].tables]
    if job.step == "figures":
        figures = params.experiments[key].figures
        return [paths.figure_path(study, key, name, suffix) for name in figures for suffix in FIGURE_SUFFIXES]
    if job.step == "claims":
        return [paths.claims_path(study, suffix) for suffix in ("parquet", "json")]
    return [REPORT_PAGE]


def inputs(job: Job, params: Params) -> list[Path]:
    """Return the files and folders below data/ that ``job`` reads; of a run, no checkpoint."""
    study = job.study
    if job.step == "train":
        return [_dataset(member, params) for member in params.runs[job.id].datasets]
    if job.step == "labels":
        owners = [params.owner("runs", teacher).id for teacher in params.datasets[job.id].teachers]
        return [paths.run_folder(study, key) for key in dict.fromkeys(owners)]
    if job.step == "analyse":
        own = params.experiments[job.id]
        runs = [paths.run_folder(study, key) for key in own.runs]
        return runs + [paths.dataset_folder(study, key) for key in own.datasets]
    if job.step == "figures":
        tables = [paths.table_folder(study, key) for key in experiments(job, params)]
        return tables + [paths.theory_path(study, key) for key in params.experiments[job.id].theory]
    if job.step == "claims":
        return [DATA / "tables" / study, DATA / "theory" / study]
    if job.step == "report":
        return [DATA / kind for kind in ("datasets", "runs", "theory", "tables", "figures", "claims")] + [REFERENCE]
    return []


def _data(job: Job, params: Params) -> list[Path]:
    graph = of(params)
    files: list[Path] = []
    for path in inputs(job, params):
        if path == REFERENCE:
            files += _files(REFERENCE)
        elif path in graph.maker:
            files.append(path)
        else:
            files += graph.inside.get(path, [])
    return files


def _dataset(member: str, params: Params) -> Path:
    owner = params.owner("datasets", member)
    return paths.dataset_path(owner.study, owner.id, member)


# --- files beside the graph -----------------------------------------------------------------------


def accepted() -> list[dict[str, Any]]:
    """Return the edits of code that were declared harmless: ``job``, ``files`` (path, old, new), ``reason``,
    ``author``, ``diff``. A line without a job is a comment.

    Raises SandglassError if a line is anything else.
    """
    edits = []
    text = ACCEPTED.read_text(encoding="utf-8") if ACCEPTED.is_file() else ""
    for number, line in enumerate(text.splitlines(), 1):
        try:
            edit = json.loads(line)
            if "job" in edit:
                edits.append(edit | {"files": [dict(file) for file in edit["files"]], "job": edit["job"]})
        except (ValueError, KeyError, TypeError):
            raise SandglassError(f"{ACCEPTED}: line {number} is not an accepted edit") from None
    return edits


def standing(edits: list[dict[str, Any]], stage: str, recorded: Mapping[str, str | None]) -> list[dict[str, Any]]:
    """Return those of the accepted ``edits`` of a job on which its record rests, in their order.

    ``recorded`` gives the md5 of each file of code in the record, by path. It is that of the code which the job ran
    with, or of an edit that was accepted since. So, from the last edit to the first: one whose files are not as it left
    them was followed by a build, and says nothing of the results that are here now.
    """
    state, chain = dict(recorded), []
    for edit in reversed([edit for edit in edits if edit["job"] == stage]):
        files = [file for file in edit["files"] if file.get("path") in state or not file.get("new")]
        left = {file.get("path"): file.get("new") for file in files}  # None of a file that it read no more since
        if any(left.values()) and all(state.get(path) == md5 for path, md5 in left.items()):
            chain.append(edit)
            state |= {file["path"]: file.get("old") for file in files}
    return chain[::-1]


def _files(folder: Path) -> list[Path]:
    """Return the files in ``folder``, sorted, as they lie there now, without Python's caches (as in .dvcignore)."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(files)
