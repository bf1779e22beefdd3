"""Where an artifact comes from: names for artifacts, and what dvc.lock recorded of the job that made each.

dvc.lock is read as the YAML file that it is, without DVC: an auditor can follow these few lines.
Paths are relative to the root of the repository.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.params import Params

LOCK = Path("dvc.lock")
REFERENCE = graph.DATA / "reference"
SHOWN_NAMES = 8

_CLAIM = re.compile(r"(?:(?P<study>[a-z0-9-]+):|claim[ -]?)(?P<claim>[0-9]+[a-z]?)")


# --- what dvc.lock says ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A file or a folder in dvc.lock; the md5 of a folder ends with ``.dir`` and covers its list of files."""

    path: Path
    md5: str
    size: int  # bytes
    nfiles: int | None = None  # of a folder

    @property
    def is_folder(self) -> bool:
        """Whether ``md5`` is that of a list of files."""
        return self.md5.endswith(".dir")


@dataclass(frozen=True)
class Stage:
    """One stage of dvc.lock: what a job read and made when its outputs were recorded."""

    cmd: str
    deps: dict[Path, Entry]
    outs: dict[Path, Entry]
    params: dict[str, Any]  # raw values by dotted path, as they stood in params.yaml


def read_lock(root: Path = Path()) -> dict[str, Stage]:
    """The stages of ``root/dvc.lock`` by name (``train@dyck-standard``); none if there is no such file.

    Raises SandglassError if the file is not what DVC writes.
    """
    try:
        text = (root / LOCK).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SandglassError(f"{LOCK}: cannot be read: {error}") from None
    return parse_lock(text, str(LOCK))


