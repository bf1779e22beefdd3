"""The index of a study: the items of its source, each with what shows it and the code that makes it.

``index.yaml`` beside the study's code says what only a person can: which items there are, what each is where its code
does not say it as well, and what of the parameters shows it, by name. Files and functions follow from the parameters.
Tables, figures and theory checks that no item names close the index by themselves. The file may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML, YAMLError

from pipeline.engine import graph
from pipeline.errors import SandglassError, meant
from pipeline.params import Params
from pipeline.report import sources, wording
from pipeline.report.catalogue import Artifact

INDEX = "index.yaml"
STUDIES = Path("pipeline/studies")
# By the word of the file: the kind of artifact that its names are of. An experiment is all of its tables and figures.
SHOWN = {
    "datasets": "dataset",
    "runs": "run",
    "theory": "theory",
    "experiments": "experiment",
    "tables": "table",
    "figures": "figure",
    "claims": "claims",
}
CLOSING = ("table", "figure", "theory")  # kinds of which nothing is left out
Place = tuple[Artifact, Path]  # an artifact, and the file of it that is meant


@dataclass(frozen=True)
class Item:
    """One line: the source's id, what it is, the artifacts that show it and the definitions that make it.

    ``untrained`` are files of runs that have no models at this scale: they are there, and hold none.
    """

    id: str
    what: str
    artifacts: list[Place]
    code: list[sources.Source]
    said: bool = True  # by the file; else it follows from the parameters
    untrained: frozenset[Path] = field(default_factory=frozenset)


def load(study: str, params: Params, artifacts: list[Artifact]) -> list[Item]:
    """Return the items in the order of the file, then what none of them names. ``artifacts`` are those of all studies.

    Raises SandglassError for what does not exist.
    """
    path = STUDIES / study / INDEX
    of_study = [artifact for artifact in artifacts if artifact.job.study == study]
    items = _said(path, params, of_study) if path.is_file() else []
    named = {artifact for item in items for artifact, _ in item.artifacts}
    left = [each for each in of_study if each.kind in CLOSING and each not in named]
    return items + _following(left, params)


def _said(path: Path, params: Params, artifacts: list[Artifact]) -> list[Item]:
    names = _names(artifacts)
    try:
        raw = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
        return [_item(key, dict(entry), params, names, f"{path}: {key}") for key, entry in raw.items()]
    except (YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise SandglassError(f"{path}: not an index: {' '.join(str(error).split())}") from None


def _item(
    key: str, entry: dict[str, Any], params: Params, names: dict[str, dict[str, list[Place]]], where: str
) -> Item:
    what, named = entry.pop("what", ""), [_defined(each, where) for each in entry.pop("code", [])]
    places: list[Place] = []
    for word, listed in entry.items():
        if word not in SHOWN:
            raise SandglassError(f"{where}: no {word!r} in an index; {meant(word, ['what', *SHOWN, 'code'])}")
        for name in listed:
            if name not in names[word]:
                raise SandglassError(f"{where}: no {SHOWN[word]} {name!r}; {meant(str(name), names[word])}")
            places += names[word][name]
    if not places:
        raise SandglassError(f"{where}: nothing shows it; name some of {', '.join(SHOWN)}")
    places = list(dict.fromkeys(places))
    # What measures a table is a better answer than what collects it, where a person names that.
    makers = [artifact for artifact, _ in places if artifact.kind != "table" or not named]
    code = named + [source for artifact in makers for source in made_by(artifact, params)]
    runs = params.members("runs")
    untrained = frozenset(path for artifact, path in places if artifact.kind == "run" and not runs[path.stem].replicas)
    what = what or _words(places[0][0], params) or key
    return Item(key, what, places, list(dict.fromkeys(code)), untrained=untrained)


def _names(artifacts: list[Artifact]) -> dict[str, dict[str, list[Place]]]:
    """Return what each name of an index stands for, by the word under which it is given.

    The id of a dataset or run is that member, or else all members of the entry. The name of a table is what all
    experiments make of it; ``experiment/table`` is one of these.
    """
    names: dict[str, dict[str, list[Place]]] = {word: {} for word in SHOWN}
    words = {kind: word for word, kind in SHOWN.items()}
    for artifact in artifacts:
        known, place = names[words[artifact.kind]], (artifact, artifact.target)
        if artifact.members:
            known |= {member: [(artifact, path)] for member, path in artifact.members.items()}
            known.setdefault(artifact.name, [(artifact, path) for path in artifact.members.values()])
            continue
        known.setdefault(artifact.name, []).append(place)
        if artifact.kind == "table":
            known[f"{artifact.job.id}/{artifact.name}"] = [place]
        if artifact.kind in ("table", "figure"):
            names["experiments"].setdefault(artifact.job.id, []).append(place)
    return names


def _defined(name: str, where: str) -> sources.Source:
    module, _, function = name.partition(":")
    path = Path("pipeline") / f"{module}.py"
    source = sources.defined(path, function) if path.is_file() else None
    if source is None:
        raise SandglassError(f"{where}: {path} has no {function}")
    return source


def made_by(artifact: Artifact, params: Params) -> list[sources.Source]:
    """Return the functions that make an artifact; of a run, its model and what it minimises."""
    job, own = artifact.job, graph.entry(artifact.job, params)
    study = STUDIES / job.study
    makers = {
        "dataset": lambda: [(study / "datasets.py", "generate")],
        "labels": lambda: [(study / "labels.py", "answers")],
        "train": lambda: [
            (Path("pipeline/models") / f"{own.model}.py", "forward"),
            (Path("pipeline/training/objectives") / f"{own.objective}.py", "Objective"),
        ],
        "theory": lambda: [(study / "theory" / f"{own.module}.py", "check")],
        "analyse": lambda: [(study / "analysis" / f"{own.module}.py", "analyse")],
        "figures": lambda: [(study / "figures" / f"{own.module}.py", artifact.name)],
        "claims": lambda: [(study / "claims" / "__init__.py", "judge")],
    }
    found = (sources.defined(path, name) for path, name in makers[job.step]() if path.is_file())
    return [source for source in found if source is not None]


def _following(left: list[Artifact], params: Params) -> list[Item]:
    """Return an item for each theory check and for each experiment that makes some of the artifacts ``left``."""
    groups: dict[str, list[Artifact]] = {}
    for artifact in left:
        groups.setdefault(artifact.job.id, []).append(artifact)
    items = []
    for key, group in groups.items():
        makers = [made_by(artifact, params) for artifact in group]
        what = _words(group[0], params) if len(group) == 1 else _of_module(makers[0])
        code = list(dict.fromkeys(source for made in makers for source in made))
        items.append(Item(key, what or key, [(artifact, artifact.target) for artifact in group], code, said=False))
    return items


def _words(artifact: Artifact, params: Params) -> str:
    """Return what the code says of an artifact: the function that draws a figure, else the module that makes it."""
    made = made_by(artifact, params)
    if artifact.kind == "figure" and made:
        return wording.first_paragraph(made[0].doc).removesuffix(".")
    return _of_module(made)


def _of_module(made: list[sources.Source]) -> str:
    return wording.statement(sources.module_doc(made[0].path)) if made else ""
