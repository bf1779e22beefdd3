"""Step ``analyse``: the runs of a study become its result tables."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.store import checkpoints, tables
from schemas.curves import Curves

if TYPE_CHECKING:
    from pipeline.engine.runner import Job


@dataclass(frozen=True)
class Context:
    """What an analysis may read: the artifacts of its study, each validated as it is opened."""

    study: str
    entry: Any
    scale: str
    seed: int
    params_hash: str
    _headers: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)

    def dataset(self, key: str) -> pl.DataFrame:
        """The dataset ``key`` of this study."""
        schema = importlib.import_module(f"schemas.{self.study}.datasets").SCHEMA
        return tables.read(graph.dataset_path(self.study, key), schema)

    def model(self, run: str) -> Any:
        """The trained ensemble of ``run``, as the module of its model loads it."""
        module = importlib.import_module(f"pipeline.models.{self.run_header(run)['entry']['model']}")
        return module.load(graph.run_folder(self.study, run) / "model.safetensors")

    def run_header(self, run: str) -> dict[str, Any]:
        """The header of the checkpoint of ``run``: its entry in params.yaml, resolved, and what diverged."""
        if run not in self._headers:
            self._headers[run] = checkpoints.read(graph.run_folder(self.study, run) / "model.safetensors")[1]
        return self._headers[run]

    def runs(self) -> list[str]:
        """The runs of the study that have models: those with replicas at this scale."""
        return [run for run in self.entry.runs if self.run_header(run)["entry"]["replicas"]]

    def curves(self, run: str) -> pl.DataFrame:
        """Training curves of ``run``."""
        return tables.read(graph.run_folder(self.study, run) / "curves.parquet", Curves)


def run(job: Job) -> None:
    """Make every table that ``studies.<id>.tables`` lists."""
    module = importlib.import_module(f"pipeline.studies.{job.study}.analysis")
    schemas = importlib.import_module(f"schemas.{job.study}.tables").SCHEMAS
    context = Context(job.study, job.entry, job.scale, job.seed, job.params_hash)
    found = module.analyse(context)
    for name in job.entry.tables:
        if name not in found or name not in schemas:
            known = ", ".join(sorted(set(found) & set(schemas)))
            raise SandglassError(
                f"params.yaml: studies.{job.study}.tables: no table {name!r}; known: {known}"
            )
        path = job.out(graph.table_path(job.study, name))
        tables.write(found[name], path, schemas[name], {"params_hash": job.params_hash})
        job.say(f"{name}: {found[name].height} rows")
