"""Datasets of the study."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.kit.streams import stream
from pipeline.languages import selfsup as language
from schemas.selfsup.datasets import SCHEMA

if TYPE_CHECKING:
    from pipeline.studies.selfsup.params import Dataset

__all__ = ["SCHEMA", "generate"]


def generate(entry: Dataset, key: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the sequences of the dataset ``key``, and no metadata."""
    rng = stream(seed, entry.study, key)
    tokens = language.sample(rng, entry.sequences, entry.length, entry.symbols)
    columns = {"symbols": entry.symbols, "tokens": pl.Series(tokens.tolist(), dtype=pl.List(pl.Int16))}
    return pl.DataFrame(columns, schema_overrides={"symbols": pl.Int16}), {}
