"""What the page of an artifact tells: what it is, its schema, first rows, inputs, parameters and lineage."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pandera.polars as pa
import polars as pl
from markupsafe import Markup
from ruamel.yaml import YAML

from pipeline.engine import graph
from pipeline.params.scales import is_per_scale, resolve
from pipeline.report import curves, figures, sources, wording
from pipeline.report.catalogue import Artifact
from pipeline.report.lineage import Drawing
from pipeline.report.results import Row
from pipeline.report.shared import Site
from pipeline.store import checkpoints, paths, tables
from schemas.claims import Claims
from schemas.curves import Curves
from schemas.theory import Theory

FIRST_ROWS = 5
SHOWN_TOKENS = 200  # of a decoded sequence
TOKENS = "tokens"  # the list column of a dataset that its vocabulary names
# Columns that have one value in all rows of a table, and what that is called.
SAME = {"scale": "scale", "params_hash": "md5 of its parameters"}
STUDIES = Path("pipeline/studies")
WORDS = Path(__file__).with_name("columns.yaml")
Model = type[pa.DataFrameModel]
Pairs = list[tuple[str, str]]


class _AsDrawn(pa.DataFrameModel):
    """The data of a figure: any columns, taken from validated tables."""


@dataclass
class Member:
    """One dataset of a job, or one ensemble of a run: what differs between it and the others, and what it holds.

    ``empty``: at this scale it has no models.
    """

    id: str
    path: Path
    own: Pairs = field(default_factory=list)  # the fields in which it differs
    facts: Pairs = field(default_factory=list)
    frame: pl.DataFrame | None = None
    tensors: list[tuple[str, str, str]] = field(default_factory=list)
    curve: curves.Curve | None = None
    empty: bool = False


@dataclass
class Card:
    """The parts of the page that depend on the kind of the artifact, and those that all have."""

    what: Markup
    source: sources.Source | None = None
    facts: Pairs = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    model: Model | None = None
    described: str = ""  # the page that shows the columns of its schema: the first that has it
    schema: list[Row] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    frame: pl.DataFrame | None = None
    rows: list[Row] = field(default_factory=list)
    figure: figures.Figure | None = None
    drawing: Drawing | None = None
    parameters: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    accepted: list[Row] = field(default_factory=list)
    lacks: list[Path] = field(default_factory=list)

    def first_rows(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return what is shown of a table: its first rows, without what all rows say alike."""
        return frame.head(FIRST_ROWS).drop(_alike(frame))


def card(site: Site, artifact: Artifact) -> Card:
    """Return all that the page of ``artifact`` says; of what is not here, what code and parameters say of it.

    Raises SandglassError if one of its files is damaged or breaks its schema.
    """
    job = artifact.job
    made = _KINDS[job.step](site, artifact)
    made.lacks = site.lacks(artifact)
    if made.model:
        made.described = site.described.setdefault(made.model, artifact.page)
        if made.described == artifact.page:
            made.schema, made.rules = columns(made.model)
    made.drawing = site.lineage.draw(job)
    made.parameters = parameters(site, job)
    if made.frame is not None and made.frame.height:
        made.facts += [(SAME[name], made.frame[name][0]) for name in _alike(made.frame)]
    made.accepted = [entry for entry in site.accepted if entry["job"] == job.stage]
    return made


def _alike(frame: pl.DataFrame) -> list[str]:
    return [name for name in SAME if name in frame.columns and frame[name].n_unique() == 1]


def parameters(site: Site, job: graph.Job) -> dict[str, list[tuple[str, str, str]]]:
    """Return every parameter that ``job`` tracks, by the entry that it belongs to.

    A parameter is its path below the entry (empty if it is one itself), its value as it stands in its file, and at the
    scale.
    """
    found: dict[str, list[tuple[str, str, str]]] = {}
    for path in job.tracked:
        for leaf, value in _leaves("", site.params.value(path)):
            texts = wording.as_json(value), wording.as_json(resolve(value, site.params.scale))
            found.setdefault(path, []).append((leaf, *texts))
    return found


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value and not is_per_scale(value):
        for key, child in value.items():
            yield from _leaves(f"{path}.{key}".removeprefix("."), child)
    else:
        yield path, value


