"""Where an artifact comes from: names for artifacts, and what dvc.lock recorded of the job that made each.

dvc.lock is read as the YAML file that it is, without DVC: an auditor can follow these few lines.
Paths are relative to the root of the repository.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.params import Params
from pipeline.references.record import lock_parameters
from pipeline.store import paths
from pipeline.store.paths import DATA, REFERENCE

LOCK = Path("dvc.lock")
SHOWN_NAMES = 8
KINDS = {"figures": "figures", "tables": "analyse"}  # what has a short name, and the step that makes it

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
        """Return whether ``md5`` is that of a list of files."""
        return self.md5.endswith(".dir")


@dataclass(frozen=True)
class Stage:
    """One stage of dvc.lock: what a job read and made when its outputs were recorded."""

    cmd: str
    deps: dict[Path, Entry]
    outs: dict[Path, Entry]
    params: dict[str, Any]  # raw values by path (`Params.value`), as they stood in the parameter files


class Lock(Mapping[str, Stage]):
    """The stages of a dvc.lock by name. Each is parsed when it is asked for: all of them take a second and more."""

    def __init__(self, text: str, name: str) -> None:
        """Take the text of a dvc.lock.

        Raises SandglassError, with ``name`` for the file, if ``text`` is not what DVC writes.
        """
        self.text, self._name = text, name
        # Earlier commits have stages that DVC made of templates, which are called train@dyck-standard.
        text = re.sub(r"^  (\w+)@", r"  \1-", text, flags=re.MULTILINE)
        blocks = _blocks(text)
        self._parsed = self._parse(text) if blocks is None else {}
        self._blocks = dict.fromkeys(self._parsed, "") if blocks is None else blocks

    def __getitem__(self, key: str) -> Stage:
        """Return one stage. Raises KeyError if there is none, SandglassError if it is not what DVC writes."""
        if key not in self._parsed:
            block = self._blocks[key]
            self._parsed |= self._parse(f"stages:\n{block}")
        return self._parsed[key]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the stages."""
        return iter(self._blocks)

    def __len__(self) -> int:
        """Return the number of stages."""
        return len(self._blocks)

    @cached_property
    def made(self) -> dict[Path, Entry]:
        """Return the outputs that all stages recorded, by path.

        Of a stage that is not parsed yet only they are: parameters are nine tenths of its text.
        """
        found: dict[Path, Entry] = {}
        outs = {}
        for name, block in self._blocks.items():
            _, head, listed = block.partition("\n    outs:\n")
            if name in self._parsed or not head or re.search(r"[&*]", listed):  # an alias of what stands above
                found |= self[name].outs
            else:
                outs[name] = listed
        text = "".join(f"  {name}:\n    cmd: ''\n    outs:\n{listed}" for name, listed in outs.items())
        for stage in self._parse(f"stages:\n{text}").values() if outs else ():
            found |= stage.outs
        return found

    def _parse(self, text: str) -> dict[str, Stage]:
        try:
            raw = YAML(typ="safe").load(text) or {}
            return {key: _stage(entry) for key, entry in raw.get("stages", {}).items()}
        except (YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise SandglassError(f"{self._name} is not a lock file of DVC ({reason}); git checkout {LOCK}") from None


def _blocks(text: str) -> dict[str, str] | None:
    """Return the lines of each stage in the text of a dvc.lock; None if DVC did not lay it out so."""
    head, *lines = text.removeprefix("schema: '2.0'\n").splitlines(keepends=True) or [""]
    if head != "stages:\n" or not all(line.startswith("  ") for line in lines):
        return None
    parts = re.split(r"^  ([\w.-]+):\n", "".join(lines), flags=re.MULTILINE)
    if parts[0] or any(re.search(r"^  \S", part, re.MULTILINE) for part in parts[2::2]):
        return None
    return {name: f"  {name}:\n{part}" for name, part in zip(parts[1::2], parts[2::2], strict=True)}


def read_lock(root: Path = Path()) -> Lock:
    """Return the stages of ``root/dvc.lock`` by name (``train-dyck-standard``); none if there is no such file.

    Raises SandglassError if the file is not what DVC writes.
    """
    try:
        text = (root / LOCK).read_bytes().decode()  # read_text would not tell the ends of lines apart
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise SandglassError(f"{LOCK}: cannot be read: {error}") from None
    return Lock(text, str(LOCK))


def outs_below(lock: Mapping[str, Stage]) -> dict[Path, list[Entry]]:
    """Return, for each recorded output and each folder above it, the outputs that are there or below."""
    outs: dict[Path, list[Entry]] = {}
    for stage in lock.values():
        for path, out in stage.outs.items():
            for folder in (path, *path.parents):
                outs.setdefault(folder, []).append(out)
    return outs


def _stage(raw: dict[str, Any]) -> Stage:
    deps, outs = ({e.path: e for e in map(_entry, raw.get(kind, []))} for kind in ("deps", "outs"))
    return Stage(raw["cmd"], deps, outs, lock_parameters(raw))


def _entry(raw: dict[str, Any]) -> Entry:
    return Entry(Path(raw["path"]), str(raw["md5"]), int(raw["size"]), raw.get("nfiles"))


def reference_set(path: Path) -> Entry | None:
    """Return what ``data/reference/<set>.dvc`` says of the set that holds ``path``; None without such a file."""
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
    """Return the artifacts that ``name`` stands for, in the order of the graph.

    A name is a path below data/ (file or folder), a figure or a table (``fig3``, ``dyck/fig3``; exactly
    ``dyck/<experiment>/fig3``, ``figures/dyck/<experiment>/fig3``), an id of the parameter files (of an entry or of one
    of its variants), a study (its figures and claims), a stage of dvc.yaml (``train-dyck-standard``), ``report``, or a
    claim (``dyck:9``; ``claim 9``). A name that several results of one study share stands for all of them
    (`shared_name`): a table that several experiments make, an experiment and a run of one id, or a figure and the
    table of that name that its experiment makes.

    Raises SandglassError if it stands for nothing, with the nearest names, or for things of several studies.
    """
    known = _names(params)
    if matches := known.precise.get(name):
        return matches
    if name in params.studies:
        return [artifact for artifact in known.of_study[name] if _is_shown(artifact)]
    if claim := _CLAIM.fullmatch(name.strip().lower()):
        return [_claim(claim["study"], claim["claim"], params)]
    if matches := _below(_inside(name), params):
        return matches
    alike = known.short.get(name, [])
    artifacts = [artifact for each in alike for artifact in known.precise[each]]
    if len({artifact.job.study for artifact in artifacts if artifact.job}) > 1:
        raise SandglassError(f"{name!r} is ambiguous; say which: {', '.join(alike)}")
    if artifacts:
        return artifacts
    names = [*params.studies, *known.short, *known.precise]
    some = [*params.studies, *(key for key in known.short if "/" not in key)]
    study = name.partition("/")[0]
    if study in params.studies:  # it says which, so that the same name in another study was not meant
        names = [each for each in names if study in Path(each).parts]
        some = [each for each in known.short if each.startswith(f"{study}/") and each.count("/") == 1]
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else f"known are {', '.join(some[:SHOWN_NAMES])}, …"
    raise SandglassError(f"nothing made by the pipeline is called {name!r}; {hint}")


def shared_name(name: str, params: Params) -> list[str]:
    """Return the precise names behind ``name`` if several results of one study share it; else none."""
    known = _names(params)
    meant = [] if name in known.precise else known.short.get(name, [])
    return meant if len(meant) > 1 else []


@dataclass(frozen=True)
class _Names:
    """What can be named. ``short`` gives, by short name, the precise names that it may stand for."""

    precise: dict[str, list[Artifact]]
    short: dict[str, list[str]]
    of_study: dict[str, list[Artifact]]


def _names(params: Params) -> _Names:
    if "names of artifacts" not in params.memo:
        params.memo["names of artifacts"] = _all_names(params)
    names: _Names = params.memo["names of artifacts"]
    return names


def _all_names(params: Params) -> _Names:
    """Collect names in one walk over the jobs.

    Precise are stages, paths (with and without ``data/``), ``figures/<study>/<experiment>/<figure>`` and the report.
    """
    names = _Names({}, {}, {study: [] for study in params.studies})
    for job in graph.jobs(params):
        artifacts = [Artifact(path, job) for path in graph.outputs(job, params)]
        names.precise[job.stage] = artifacts
        names.of_study.get(job.study, []).extend(artifacts)
        for artifact in artifacts:
            path = artifact.path.relative_to(DATA)
            names.precise[str(artifact.path)] = names.precise[str(path)] = [artifact]
            if job.step in KINDS.values():
                stem = path.name.split(".")[0]
                names.precise.setdefault(str(path.parent / stem), []).append(artifact)
    for study in params.studies:
        drawn: dict[str, str] = {}  # figure -> its experiment
        for kind in KINDS:
            for key, experiment in params.of_study("experiments", study).items():
                for name in getattr(experiment, kind):
                    shorts = [f"{study}/{key}/{name}"]
                    if drawn.get(name, key) == key:  # a figure's name stands for no table of another experiment
                        shorts += [name, f"{study}/{name}"]
                    for short in shorts:
                        names.short.setdefault(short, []).append(f"{kind}/{study}/{key}/{name}")
                    if kind == "figures":
                        drawn[name] = key
    for job in graph.jobs(params):
        if job.step not in ("claims", "report"):
            names.short.setdefault(job.id, []).append(job.stage)
    for section, locate in (("datasets", paths.dataset_path), ("runs", paths.checkpoint_path)):
        entries = getattr(params, section)
        for key, group in entries.items():
            for member in group.members:
                if member not in entries:  # the id of an entry stands for all that its job makes
                    names.short.setdefault(member, []).append(str(locate(group.study, key, member)))
    return names


def _is_shown(artifact: Artifact) -> bool:
    """Return whether a study's name stands for it: what its page shows first."""
    return artifact.job is not None and artifact.job.step in ("figures", "claims")


def _inside(name: str) -> Path:
    """Return ``name`` as a path relative to the root, where it is one."""
    path = Path(name)
    try:
        return path.resolve().relative_to(Path.cwd()) if path.is_absolute() else Path(*path.parts)
    except ValueError:
        raise SandglassError(f"{name} lies outside this repository") from None


def _below(path: Path, params: Params) -> list[Artifact]:
    """Return what is at ``path`` or, in a folder, below it.

    Of the report these are files that exist; a reference set is one artifact.
    """
    if DATA not in (path, *path.parents):
        return []
    if declared := list(_declared(path, params)):
        return declared
    owner = graph.job("report", "all", params) if paths.REPORT in path.parents else None
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
    """Return the table with a claim; whose, if no study is named, is asked of the claims that were built."""
    if study is not None:
        graph.check_study(study, params)
    built = {key: claims_of(key) for key in ([study] if study else params.studies)}
    having = [key for key, claims in built.items() if claims is None or claim in claims]
    if not having:
        known = ", ".join(f"{key}:{each}" for key, claims in built.items() for each in claims or ())
        raise SandglassError(f"there is no claim {claim}; known are {known}")
    if len(having) > 1:
        several = ", ".join(f"{key}:{claim}" for key in having)
        raise SandglassError(f"'claim {claim}' is ambiguous; say which: {several}")
    owner = graph.job("claims", having[0], params)
    return Artifact(paths.claims_path(having[0], "parquet"), owner, claim)


def claims_of(study: str) -> list[str] | None:
    """Return the numbers of the claims that were judged for ``study``; None where none was built."""
    try:
        return list(json.loads(paths.claims_path(study, "json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
