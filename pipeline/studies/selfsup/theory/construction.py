"""A Transformer with weights by hand counts without an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import torch

from pipeline.languages import selfsup as language
from pipeline.models.transformer import decoder
from pipeline.studies.selfsup import constructions
from schemas.theory import rows

if TYPE_CHECKING:
    from pipeline.studies.selfsup.params import Theory


def check(entry: Theory, key: str, seed: int) -> pl.DataFrame:
    """Return one row for each number of symbols: the errors on all sequences."""
    found = [
        {
            "check": f"counts-{symbols}",
            "statement": "A layer below a head that adds one predicts every next token: errors",
            "size": f"{symbols} symbols, all sequences of length {entry.length}",
            "measured": _errors(symbols, entry.length),
            "comparison": "<=",
            "bound": 0.0,
            "claim": "1",
            "part": "construction",
        }
        for symbols in entry.symbols
    ]
    return rows(entry.study, key, "the source, its section", found)


def _errors(symbols: int, length: int) -> float:
    """Return how many tokens the construction gets wrong."""
    spec, weights, table = constructions.counter(symbols, length)
    tokens = language.starting_at(np.arange(symbols), length, symbols)
    ids = torch.from_numpy(tokens.astype(np.int64))[None]
    logits, _ = decoder.forward(spec, weights, table, ids[:, :, :-1])
    return float((logits.argmax(-1) != ids[:, :, 1:]).sum())
