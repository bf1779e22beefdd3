"""What an analysis may read: the runs and datasets that its experiment names, each validated as it is opened."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from pipeline.errors import SandglassError
from pipeline.kit.context import Context
from pipeline.store import checkpoints, paths
from schemas.curves import Curves

T = TypeVar("T")


@dataclass(frozen=True)
class Inputs(Context):
    """What an analysis reads: the runs and datasets that its experiment names, in their order."""

    @cached_property
    def _checkpoints(self) -> dict[str, tuple[Path, dict[str, Any]]]:
        """The checkpoints by member, with their headers, in the order of the runs and of their variants."""
        members: dict[str, tuple[Path, dict[str, Any]]] = {}
        for entry in self.entry.runs:
            files = paths.run_folder(self.study, entry).glob("*.safetensors")
            headers = {path: checkpoints.header(path) for path in files}
            of_run = sorted(headers, key=lambda path: (headers[path]["position"], path))
            members |= {path.stem: (path, headers[path]) for path in of_run}
        return members

    @cached_property
    def _datasets(self) -> dict[str, Path]:
        folders = [paths.dataset_folder(self.study, entry) for entry in self.entry.datasets]
        return {path.stem: path for folder in folders for path in sorted(folder.glob("*.parquet"))}

    def datasets(self) -> list[str]:
        """Return the ids of all datasets of the experiment."""
        return list(self._datasets)

    def dataset(self, member: str) -> pl.DataFrame:
        """Return one dataset. Raises SandglassError if the experiment does not name it."""
        schema = importlib.import_module(f"schemas.{self.study}.datasets").SCHEMA
        return self._tables.read(self._named(self._datasets, "dataset", member), schema)

    def runs(self) -> list[str]:
        """Return the members of the experiment's runs that have models: those with replicas at this scale."""
        return [member for member in self._checkpoints if self.run_header(member)["entry"]["replicas"]]

    def run_header(self, member: str) -> dict[str, Any]:
        """Return the header of a checkpoint: its entry, resolved, and what diverged."""
        return self._named(self._checkpoints, "run", member)[1]

    def model(self, member: str) -> Any:
        """Return the trained ensemble, as the module of its model loads it."""
        path, header = self._named(self._checkpoints, "run", member)
        name = header["entry"]["model"].replace("/", ".")
        return importlib.import_module(f"pipeline.models.{name}").load(path)

    def curves(self, member: str) -> pl.DataFrame:
        """Return the training curves of one member."""
        path, _ = self._named(self._checkpoints, "run", member)
        frame = self._tables.read(path.with_name("curves.parquet"), Curves).filter(run=member)
        # What the members of a run measure may differ: columns of the others are null here.
        shared = Curves.to_schema().columns
        return frame.select(c for c in frame.columns if c in shared or frame[c].is_not_null().any())

    def _named(self, known: dict[str, T], kind: str, name: str) -> T:
        if name not in known:
            raise SandglassError(
                f"params/{self.study}/experiments.yaml: {self.experiment}: names no {kind} {name!r}; it names: "
                + (", ".join(known) or "none")
            )
        return known[name]
