"""Typed access to params.yaml: what it says is validated, never changed.

No model here has a default and none converts a type, so this module can refuse a file but cannot
alter a result; that is why it is not a code input of any step (the scale rule, which can, lives in
``scales.py``). It imports neither torch nor polars: the Snakefile reads it at every start.
"""

from __future__ import annotations

import difflib
import functools
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from pipeline.errors import SandglassError
from pipeline.params.reading import FILE, read, shown
from pipeline.params.scales import SCALES, is_per_scale, resolve

ROOT = Path(__file__).resolve().parent.parent

# Both become file names. DVC splits paths at dots.
Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=80)]
Module = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=80)]
Positive = Annotated[int, Field(ge=1)]
Probability = Annotated[float, Field(ge=0, le=1)]


class Strict(BaseModel):
    """Refuses unknown keys, converts nothing, cannot be changed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, protected_namespaces=())


class DatasetEntry(Strict):
    """What every dataset names; a study adds the parameters of its generator."""

    study: Id
    language: Module = Field(description="the module of pipeline/languages/ that generates it")


class Ensemble(Strict):
    """What every run (an ensemble of replicas of one model) names; a study adds its own fields."""

    study: Id
    dataset: Id
    language: Module
    model: Module = Field(description="the module of pipeline/models/")
    objective: Module = Field(description="the module of pipeline/training/objectives/")
    stream: Id = Field(description="runs that name the same stream share initialisation and data order")
    replicas: Annotated[int, Field(ge=0, description="models; 0 = none are trained at this scale")]
    steps: Positive = Field(description="optimiser steps")
    batch: Positive = Field(description="sequences per step")
    schedule: Literal["constant", "cosine"] = Field(description="of the learning rate, to 0 over all steps")
    clip: float = Field(ge=0, description="bound on a replica's gradient norm; 0 = none")
    precision: Literal["fp32", "tf32", "bf16"]
    log_every: Positive = Field(description="steps between two points of the curves")


class RunEntry(Ensemble):
    """A run at one learning rate, with Adam."""

    lr: float = Field(gt=0, description="peak learning rate")
    betas: list[Probability] = Field(min_length=2, max_length=2, description="of Adam")
    eps: float = Field(gt=0, description="of Adam")


class GridRunEntry(Ensemble):
    """A run over a grid of learning rates: ``replicas`` models for each, which share initial weights and data
    order with those of the other rates."""

    lr: list[Annotated[float, Field(gt=0)]] = Field(min_length=1, description="peak learning rates")
    optimizer: Literal["adam", "sgd", "normalised_sgd"]
    betas: Annotated[list[Probability], Field(min_length=2, max_length=2)] | None = Field(
        None, description="of Adam; of no other optimizer"
    )
    eps: Annotated[float, Field(gt=0)] | None = Field(None, description="of Adam; of no other optimizer")

    @model_validator(mode="after")
    def _settings_of_adam(self) -> Self:
        if not ((self.optimizer == "adam") == (self.betas is not None) == (self.eps is not None)):
            raise ValueError("betas and eps must be there exactly for optimizer 'adam'")
        if len(set(self.lr)) < len(self.lr):
            raise ValueError("lr lists a rate twice")
        return self


class TheoryEntry(Strict):
    """What every theory check names; a study adds its sizes."""

    study: Id
    language: Module
    model: Module = Field(description="the module of pipeline/models/ that its constructions run on")
    module: Module = Field(description="the module of pipeline/studies/<study>/theory/")


class StudyEntry(Strict):
    """A study: the lists decide what exists, ``analysis`` and ``claims`` how it is read."""

    title: str
    source: str
    language: Module
    model: Module
    datasets: list[Id] = Field(min_length=1)
    runs: list[Id] = Field(min_length=1)
    theory: list[Id] = Field(min_length=1)
    tables: list[Module] = Field(min_length=1)
    figures: list[Module] = Field(min_length=1)
    analysis: Any
    claims: Any


class Header(Strict):
    """The scalars at the top of params.yaml."""

    scale: Literal["smoke", "quick", "paper"]
    seed: int = Field(ge=0, description="root of all random streams")
    device: Literal["auto", "cpu", "cuda"] = Field(description="where training runs; not part of a result")


@dataclass(frozen=True)
class Params:
    """params.yaml, validated and resolved at its scale. ``raw`` is the file as it stands."""

    raw: dict[str, Any]
    scale: str
    seed: int
    device: str
    datasets: dict[str, Any]
    runs: dict[str, Any]
    theory: dict[str, Any]
    studies: dict[str, StudyEntry]

    def value(self, path: str) -> Any:
        """The raw value at a dotted path such as ``runs.dyck-standard``."""
        value: Any = self.raw
        for key in path.split("."):
            value = value[key]
        return value


# DVC, which knows no scales, reads these off the file as it stands: dvc.yaml names code and data by them.
NAMES = ("study", "language", "model", "objective", "dataset", "module")

# Section of params.yaml -> name of the type that validates its entries, in the study's own params module.
SECTIONS = {"datasets": "Dataset", "runs": "Run", "theory": "Theory"}


def load(root: Path = Path(), scale: str | None = None) -> Params:
    """Read and validate ``root/params.yaml`` at every scale; return it resolved at its own (or ``scale``).

    Raises SandglassError: one line with the path of the value, what was expected and the nearest valid key.
    """
    raw = read(root / FILE)
    _known_keys(raw, [*Header.model_fields, *SECTIONS, "studies"], "")
    _validate(Header, {key: raw[key] for key in Header.model_fields}, "")
    built = {each: _build(raw, each) for each in SCALES}
    return built[scale or raw["scale"]]


def _build(raw: dict[str, Any], scale: str) -> Params:
    for section in (*SECTIONS, "studies"):
        if not isinstance(raw[section], dict) or not raw[section]:
            raise SandglassError(
                f"{FILE}: {section}: expected a mapping of at least one id, got {shown(raw[section])}"
            )
    known = list(raw["studies"])
    studies = {key: _study(raw["studies"][key], key, scale) for key in known}
    sections = {
        name: {key: _entry(name, key, entry, known, scale) for key, entry in raw[name].items()}
        for name in SECTIONS
    }
    params = Params(raw, scale, raw["seed"], raw["device"], studies=studies, **sections)
    _cross_check(params)
    return params


def _study(entry: Any, key: str, scale: str) -> StudyEntry:
    path = f"studies.{key}"
    _validate(Id, key, f"{path} (the id)")
    package = ROOT / "pipeline" / "studies" / key
    if not (package / "params.py").is_file():
        near = _nearest(key, [p.parent.name for p in package.parent.glob("*/params.py")])
        raise SandglassError(f"{FILE}: {path}: there is no package pipeline/studies/{key}{near}")
    resolved = _resolve(entry, path, scale)
    study = _validate(StudyEntry, resolved, path)
    types = _types(key)
    parts = {
        part: _validate(types[part.capitalize()], resolved[part], f"{path}.{part}")
        for part in ("analysis", "claims")
    }
    return study.model_copy(update=parts)


def _entry(section: str, key: str, entry: Any, studies: list[str], scale: str) -> Any:
    path = f"{section}.{key}"
    _validate(Id, key, f"{path} (the id)")
    resolved = _resolve(entry, path, scale)
    if not isinstance(resolved, dict):
        raise SandglassError(f"{FILE}: {path}: expected a mapping, got {shown(resolved)}")
    study = resolved.get("study")
    if study not in studies:
        hint = _nearest(str(study), studies)
        raise SandglassError(f"{FILE}: {path}.study: expected one of {studies}, got {shown(study)}{hint}")
    return _validate(_types(study)[SECTIONS[section]], resolved, path)


def _types(study: str) -> dict[str, Any]:
    return vars(importlib.import_module(f"pipeline.studies.{study}.params"))


def _resolve(entry: Any, path: str, scale: str) -> Any:
    for where, value in ((path, entry), *((f"{path}.{name}", _get(entry, name)) for name in NAMES)):
        if is_per_scale(value):
            raise SandglassError(f"{FILE}: {where}: must be the same at every scale, got {shown(value)}")
    try:
        return resolve(entry, scale)
    except KeyError as error:
        where, value = next(_per_scale(entry, path))
        near = _nearest(str(error.args[0]), SCALES)
        raise SandglassError(
            f"{FILE}: {where}: expected exactly the keys {', '.join(SCALES)}, got {', '.join(map(str, value))}{near}"
        ) from None


def _get(entry: Any, name: str) -> Any:
    return entry.get(name) if isinstance(entry, dict) else None


def _per_scale(value: Any, path: str):  # type: ignore[no-untyped-def]
    """Paths of the per-scale mappings below ``value`` that do not name exactly the scales."""
    if is_per_scale(value) and set(value) != set(SCALES):
        yield path, value
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from _per_scale(child, f"{path}.{key}")


def _cross_check(params: Params) -> None:
    def refuse(path: str, text: str) -> None:
        raise SandglassError(f"{FILE}: {path}: {text}")

    def module(path: str, name: str, folder: str) -> None:
        if not (ROOT / folder / f"{name}.py").is_file():
            near = _nearest(name, [p.stem for p in (ROOT / folder).glob("[a-z]*.py")])
            refuse(path, f"there is no module {folder}/{name}.py{near}")

    for key, run in params.runs.items():
        dataset = params.datasets.get(run.dataset)
        if dataset is None:
            refuse(
                f"runs.{key}.dataset",
                f"no such dataset {run.dataset!r}{_nearest(run.dataset, params.datasets)}",
            )
        elif dataset.study != run.study:
            refuse(f"runs.{key}.dataset", f"{run.dataset!r} belongs to study {dataset.study!r}")
        module(f"runs.{key}.language", run.language, "pipeline/languages")
        module(f"runs.{key}.model", run.model, "pipeline/models")
        module(f"runs.{key}.objective", run.objective, "pipeline/training/objectives")
    for key, dataset in params.datasets.items():
        module(f"datasets.{key}.language", dataset.language, "pipeline/languages")
    for key, check in params.theory.items():
        module(f"theory.{key}.language", check.language, "pipeline/languages")
        module(f"theory.{key}.model", check.model, "pipeline/models")
        module(f"theory.{key}.module", check.module, f"pipeline/studies/{check.study}/theory")
    for key, study in params.studies.items():
        module(f"studies.{key}.language", study.language, "pipeline/languages")
        module(f"studies.{key}.model", study.model, "pipeline/models")
        for section in SECTIONS:
            listed, owned = (
                getattr(study, section),
                [i for i, e in getattr(params, section).items() if e.study == key],
            )
            if len(set(listed)) != len(listed) or set(listed) != set(owned):
                odd = sorted(set(listed) ^ set(owned)) or sorted({i for i in listed if listed.count(i) > 1})
                refuse(
                    f"studies.{key}.{section}",
                    f"must list exactly the {section} whose study is {key!r}, each once; look at {', '.join(odd)}",
                )
        for name in ("tables", "figures"):
            values = getattr(study, name)
            if len(set(values)) != len(values):
                refuse(f"studies.{key}.{name}", "lists a name twice")


def _known_keys(raw: dict[str, Any], valid: list[str], path: str) -> None:
    for key in raw:
        if key not in valid:
            raise SandglassError(
                f"{FILE}: {path}{key}: unknown key{_nearest(str(key), valid)}; valid: {', '.join(valid)}"
            )
    for key in valid:
        if key not in raw:
            raise SandglassError(f"{FILE}: {path}{key}: missing")


_adapter = functools.cache(TypeAdapter)  # to build one takes longer than to use it


def _validate(kind: Any, value: Any, path: str) -> Any:
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        loc, valid = _locate(kind, value, first["loc"])
        full = ".".join(str(part) for part in ([path] if path else []) + loc)
        if first["type"] == "extra_forbidden":
            text = f"unknown key{_nearest(str(loc[-1]), valid)}; valid: {', '.join(valid)}"
        elif first["type"] == "missing":
            text = "missing"
        elif first["type"] == "union_tag_invalid":  # pydantic's message holds all of the tag, however long
            tag = first["ctx"]["discriminator"].strip("'")
            full, text = f"{full}.{tag}", f"expected one of {first['ctx']['expected_tags']}"
            text += f", got {shown(first['input'][tag])}"
        else:
            reason = first["msg"].removeprefix("Value error, ")
            got = "" if isinstance(first["input"], dict) else f", got {shown(first['input'])}"
            text = f"{reason[0].lower()}{reason[1:]}{got}"
        raise SandglassError(f"{FILE}: {full}: {text}") from None


def _locate(kind: Any, value: Any, loc: tuple[int | str, ...]) -> tuple[list[int | str], list[str]]:
    """The path of an error without the tags pydantic adds for unions, and the keys valid at its parent."""
    path: list[int | str] = []
    fields: list[str] = []
    for i, part in enumerate(loc):
        tagged, kind = kind, _unwrap(kind, value)
        last = i == len(loc) - 1
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            fields = list(kind.model_fields)
        if kind is not tagged and isinstance(value, dict) and part in value.values():
            continue  # the tag by which pydantic found the member of a union
        path.append(part)
        if isinstance(kind, type) and issubclass(kind, BaseModel) and part in kind.model_fields:
            kind = kind.model_fields[str(part)].annotation
        elif get_origin(kind) is list:
            (kind,) = get_args(kind)
        if isinstance(value, (dict, list)) and not last:
            value = value[part]  # type: ignore[index]
    return path, fields


def _unwrap(kind: Any, value: Any) -> Any:
    """The member of an annotated (discriminated) union that fits ``value``, else ``kind`` itself."""
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, __import__("types").UnionType) and isinstance(value, dict):
        for member in get_args(kind):
            for name, field in getattr(member, "model_fields", {}).items():
                if get_origin(field.annotation) is Literal and value.get(name) in get_args(field.annotation):
                    return member
    return kind


def _nearest(word: str, valid: Any) -> str:
    close = difflib.get_close_matches(word, list(valid), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""