def parse_lock(text: str, name: str) -> dict[str, Stage]:
    """The stages in the text of a dvc.lock; ``name`` says in messages which one it is."""
    try:
        raw = YAML(typ="safe").load(text) or {}
        return {key: _stage(entry) for key, entry in raw.get("stages", {}).items()}
    except (YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise SandglassError(f"{name} is not a lock file of DVC ({reason}); git checkout {LOCK}") from None


def _stage(raw: dict[str, Any]) -> Stage:
    deps, outs = ({e.path: e for e in map(_entry, raw.get(kind, []))} for kind in ("deps", "outs"))
    return Stage(raw["cmd"], deps, outs, dict(raw.get("params", {}).get("params.yaml", {})))


def _entry(raw: dict[str, Any]) -> Entry:
    return Entry(Path(raw["path"]), str(raw["md5"]), int(raw["size"]), raw.get("nfiles"))


def reference_set(path: Path) -> Entry | None:
    """What ``data/reference/<set>.dvc`` says of the reference set that holds ``path``; None without such a file."""
    name = path.relative_to(REFERENCE).parts[0]
    try:
        raw = YAML(typ="safe").load((REFERENCE / f"{name}.dvc").read_text(encoding="utf-8"))
        entry = _entry(raw["outs"][0])
    except FileNotFoundError:
        return None
    except (OSError, YAMLError, KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise SandglassError(f"{REFERENCE}/{name}.dvc is not a file of dvc add ({reason})") from None
    return Entry(REFERENCE / entry.path, entry.md5, entry.size, entry.nfiles)


# --- names ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Artifact:
    """A file and the job that makes it (none for a file of a reference set)."""

    path: Path
    job: graph.Job | None
    claim: str | None = None  # where a claim was asked for: its number in the claims table


def resolve(name: str, params: Params) -> list[Artifact]:
    """The artifacts that ``name`` stands for, in the order of the graph.

    A name is a path below data/ (file or folder), a figure or a table (``fig3``, ``dyck/fig3``,
    ``figures/dyck/fig3``), an id of params.yaml, a study (its figures and claims), a stage of dvc.yaml
    (``train@dyck-standard``), ``report``, or a claim (``dyck:9``; ``claim 9``). A figure and a table of one
    study may share a name: it stands for both then (`shared_name`).

    Raises SandglassError if it stands for nothing, with the nearest names, or for things of several studies.
    """
    precise, short = _precise(params), _short(params)
    if found := precise.get(name):
        return found
    if name in params.studies:
        return precise[f"figures@{name}"] + precise[f"claims@{name}"]
    if claim := _CLAIM.fullmatch(name.strip().lower()):
        return [_claim(claim["study"], claim["claim"], params)]
    if found := _below(_inside(name), precise, params):
        return found
    meant = short.get(name, [])
    if len(meant) > 1 and not shared_name(name, params):
        raise SandglassError(f"{name!r} is ambiguous; say which: {', '.join(meant)}")
    if meant:
        return [artifact for each in meant for artifact in precise[each]]
    near = difflib.get_close_matches(name, [*short, *precise], n=3, cutoff=0.5)
    known = [*params.studies, *(key for key in short if "/" not in key)][:SHOWN_NAMES]
    hint = f"did you mean {', '.join(near)}?" if near else f"known are {', '.join(known)}, …"
    raise SandglassError(f"nothing made by the pipeline is called {name!r}; {hint}")


def shared_name(name: str, params: Params) -> list[str]:
    """The precise names behind ``name``, if a figure and a table of one study have it in common; else none."""
    meant = _short(params).get(name, [])
    pairs = [
        [f"{kind}/{study}/{name.split('/')[-1]}" for kind in ("figures", "tables")]
        for study in params.studies
    ]
    return meant if meant in pairs else []


def _precise(params: Params) -> dict[str, list[Artifact]]:
    """Names that only one thing can have: stages, paths (with and without ``data/``), ``figures/<study>/<name>``."""
    found: dict[str, list[Artifact]] = {}
    for job in graph.jobs(params):
        artifacts = [Artifact(path, job) for path in graph.outputs(job, params)]
        found[job.stage] = artifacts
        for artifact in artifacts:
            path = artifact.path.relative_to(graph.DATA)
            found[str(artifact.path)] = found[str(path)] = [artifact]
            if job.step in ("analyse", "figures"):
                found.setdefault(str(path.parent / path.name.split(".")[0]), []).append(artifact)
    return found


def _short(params: Params) -> dict[str, list[str]]:
    """By short name, the precise names that it may stand for."""
    found: dict[str, list[str]] = {}
    for study, entry in params.studies.items():
        for kind in ("figures", "tables"):
            for name in getattr(entry, kind):
                for short in (name, f"{study}/{name}"):
                    found.setdefault(short, []).append(f"{kind}/{study}/{name}")
    for job in graph.jobs(params):
        if job.step in ("dataset", "train", "theory"):
            found.setdefault(job.id, []).append(job.stage)
    return found


def _inside(name: str) -> Path:
    """``name`` as a path relative to the root, where it is one."""
    path = Path(name)
    try:
        return path.resolve().relative_to(Path.cwd()) if path.is_absolute() else Path(*path.parts)
    except ValueError:
        raise SandglassError(f"{name} lies outside this repository") from None


def _below(path: Path, precise: dict[str, list[Artifact]], params: Params) -> list[Artifact]:
    """What is at ``path`` or, in a folder, below it; of the report, files that exist; a reference set as a whole."""
    if graph.DATA not in (path, *path.parents):
        return []
    if declared := list(_declared(path, params)):
        return declared
    owner = precise["report"][0].job if graph.DATA / "report" in path.parents else None
    if owner is None and path != REFERENCE and REFERENCE not in path.parents:
        return []
    if path.parent == REFERENCE and (REFERENCE / f"{path.name}.dvc").is_file():
        return [Artifact(path, None)]  # a whole set: what it lacks counts
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return [Artifact(file, owner) for file in files]


def _declared(path: Path, params: Params) -> Iterator[Artifact]:
    for job in graph.jobs(params):
        for output in graph.outputs(job, params):
            if path == output or path in output.parents:
                yield Artifact(output, job)


def _claim(study: str | None, claim: str, params: Params) -> Artifact:
    """The table with a claim; whose, if no study is named, is asked of the claims that were built."""
    if study is not None and study not in params.studies:
        raise SandglassError(f"no study is called {study!r}; known are {', '.join(params.studies)}")
    built = {key: claims_of(key) for key in ([study] if study else params.studies)}
    having = [key for key, claims in built.items() if claims is None or claim in claims]
    if not having:
        known = ", ".join(f"{key}:{each}" for key, claims in built.items() for each in claims or ())
        raise SandglassError(f"there is no claim {claim}; known are {known}")
    if len(having) > 1:
        meant = ", ".join(f"{key}:{claim}" for key in having)
        raise SandglassError(f"'claim {claim}' is ambiguous; say which: {meant}")
    return Artifact(graph.claims_path(having[0], "parquet"), graph.Job("claims", having[0], having[0]), claim)


def claims_of(study: str) -> list[str] | None:
    """The claims that were judged for ``study``; None where none was built."""
    try:
        return list(json.loads(graph.claims_path(study, "json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
