"""What figures and claims may read: the tables and theory checks of their study, each validated when first opened."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from pipeline.errors import SandglassError
from pipeline.store import paths, tables
from schemas.theory import Theory


@dataclass(frozen=True)
class Context:
    """What every step on results knows: its study, its settings and where its random streams start.

    ``entry`` is the experiment's entry of ``params/<study>/``, with the fields of its own; ``settings`` are those
    that all experiments of the study share (section ``analysis``) or, for claims, the section ``claims``.
    """

    study: str
    experiment: str  # its id; of claims, the study
    entry: Any
    settings: Any
    scale: str
    seed: int
    params_hash: str
    # What is measured of each model of a run, and each gate of a claim, asks for its tables again.
    _tables: tables.Opened = field(default_factory=tables.Opened, init=False, repr=False, compare=False)


@dataclass(frozen=True)
class Results(Context):
    """What figures and claims read: tables of their experiment and of those beside it, and theory checks."""

    experiments: Sequence[str] = ()

    def table(self, name: str) -> pl.DataFrame:
        """Return the rows of a result table of all experiments that have one of this name, in their order.

        Raises SandglassError if none has.
        """
        schema = importlib.import_module(f"schemas.{self.study}.tables").SCHEMAS[name]
        files = [paths.table_path(self.study, experiment, name) for experiment in self.experiments]
        parts = [path for path in files if path.is_file()]
        if not parts:
            raise SandglassError(
                f"{self.experiment}: no experiment among {', '.join(self.experiments)} has a table {name!r}"
            )
        return pl.concat([self._tables.read(path, schema) for path in parts])

    def has_rows(self, names: Sequence[str]) -> bool:
        """Return whether any of these tables of the experiment itself has a row."""
        schemas = importlib.import_module(f"schemas.{self.study}.tables").SCHEMAS
        files = {name: paths.table_path(self.study, self.experiment, name) for name in names}
        return any(self._tables.read(path, schemas[name]).height for name, path in files.items())

    def theory(self) -> pl.DataFrame:
        """Return the theory rows that the experiment names; for claims, all of the study."""
        return pl.concat([self._tables.read(paths.theory_path(self.study, key), Theory) for key in self.entry.theory])
