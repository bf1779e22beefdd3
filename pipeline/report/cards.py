"""What the page of an artifact tells: what it is, its schema, first rows, inputs, parameters and lineage."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandera.polars as pa
import polars as pl
from markupsafe import Markup

from pipeline.engine import graph
from pipeline.params.scales import is_per_scale, resolve
from pipeline.report import figures, sources, wording
from pipeline.report.catalogue import Artifact
from pipeline.report.lineage import Drawing
from pipeline.report.results import Row
from pipeline.store import checkpoints, tables
from schemas.claims import Claims
from schemas.curves import Curves
from schemas.theory import Theory

if TYPE_CHECKING:
    from pipeline.report.site import Site

FIRST_ROWS = 10
SHOWN_TOKENS = 200  # of a decoded sequence
TOKENS = "tokens"  # the list column of a dataset that its vocabulary names
Model = type[pa.DataFrameModel]
Pairs = list[tuple[str, str]]


class _AsDrawn(pa.DataFrameModel):
    """The data of a figure: any columns, taken from validated tables."""


@dataclass
class Card:
    """The parts of the page that depend on the kind of the artifact, and those that all have."""

    what: Markup
    drawing: Drawing
    source: sources.Source | None = None
    facts: Pairs = field(default_factory=list)
    schema: list[Row] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    frame: pl.DataFrame | None = None
    rows: list[Row] = field(default_factory=list)
    tensors: list[tuple[str, str, str]] = field(default_factory=list)
    figure: figures.Figure | None = None
    parameters: list[tuple[str, str, str]] = field(default_factory=list)
    accepted: list[Row] = field(default_factory=list)


def card(site: Site, artifact: Artifact) -> Card:
    """All that the page of ``artifact`` says.

    Raises SandglassError if one of its files is damaged or breaks its schema.
    """
    job = artifact.job
    made = _KINDS[job.step](site, artifact, site.lineage.draw(job))
    made.parameters = list(parameters(site, job))
    code = {str(path): site.files.md5(path) for path in graph.code(job, site.params)}
    made.accepted = [
        entry | {"files": current}
        for entry in site.accepted
        if entry["job"] == job.stage
        and (current := [each for each in entry["files"] if code.get(each["path"]) == each["new"]])
    ]
    return made


def parameters(site: Site, job: graph.Job) -> Iterator[tuple[str, str, str]]:
    """Dotted path, value as it stands in params.yaml, and at the scale, of every parameter ``job`` tracks."""
    for path in job.tracked:
        for leaf, value in _leaves(path, site.params.value(path)):
            yield leaf, wording.as_json(value), wording.as_json(resolve(value, site.params.scale))


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value and not is_per_scale(value):
        for key, child in value.items():
            yield from _leaves(f"{path}.{key}", child)
    else:
        yield path, value


def columns(model: Model) -> tuple[list[Row], list[str]]:
    """The columns that a schema asks for, and the rules that concern the table as a whole."""
    schema = model.to_schema()
    rows = [
        {
            "name": name,
            "dtype": str(column.dtype),
            "nullable": column.nullable,
            "description": column.description or "",
            "checks": "; ".join(_check(check) for check in column.checks),
        }
        for name, column in schema.columns.items()
    ]
    rules = [_check(check) for check in schema.checks]
    unique = list(schema.unique or [])
    return rows, ([f"one row per {', '.join(unique)}"] if unique else []) + rules


def _check(check: Any) -> str:
    return str(check.error or check.name).replace("_", " ")


def _dataset(site: Site, artifact: Artifact, drawing: Drawing) -> Card:
    job, (path,) = artifact.job, artifact.paths
    metadata = tables.read_metadata(path)
    model = tables.of_kind(importlib.import_module(f"schemas.{job.study}.datasets").SCHEMA, metadata, path)
    frame = tables.read(path, model)
    module = Path("pipeline/studies") / job.study / "datasets.py"
    entry = graph.entry(job, site.params)
    language = Path("pipeline/languages") / f"{entry.language}.py"
    facts = [("rows", f"{frame.height:,}")]
    if TOKENS in frame.columns:
        facts.append(("tokens", f"{int(frame[TOKENS].list.len().sum()):,}"))
    facts += [(name, text) for name, text in metadata.items() if name not in ("vocabulary", "params_hash")]
    if "vocabulary" in metadata:
        vocabulary = json.loads(metadata["vocabulary"])
        facts.append(("vocabulary", ", ".join(f"{i} = {word}" for i, word in enumerate(vocabulary))))
        facts += _example(frame, vocabulary)
    facts.append(("language", f"{language}: {wording.first_paragraph(sources.module_doc(language))}"))
    source = sources.defined(module, "generate")
    return _with_schema(model, Card(_doc(model, source), drawing, source, facts, frame=frame))


def _example(frame: pl.DataFrame, vocabulary: list[str]) -> Pairs:
    """The longest of the first sequences, in the words of the vocabulary."""
    if TOKENS not in frame.columns or not frame.height:
        return []
    lengths = frame[TOKENS].head(FIRST_ROWS).list.len()
    row = int(lengths.arg_max() or 0)
    tokens = frame[TOKENS][row].to_list()
    words = [str(vocabulary[token]) if 0 <= token < len(vocabulary) else f"({token})" for token in tokens]
    shown = " ".join(words[:SHOWN_TOKENS]) + (" …" if len(words) > SHOWN_TOKENS else "")
    return [(f"row {row}, decoded", shown)]


def _replicas(entry: Any) -> str:
    """How many, and in a grid at which learning rates."""
    if not isinstance(entry.lr, list):
        return str(entry.replicas)
    return f"{entry.replicas} at each learning rate: {', '.join(map(str, entry.lr))}"


def _run(site: Site, artifact: Artifact, drawing: Drawing) -> Card:
    job = artifact.job
    entry = graph.entry(job, site.params)
    checkpoint, curves = (graph.run_folder(job.study, job.id) / name for name in graph.RUN_FILES[:2])
    arrays, header = checkpoints.read(checkpoint)
    frame = tables.read(curves, Curves)
    model = Path("pipeline/models") / f"{entry.model}.py"
    diverged = header.get("diverged") or {}
    numbers = sum(array.size for array in arrays.values())
    facts = [
        ("replicas", _replicas(entry)),
        ("model", f"{model}: {wording.first_paragraph(sources.module_doc(model))}"),
        ("objective", f"pipeline/training/objectives/{entry.objective}.py"),
        ("dataset", entry.dataset),
        ("steps", f"{entry.steps:,} of {entry.batch} sequences each"),
        ("numbers in the checkpoint", f"{numbers:,}"),
        ("diverged", ", ".join(f"replica {r} at step {s}" for r, s in diverged.items()) or "none"),
    ]
    what = wording.prose(
        "A run: an ensemble of replicas of one model, trained alike. The leading axis of the tensors is the replica, "
        "where a tensor differs between replicas."
    )
    source = sources.defined(Path("pipeline/studies") / job.study / "runs.py", "prepare")
    tensors = [(name, str(array.dtype), " × ".join(map(str, array.shape))) for name, array in arrays.items()]
    return _with_schema(Curves, Card(what, drawing, source, facts, frame=frame, tensors=sorted(tensors)))


def _theory(site: Site, artifact: Artifact, drawing: Drawing) -> Card:
    job = artifact.job
    module = graph.entry(job, site.params).module
    path = Path("pipeline/studies") / job.study / "theory" / f"{module}.py"
    rows = site.studies[job.study].theory[job.id]
    holds = sum(row["passed"] for row in rows)
    made = Card(wording.prose(sources.module_doc(path)), drawing, sources.defined(path, "check"), rows=rows)
    made.facts = [("checks", f"{len(rows)}, of which {holds} hold")]
    return _with_schema(Theory, made)


def _table(site: Site, artifact: Artifact, drawing: Drawing) -> Card:
    job = artifact.job
    frame, model = site.table(job.study, artifact.name)
    source = sources.defined(Path("pipeline/studies") / job.study / "analysis" / "__init__.py", "analyse")
    facts = [("rows", f"{frame.height:,}")]
    return _with_schema(model, Card(_doc(model, source), drawing, source, facts, frame=frame))


def _figure(site: Site, artifact: Artifact, drawing: Drawing) -> Card:
    job, name = artifact.job, artifact.name
    source = figures.source_of(job.study, name)
    path = graph.figure_path(job.study, name, "parquet")
    frame = tables.read(path, _AsDrawn)
    made = Card(wording.prose(source.doc if source else ""), drawing, source, frame=frame)
    made.figure = figures.load(site.studies[job.study], name)
    made.facts = [
        ("rows drawn", f"{frame.height:,}"),
        ("columns", ", ".join(f"{column} ({dtype})" for column, dtype in frame.schema.items())),
    ]
    return made


def _claims(site: Site, artifact: Artifact, drawing: Drawing) -> Card:
    job = artifact.job
    source = sources.defined(Path("pipeline/studies") / job.study / "claims" / "__init__.py", "judge")
    study = site.studies[job.study]
    counts = ", ".join(f"{count} {verdict}" for verdict, count in study.counts)
    facts = [("claims", f"{len(study.verdicts)}: {counts}"), ("gates", str(len(study.claims)))]
    return _with_schema(Claims, Card(_doc(Claims, source), drawing, source, facts, rows=study.claims))


def _doc(model: Model, source: sources.Source | None) -> Markup:
    """What the schema says the table is, or else what the function says it makes."""
    return wording.prose(model.__doc__ or (source.doc if source else ""))


def _with_schema(model: Model, made: Card) -> Card:
    made.schema, made.rules = columns(model)
    return made


_KINDS = {
    "dataset": _dataset,
    "train": _run,
    "theory": _theory,
    "analyse": _table,
    "figures": _figure,
    "claims": _claims,
}
