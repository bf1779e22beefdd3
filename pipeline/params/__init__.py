"""Typed access to params.yaml and params/<study>/: what they say is validated, never changed.

It imports neither torch nor polars: the Snakefile reads it at every start.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.params.checking import File, nearest
from pipeline.params.entries import (
    AveragedRunEntry,
    DatasetEntry,
    Ensemble,
    ExperimentEntry,
    GridRunEntry,
    Header,
    Id,
    LabelsEntry,
    Module,
    Positive,
    Probability,
    RunEntry,
    Strict,
    TheoryEntry,
)
from pipeline.params.files import FOLDER, SECTIONS, SETTINGS, TEXTS, WITH_VARIANTS, StudyFiles, study_file, study_files
from pipeline.params.reading import FILE, shown
from pipeline.params.scales import SCALES
from pipeline.params.sharing import LIKE, names, over

__all__ = [
    "FILE",
    "FOLDER",
    "ROOT",
    "SECTIONS",
    "SETTINGS",
    "WITH_VARIANTS",
    "AveragedRunEntry",
    "DatasetEntry",
    "Ensemble",
    "ExperimentEntry",
    "GridRunEntry",
    "Group",
    "Id",
    "LabelsEntry",
    "Module",
    "Params",
    "Positive",
    "Probability",
    "RunEntry",
    "Strict",
    "Study",
    "TheoryEntry",
    "load",
    "study_file",
    "study_files",
]

ROOT = Path(__file__).resolve().parent.parent.parent
GRAPH = "params/graph.json"  # what follows from the other files, for DVC (`pipeline.engine.graph`)

# The same at every scale: the graph names code and files by them, in experiments by their lists as well.
NAMES = ("language", "model", "objective", "dataset", "teacher", "module")
FIXED = ("language", "model", "objective")  # the same in all variants of an entry, too
LISTS = ("runs", "datasets", "theory", "beside", "tables", "figures")


@dataclass(frozen=True)
class Group:
    """An entry of ``datasets`` or ``runs``: one job, and the members that it makes (its variants, or itself)."""

    id: str
    study: str
    members: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        """Return a field that all members share: language, model, objective."""
        if name not in FIXED:
            raise AttributeError(name)
        return getattr(next(iter(self.members.values())), name)

    @property
    def datasets(self) -> list[str]:
        """The datasets that members of a run train on, each once."""
        return list(dict.fromkeys(member.dataset for member in self.members.values()))

    @property
    def teachers(self) -> list[str]:
        """The runs whose models answer in members of a dataset, each once; none of other datasets."""
        named = (member.teacher for member in self.members.values() if isinstance(member, LabelsEntry))
        return list(dict.fromkeys(named))


@dataclass(frozen=True)
class Study:
    """What ``params/<study>/study.yaml`` says: all but the entries."""

    title: str
    source: str
    analysis: Any  # settings that all experiments share
    claims: Any  # settings of claims


@dataclass(frozen=True)
class Params:
    """All parameters, validated and resolved at one scale.

    ``raw`` holds what each file says, by its path, with the members of grids, and what it names in place of
    every ``like``; ``shared`` the names
    by which an entry does so, by section and id.
    """

    raw: dict[str, dict[str, Any]]
    scale: str
    seed: int
    device: str
    studies: dict[str, Study]
    datasets: dict[str, Group]
    runs: dict[str, Group]
    theory: dict[str, Any]
    experiments: dict[str, Any]
    shared: dict[str, dict[str, list[str]]]
    memo: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)  # of what is derived from this

    def value(self, path: str) -> Any:
        """Return the raw value at ``scale`` (of params.yaml) or ``params/dyck/runs.yaml:dyck-standard``.

        Of `GRAPH` there is ``claims.<study>``: the lists that follow from the study's files.
        """
        file, colon, keys = path.rpartition(":")
        value: Any = self._lists() if file == GRAPH else self.raw[file if colon else FILE]
        for key in keys.split("."):
            value = value[key]
        return value

    def _lists(self) -> dict[str, Any]:
        """Return what the claims of each study read: the experiments with tables, and the theory checks.

        They are sorted, so that another order of entries in the study's files makes nothing stale.
        """
        return {
            "claims": {
                study: {
                    "study": study,
                    "tables": sorted(key for key, own in self.of_study("experiments", study).items() if own.tables),
                    "theory": sorted(self.of_study("theory", study)),
                }
                for study in self.studies
            }
        }

    def members(self, section: str, study: str | None = None) -> dict[str, Any]:
        """Return the typed entries of all members of ``datasets`` or ``runs``, of one study or of all."""
        groups = getattr(self, section).values()
        return {key: entry for group in groups if study in (None, group.study) for key, entry in group.members.items()}

    def owner(self, section: str, member: str) -> Group:
        """Return the entry of ``datasets`` or ``runs`` that makes ``member``. Raises KeyError if none does."""
        key = f"owner of {section}"
        if key not in self.memo:
            self.memo[key] = {m: group for group in getattr(self, section).values() for m in group.members}
        entry: Group = self.memo[key][member]
        return entry

    def of_study(self, section: str, study: str) -> dict[str, Any]:
        """Return the entries of a section that belong to ``study``."""
        return {key: entry for key, entry in getattr(self, section).items() if entry.study == study}


def load(root: Path = Path(), scale: str | None = None, of: str | None = None) -> Params:
    """Read and validate all parameter files at every scale; return them resolved at their own (or ``scale``).

    With ``of``, the id of an entry or of a study, only params.yaml and the files of that study are read, which is what
    a job of the entry needs; of an id that belongs to no study, all.

    Raises SandglassError: one line with the file and the path of the value, what was expected and the nearest key.
    """
    main = File(FILE)
    header = main.validate(Header, main.read(root), "")
    if len(set(header.studies)) < len(header.studies):
        main.refuse("studies", "lists a study twice")
    raw: dict[str, dict[str, Any]] = {FILE: main.values}
    shared: dict[str, dict[str, list[str]]] = {section: {} for section in SECTIONS}
    files = {}
    # Ids begin with the study's name and a hyphen; those of claims are the name.
    named = [study for study in header.studies if of and f"{of}-".startswith(f"{study}-")]
    for study in named or header.studies:
        _check_package(main, study, root)
        file = files[study] = StudyFiles(study)
        file.read(root)
        raw |= file.by_file()
        _note_shared(file, shared)
    built = {each: _build(raw, shared, header, files, each) for each in SCALES}
    for file in files.values():
        _refuse_unread(file)
    return built[scale or header.scale]


def _note_shared(file: StudyFiles, shared: dict[str, dict[str, list[str]]]) -> None:
    """Put the names that entries of ``file`` are like into ``shared``."""
    for section, entries in file.written.items():
        for key, entry in entries.items():
            shared[section][key] = names(entry, file.shared[section])


def _check_package(main: File, study: str, root: Path) -> None:
    package = ROOT / "pipeline" / "studies" / study
    if not (package / "params.py").is_file():
        near = nearest(study, [p.parent.name for p in package.parent.glob("*/params.py")])
        main.refuse("studies", f"there is no package pipeline/studies/{study}{near}")
    for file in study_files(study):
        if not (root / file).is_file():
            main.refuse("studies", f"there is no file {file}")


def _refuse_unread(file: StudyFiles) -> None:
    """Refuse what an entry says for its variants although each of them says its own: who sets it would change nothing.

    What an entry takes by ``like`` may be of use to others, so this looks at what it says itself.
    """
    for section in WITH_VARIANTS:
        for key, written in file.written[section].items():
            entry = file.values[section][key]
            variants = entry.get("variants", {}).values()
            for name in written if variants else ():
                if name not in ("variants", LIKE) and all(
                    name in own and over({name: entry[name]}, own)[name] == own[name] for own in variants
                ):
                    file.refuse(
                        f"{section}.{key}.{name}", "each variant says its own, so nothing reads it: leave it out"
                    )


def _build(
    raw: dict[str, Any],
    shared: dict[str, dict[str, list[str]]],
    header: Header,
    files: dict[str, StudyFiles],
    scale: str,
) -> Params:
    params = Params(raw, scale, header.seed, header.device, {}, {}, {}, {}, {}, shared)
    for study, file in files.items():
        _read_study(params, study, file)
    for study, file in files.items():
        _CrossCheck(params, study, file).run()
    return params


def _read_study(params: Params, study: str, file: StudyFiles) -> None:
    types = vars(importlib.import_module(f"pipeline.studies.{study}.params"))
    settings = {
        name: file.validate(types[kind], file.resolve(file.values[name], name, params.scale), name)
        for name, kind in SETTINGS.items()
    }
    texts = {name: file.validate(str, file.values[name], name) for name in TEXTS}
    params.studies[study] = Study(**texts, **settings)
    for section, kind in SECTIONS.items():
        entries = file.values[section]
        if not entries:
            file.refuse(section, "expected a mapping of at least one id, got {}")
        known = getattr(params, section)
        names = NAMES + (LISTS if section == "experiments" else ())
        for key, entry in entries.items():
            path = f"{section}.{key}"
            _check_id(file, study, key, path)
            if key in known:
                file.refuse(path, f"{key!r} is there already, in {study_file(known[key].study, section)}")
            members = {
                member: file.validate(types[kind], file.resolve(value, where, params.scale, names), where)
                for member, value, where in _members(file, study, section, key, entry)
            }
            known[key] = Group(key, study, members) if section in WITH_VARIANTS else members[key]


def _check_id(file: StudyFiles, study: str, key: Any, path: str) -> None:
    file.validate(Id, key, f"{path} (the id)")
    if not str(key).startswith(f"{study}-"):
        file.refuse(path, f"ids of this study begin with '{study}-'")


def _members(
    file: StudyFiles, study: str, section: str, key: str, entry: Any
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield id, value and path of each member of an entry: its variants on top of the rest of it, or itself."""
    path = f"{section}.{key}"
    if not isinstance(entry, dict):
        file.refuse(path, f"expected a mapping, got {shown(entry)}")
    if "study" in entry:
        file.refuse(f"{path}.study", f"is {study!r} for all that stands in this folder: leave it out")
    if "variants" not in entry or section not in WITH_VARIANTS:
        yield key, entry | {"study": study}, path
        return
    base = {name: value for name, value in entry.items() if name != "variants"} | {"study": study}
    variants = entry["variants"]
    if not isinstance(variants, dict) or not variants:
        file.refuse(f"{path}.variants", f"expected a mapping of at least one id, got {shown(variants)}")
    for member, overrides in variants.items():
        where = f"{path}.variants.{member}"
        _check_id(file, study, member, where)
        if not isinstance(overrides, dict):
            file.refuse(where, f"expected a mapping, got {shown(overrides)}")
        for name in (*FIXED, "study"):
            if name in overrides:
                file.refuse(f"{where}.{name}", f"is the same for all variants of {path}: set it there")
        yield member, over(base, overrides), where


