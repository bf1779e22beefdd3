"""Reading the results of a study: what figures and claims are made from."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline.engine import graph
from pipeline.store import tables
from schemas.theory import Theory


@dataclass(frozen=True)
class Results:
    """The tables of one study, each validated as it is opened; ``entry`` is its section of params.yaml."""

    study: str
    entry: Any
    scale: str
    seed: int
    params_hash: str

    def table(self, name: str) -> pl.DataFrame:
        """The result table ``name``."""
        schema = importlib.import_module(f"schemas.{self.study}.tables").SCHEMAS[name]
        return tables.read(graph.table_path(self.study, name), schema)

    def theory(self) -> pl.DataFrame:
        """All theory rows."""
        return pl.concat(tables.read(graph.theory_path(self.study, key), Theory) for key in self.entry.theory)
