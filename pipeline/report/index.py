"""The index of a study, ``index.yaml`` beside its code: id, what it is, artifacts, code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML, YAMLError

from pipeline.errors import SandglassError
from pipeline.report import sources
from pipeline.report.catalogue import Artifact
from pipeline.store.paths import DATA

INDEX = "index.yaml"


@dataclass(frozen=True)
class Item:
    """One line: the chapter's id, what it is, the artifacts that show it and the definitions that make it."""

    id: str
    what: str
    artifacts: list[tuple[Artifact, Path]]  # and the file that is named of each
    code: list[sources.Source]


def load(study: str, artifacts: dict[Path, Artifact]) -> list[Item]:
    """Return the items in the order of the file; none if there is no file. ``artifacts`` are all, by their files.

    Raises SandglassError for an artifact or a definition that does not exist.
    """
    path = Path("pipeline/studies") / study / INDEX
    if not path.is_file():
        return []
    try:
        raw = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
        return [
            Item(
                key,
                entry["what"],
                [_artifact(name, artifacts, f"{path}: {key}") for name in entry["artifacts"]],
                [_source(name, f"{path}: {key}") for name in entry["code"]],
            )
            for key, entry in raw.items()
        ]
    except (YAMLError, AttributeError, KeyError, TypeError) as error:
        raise SandglassError(f"{path}: not an index: {' '.join(str(error).split())}") from None


def _artifact(name: str, known: dict[Path, Artifact], where: str) -> tuple[Artifact, Path]:
    path = DATA / name
    if path not in known:
        raise SandglassError(f"{where}: nothing makes {path}")
    return known[path], path


def _source(name: str, where: str) -> sources.Source:
    module, _, function = name.partition(":")
    path = Path("pipeline") / f"{module}.py"
    source = sources.defined(path, function) if path.is_file() else None
    if source is None:
        raise SandglassError(f"{where}: {path} has no {function}")
    return source