class _CrossCheck:
    """What must fit together between the entries of one study, and between them and the code."""

    def __init__(self, params: Params, study: str, file: StudyFiles) -> None:
        self.params, self.study, self.file = params, study, file

    def run(self) -> None:
        self._members_are_unique()
        for key, group in self.params.of_study("datasets", self.study).items():
            self._module(f"datasets.{key}.language", group.language, "pipeline/languages")
            if group.teachers:
                self._labels(key, group)
        for key, group in self.params.of_study("runs", self.study).items():
            self._run(key, group)
        for key, check in self.params.of_study("theory", self.study).items():
            self._module(f"theory.{key}.module", check.module, f"pipeline/studies/{self.study}/theory")
        for key, experiment in self.params.of_study("experiments", self.study).items():
            self._experiment(key, experiment)
        self._no_run_learns_from_itself()
        self._experiments_together()
        self._named_in_code()

    def _module(self, path: str, name: str, folder: str) -> None:
        if not (ROOT / folder / f"{name}.py").is_file():
            known = [str(p.relative_to(ROOT / folder).with_suffix("")) for p in (ROOT / folder).rglob("[a-z]*.py")]
            self.file.refuse(path, f"there is no module {folder}/{name}.py{nearest(name, known)}")

    def _members_are_unique(self) -> None:
        for section in WITH_VARIANTS:
            seen: dict[str, str] = {}
            for key, group in getattr(self.params, section).items():
                for member in group.members:
                    if member in seen and group.study == self.study:
                        self.file.refuse(
                            f"{section}.{key}.variants", f"{member!r} is a variant of {seen[member]} already"
                        )
                    seen[member] = key

    def _labels(self, key: str, group: Group) -> None:
        path = f"datasets.{key}"
        self._module(f"{path}.model", group.model, "pipeline/models")
        self._module(f"{path}.objective", group.objective, "pipeline/training/objectives")
        known = self.params.members("runs", self.study)
        for member, entry in group.members.items():
            where = path if "variants" not in self.file.values["datasets"][key] else f"{path}.variants.{member}"
            if not isinstance(entry, LabelsEntry):
                self.file.refuse(where, "has no teacher, which other variants have")
            if entry.teacher not in known:
                self.file.refuse(f"{where}.teacher", f"no such run {entry.teacher!r}{nearest(entry.teacher, known)}")
            if (model := known[entry.teacher].model) != group.model:
                self.file.refuse(f"{path}.model", f"is {group.model!r}, that of its teacher is {model!r}")

    def _no_run_learns_from_itself(self) -> None:
        """Refuse a circle of runs, each of which learns from the answers of the next."""
        for key in self.params.of_study("runs", self.study):
            todo, seen = [key], set[str]()
            while todo:
                for dataset in self.params.runs[todo.pop()].datasets:
                    taught = {
                        self.params.owner("runs", teacher).id
                        for teacher in self.params.owner("datasets", dataset).teachers
                    }
                    if key in taught:
                        self.file.refuse(f"runs.{key}", f"learns from itself, by way of dataset {dataset!r}")
                    todo += taught - seen
                    seen |= taught

    def _run(self, key: str, group: Group) -> None:
        path = f"runs.{key}"
        self._module(f"{path}.language", group.language, "pipeline/languages")
        self._module(f"{path}.model", group.model, "pipeline/models")
        self._module(f"{path}.objective", group.objective, "pipeline/training/objectives")
        known = self.params.members("datasets")
        alone = "variants" not in self.file.values["runs"][key]
        for member, entry in group.members.items():
            where = f"{path}.dataset" if alone else f"{path}.variants.{member}.dataset"
            if entry.dataset not in known:
                self.file.refuse(where, f"no such dataset {entry.dataset!r}{nearest(entry.dataset, known)}")
            if known[entry.dataset].study != self.study:
                self.file.refuse(where, f"{entry.dataset!r} belongs to study {known[entry.dataset].study!r}")

    def _experiment(self, key: str, experiment: Any) -> None:
        path = f"experiments.{key}"
        for part, made in (("analysis", experiment.tables), ("figures", experiment.figures)):
            if made:
                self._module(f"{path}.module", experiment.module, f"pipeline/studies/{self.study}/{part}")
        sections = {"runs": "runs", "datasets": "datasets", "theory": "theory", "beside": "experiments"}
        for name, section in sections.items():
            known = self.params.of_study(section, self.study)
            for listed in getattr(experiment, name):
                if listed not in known:
                    self.file.refuse(
                        f"{path}.{name}", f"no such entry of {section}: {listed!r}{nearest(listed, known)}"
                    )
        for listed in experiment.beside:
            if listed == key or not self.params.experiments[listed].tables:
                self.file.refuse(f"{path}.beside", f"{listed!r} is not another experiment with tables")

    def _experiments_together(self) -> None:
        experiments = self.params.of_study("experiments", self.study)
        drawn: dict[str, str] = {}
        for key, experiment in experiments.items():
            for figure in experiment.figures:
                if figure in drawn:
                    self.file.refuse(f"experiments.{key}.figures", f"{figure!r} is a figure of {drawn[figure]} already")
                drawn[figure] = key
        if not any(experiment.tables for experiment in experiments.values()):
            self.file.refuse("experiments", "at least one experiment must make a table, for the claims")

    def _named_in_code(self) -> None:
        """Refuse a run, dataset or theory check that the study's code names and the parameters do not have.

        It would leave gates without a reason.
        """
        names = importlib.import_module(f"pipeline.studies.{self.study}.names")
        for constant, section in (("RUNS", "runs"), ("DATASETS", "datasets"), ("THEORY", "theory")):
            known = self.params.of_study("theory", self.study) if section == "theory" else self.params.members(section)
            for name in getattr(names, constant):
                if name not in known:
                    self.file.refuse(section, f"{name!r} is missing, which pipeline/studies/{self.study}/ names")