def columns(model: Model) -> tuple[list[Row], list[str]]:
    """Return the columns that a schema asks for, and the rules that concern the table as a whole."""
    schema = model.to_schema()
    # Of schemas.dyck.tables it is dyck; of a schema that all studies share, no study's name.
    study = model.__module__.split(".")[1]
    rows = [
        {
            "name": name,
            "dtype": str(column.dtype),
            "nullable": column.nullable,
            "description": column.description or _meaning(name, study),
            "checks": "; ".join(_check(check) for check in column.checks),
        }
        for name, column in schema.columns.items()
    ]
    rules = [_check(check) for check in schema.checks]
    unique = list(schema.unique or [])
    return rows, ([f"one row per {', '.join(unique)}"] if unique else []) + rules


@cache
def _words() -> dict[str, dict[str, str]]:
    words: dict[str, dict[str, str]] = YAML(typ="safe").load(WORDS)
    return words


def _meaning(column: str, study: str) -> str:
    """Return what a column means that many tables have; empty for one that ``columns.yaml`` does not know."""
    return _words().get(study, {}).get(column) or _words()["all"].get(column, "")


def _check(check: Any) -> str:
    return str(check.error or check.name).replace("_", " ")


def _members(site: Site, artifact: Artifact) -> list[tuple[Member, Any]]:
    """Return the members of a dataset or run in the order of the parameters, with their entries."""
    entries = graph.entry(artifact.job, site.params).members
    fields = {key: dict(entry) for key, entry in entries.items()}
    first = next(iter(fields.values()))
    differing = [name for name in first if any(other.get(name, other) != first[name] for other in fields.values())]
    return [
        (Member(key, path, [(name, _plain(fields[key].get(name))) for name in differing]), entries[key])
        for key, path in artifact.members.items()
    ]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def _dataset(site: Site, artifact: Artifact) -> Card:
    job, source = artifact.job, site.source_of(artifact)
    schemas = importlib.import_module(f"schemas.{job.study}.datasets").SCHEMA
    language = Path("pipeline/languages") / f"{graph.entry(job, site.params).language}.py"
    facts = [("language", f"{language}: {wording.first_paragraph(sources.module_doc(language))}")]
    model: Model | None = None if isinstance(schemas, dict) else schemas
    members = _members(site, artifact)
    for member, _ in members:
        if site.is_here(member.path):
            metadata = tables.read_metadata(member.path)
            model = tables.of_kind(schemas, metadata, member.path)
            member.frame = site.read(member.path, model)
            member.facts = _dataset_facts(member.frame, metadata)
    what = _doc(model, source) if model else wording.prose(source.doc if source else "")
    return Card(what, source, facts, [member for member, _ in members], model=model)


def _dataset_facts(frame: pl.DataFrame, metadata: dict[str, str]) -> Pairs:
    facts = [("rows", f"{frame.height:,}")]
    if TOKENS in frame.columns:
        facts.append(("tokens", f"{int(frame[TOKENS].list.len().sum()):,}"))
    facts += [(name, text) for name, text in metadata.items() if name not in ("vocabulary", "params_hash")]
    if "vocabulary" in metadata:
        vocabulary = json.loads(metadata["vocabulary"])
        facts.append(("vocabulary", ", ".join(f"{i} = {word}" for i, word in enumerate(vocabulary))))
        facts += _example(frame, vocabulary)
    return facts


def _example(frame: pl.DataFrame, vocabulary: list[str]) -> Pairs:
    """Return the longest of the first sequences, in the words of the vocabulary."""
    if TOKENS not in frame.columns or not frame.height:
        return []
    lengths = frame[TOKENS].head(FIRST_ROWS).list.len()
    row = int(lengths.arg_max() or 0)
    tokens = frame[TOKENS][row].to_list()
    words = [str(vocabulary[token]) if 0 <= token < len(vocabulary) else f"({token})" for token in tokens]
    shown = " ".join(words[:SHOWN_TOKENS]) + (" …" if len(words) > SHOWN_TOKENS else "")
    return [(f"row {row}, decoded", shown)]


