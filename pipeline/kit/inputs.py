"""What an analysis may read: the runs and datasets that its experiment names, each validated as it is opened."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.errors import SandglassError
from pipeline.kit.results import Context
from pipeline.store import checkpoints, paths
from schemas.curves import Curves


@dataclass(frozen=True)
class Inputs(Context):
    """What an analysis reads: the runs and datasets that its experiment names, in their order."""

    _headers: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)

    @cached_property
    def _checkpoints(self) -> dict[str, Path]:
        """The checkpoints by member, in the order of the experiment's runs and of their variants."""
        files = []
        for place, entry in enumerate(self.entry.runs):
            for path in paths.run_folder(self.study, entry).glob("*.safetensors"):
                self._headers[path.stem] = checkpoints.read(path)[1]
                files.append((place, self._headers[path.stem]["position"], path))
        return {path.stem: path for _, _, path in sorted(files)}

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
        return self._tables.read(self._path(self._datasets, "dataset", member), schema)

    def runs(self) -> list[str]:
        """Return the members of the experiment's runs that have models: those with replicas at this scale."""
        return [member for member in self._checkpoints if self.run_header(member)["entry"]["replicas"]]

    def run_header(self, member: str) -> dict[str, Any]:
        """Return the header of a checkpoint: its entry, resolved, and what diverged."""
        self._path(self._checkpoints, "run", member)
        return self._headers[member]

    def model(self, member: str) -> Any:
        """Return the trained ensemble, as the module of its model loads it."""
        name = self.run_header(member)["entry"]["model"].replace("/", ".")
        return importlib.import_module(f"pipeline.models.{name}").load(self._checkpoints[member])

    def curves(self, member: str) -> pl.DataFrame:
        """Return the training curves of one member."""
        entry = self._path(self._checkpoints, "run", member).parent
        frame = self._tables.read(entry / "curves.parquet", Curves).filter(run=member)
        # What the members of a run measure may differ: columns of the others are null here.
        shared = Curves.to_schema().columns
        return frame.select(c for c in frame.columns if c in shared or frame[c].is_not_null().any())

    def _path(self, known: dict[str, Path], kind: str, name: str) -> Path:
        if name not in known:
            raise SandglassError(
                f"params/{self.study}.yaml: experiments.{self.experiment}: names no {kind} {name!r}; it names: "
                + (", ".join(known) or "none")
            )
        return known[name]
