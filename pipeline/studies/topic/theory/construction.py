"""A Transformer with weights by hand counts without an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pipeline.languages import topic as language
from pipeline.models.transformer import decoder
from schemas.theory import rows

if TYPE_CHECKING:
    from pipeline.studies.topic.params import Theory


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
        }
        for symbols in entry.symbols
    ]
    return rows(entry.study, key, "the source, its section", found)


def _errors(symbols: int, length: int) -> float:
    """Return how many tokens the construction gets wrong."""
    spec, weights, table = counter(symbols, length)
    tokens = language.starting_at(np.arange(symbols), length, symbols)
    ids = torch.from_numpy(tokens.astype(np.int64))[None]
    logits, _ = decoder.forward(spec, weights, table, ids[:, :, :-1])
    return float((logits.argmax(-1) != ids[:, :, 1:]).sum())


def counter(symbols: int, length: int) -> tuple[decoder.Spec, dict[str, Tensor], Tensor]:
    """Return shape, weights and embedding of a layer that does nothing below a head that adds one."""
    spec = decoder.Spec(
        block="gpt", layers=1, heads=1, width=symbols, ffn=symbols, attention="learned", position="none",
        t_max=length, inputs=symbols, outputs=symbols,
    )  # fmt: skip
    weights = {name: torch.zeros(1, *shape) for name, shape in decoder.shapes(spec).items()}
    table = torch.eye(symbols)
    weights["head.W"][0] = table.roll(1, dims=1)
    return spec, weights, table