def _run(site: Site, artifact: Artifact) -> Card:
    job = artifact.job
    group = graph.entry(job, site.params)
    model = Path("pipeline/models") / f"{group.model}.py"
    facts = [
        ("model", f"{model}: {wording.first_paragraph(sources.module_doc(model))}"),
        ("objective", f"pipeline/training/objectives/{group.objective}.py"),
    ]
    members = _members(site, artifact)
    for member, entry in members:
        member.empty = entry.replicas == 0
        member.facts = [
            ("replicas", _replicas(entry)),
            ("dataset", entry.dataset),
            ("steps", f"{entry.steps:,} of {entry.batch} sequences each"),
        ]
        if site.is_here(member.path):
            arrays, header = checkpoints.read(member.path)
            diverged = header.get("diverged") or {}
            member.facts += [
                ("numbers in the checkpoint", f"{sum(array.size for array in arrays.values()):,}"),
                ("diverged", ", ".join(f"replica {r} at step {s}" for r, s in diverged.items()) or "none"),
            ]
            member.tensors = sorted(
                (name, str(array.dtype), " × ".join(map(str, array.shape))) for name, array in arrays.items()
            )
    what = wording.prose(
        "A run: ensembles of replicas of one model, trained alike. "
        + ("Its members differ in what the table below says. " if len(members) > 1 else "")
        + "The leading axis of the tensors is the replica, where a tensor differs between replicas."
    )
    source = sources.defined(STUDIES / job.study / "runs.py", "prepare")
    path = paths.curves_path(job.study, job.id)
    frame = site.read(path, Curves) if site.is_here(path) else None
    if frame is not None:
        for member, _ in members:
            member.curve = curves.draw(frame.filter(run=member.id))
    return Card(what, source, facts, [member for member, _ in members], model=Curves, frame=frame)


def _replicas(entry: Any) -> str:
    """Return how many replicas there are, and in a grid at which learning rates."""
    if not isinstance(entry.lr, list):
        return str(entry.replicas)
    return f"{entry.replicas} at each learning rate: {', '.join(map(str, entry.lr))}"


def _theory(site: Site, artifact: Artifact) -> Card:
    job = artifact.job
    module = graph.entry(job, site.params).module
    path = STUDIES / job.study / "theory" / f"{module}.py"
    rows = site.studies[job.study].theory[job.id]
    made = Card(wording.prose(sources.module_doc(path)), site.source_of(artifact), model=Theory, rows=rows)
    if not site.lacks(artifact):
        made.facts = [("checks", f"{len(rows)}, of which {sum(row['passed'] for row in rows)} hold")]
    return made


def _table(site: Site, artifact: Artifact) -> Card:
    job, source = artifact.job, site.source_of(artifact)
    if site.lacks(artifact):
        model = importlib.import_module(f"schemas.{job.study}.tables").SCHEMAS[artifact.name]
        return Card(_doc(model, source), source, model=model)
    frame, model = site.table(artifact)
    facts = [("rows", f"{frame.height:,}")]
    if others := [each.job.id for each in site.tables(job.study, artifact.name) if each != artifact]:
        facts.append(("more rows of this table", f"are made by {', '.join(others)}"))
    return Card(_doc(model, source), source, facts, model=model, frame=frame)


def _figure(site: Site, artifact: Artifact) -> Card:
    job, name, source = artifact.job, artifact.name, site.source_of(artifact)
    made = Card(wording.prose(source.doc if source else ""), source)
    if site.lacks(artifact):
        return made
    made.frame = frame = site.read(paths.figure_path(job.study, job.id, name, "parquet"), _AsDrawn)
    made.figure = figures.load(site.studies[job.study], name, source)
    made.facts = [
        ("rows drawn", f"{frame.height:,}"),
        ("columns", ", ".join(f"{column} ({dtype})" for column, dtype in frame.schema.items())),
    ]
    return made


def _claims(site: Site, artifact: Artifact) -> Card:
    source = site.source_of(artifact)
    study = site.studies[artifact.job.study]
    made = Card(_doc(Claims, source), source, model=Claims, rows=study.claims)
    if study.claims:
        made.facts = [("claims", str(len(study.lines))), ("gates", str(len(study.claims)))]
        made.facts += [
            (f"gates on a {kind}", ", ".join(f"{count} {verdict}" for verdict, count in counts))
            for kind, counts in study.counts
        ]
    return made


def _doc(model: Model, source: sources.Source | None) -> Markup:
    """Return what the schema says the table is, or else what the function says it makes."""
    return wording.prose(model.__doc__ or (source.doc if source else ""))


_KINDS = {
    "dataset": _dataset,
    "labels": _dataset,
    "train": _run,
    "theory": _theory,
    "analyse": _table,
    "figures": _figure,
    "claims": _claims,
}
