"""What figures and claims may read: the tables and theory checks of their study, each validated when first opened."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from pipeline.kit.context import Context
from pipeline.store import paths
from schemas.theory import Theory


@dataclass(frozen=True)
class Results(Context):
    """What figures and claims read: tables of their experiment and of those beside it, and theory checks."""

    experiments: Sequence[str] = ()

    def table(self, name: str) -> pl.DataFrame:
        """Return the rows of a result table of all experiments that have one of this name, in their order.

        It has no rows where each of these experiments was taken out of the study.
        """
        schema = importlib.import_module(f"schemas.{self.study}.tables").SCHEMAS[name]
        files = [paths.table_path(self.study, experiment, name) for experiment in self.experiments]
        parts = [self._tables.read(path, schema) for path in files if path.is_file()]
        return pl.concat(parts) if parts else schema.empty()

    def has_rows(self, names: Sequence[str]) -> bool:
        """Return whether any of these tables of the experiment itself has a row."""
        schemas = importlib.import_module(f"schemas.{self.study}.tables").SCHEMAS
        files = {name: paths.table_path(self.study, self.experiment, name) for name in names}
        return any(self._tables.read(path, schemas[name]).height for name, path in files.items())

    def theory(self) -> pl.DataFrame:
        """Return the theory rows that the experiment names; for claims, all of the study."""
        return pl.concat([self._tables.read(paths.theory_path(self.study, key), Theory) for key in self.entry.theory])
