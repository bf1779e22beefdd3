"""Held-out sets (Liu 2024, section 3.5.6.2): each is drawn once, from a stream of its own, and used for all models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.languages import flipflop as language
from pipeline.store import tables
from schemas.flipflop.datasets import SCHEMA

if TYPE_CHECKING:
    from pipeline.studies.flipflop.params import Dataset

__all__ = ["SCHEMA", "generate"]


def generate(entry: Dataset, key: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the sequences of the dataset ``key``, and no metadata."""
    parts = []
    for name, held in entry.sets.items():
        for length in entry.lengths:
            rng = stream(seed, entry.study, key, name, length)
            if entry.task == "strings":
                shares = language.halves(held.p_ignore)
                tokens = language.sample(rng, held.sequences, length, *shares, entry.symbols)
            else:
                tokens = language.sample_symbols(rng, held.sequences, length, held.p_ignore)
            columns = {
                "task": pl.Series([entry.task] * held.sequences),
                "set": pl.Series([name] * held.sequences),
                "length": pl.Series([length] * held.sequences, dtype=pl.Int16),
                "symbols": pl.Series([entry.symbols] * held.sequences, dtype=pl.Int8),
                "p_ignore": pl.Series([held.p_ignore] * held.sequences),
                "tokens": tables.lists(tokens.ravel(), np.full(held.sequences, length)),
            }
            parts.append(pl.DataFrame(columns))
    return pl.concat(parts), {}
