"""The datasets of the Dyck study: DYCK-D1 to D6 (Wen et al. 2023, sections 2, 4 and D.2)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl

from pipeline.languages import dyck
from pipeline.streams import stream
from schemas.dyck.datasets import Sequences

SCHEMA = Sequences


def generate(entry: Any, dataset_id: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """The dataset of ``entry`` (`params.Complete`, `Prefix` or `Nested`) and the metadata of its file.

    Every corpus has a random stream of its own, so corpus c is the same however many there are.
    Metadata: ``vocabulary`` (JSON list, tokens 0..2k), ``k``, ``depth`` and ``generator``.
    """
    corpora = getattr(entry, "corpora", 1)
    tokens = [_corpus(entry, stream(seed, "dyck", dataset_id, "corpus", c)) for c in range(corpora)]
    frame = pl.concat([_frame(entry, c, rows) for c, rows in enumerate(tokens)])
    metadata = {
        "vocabulary": json.dumps(dyck.vocabulary(entry.k)),
        "k": str(entry.k),
        "depth": str(entry.depth),
        "generator": f"pipeline.languages.dyck {entry.sampler}",
    }
    return frame, metadata


def _corpus(entry: Any, rng: np.random.Generator) -> np.ndarray:
    if entry.sampler == "complete":
        return dyck.sample_complete(
            rng, entry.sequences, entry.k, entry.depth, entry.q, entry.p_stop, entry.max_length
        )
    if entry.sampler == "prefix":
        lengths = rng.integers(entry.min_length, entry.max_length + 1, entry.sequences)
        return dyck.sample_prefixes(rng, entry.sequences, lengths, entry.k, entry.depth, entry.q)
    return dyck.nested_probe(entry.k, entry.depth)


def _frame(entry: Any, corpus: int, tokens: np.ndarray) -> pl.DataFrame:
    n, real = len(tokens), tokens != dyck.PADDING
    length = real.sum(1)
    return pl.DataFrame(
        {
            "split": pl.Series([entry.split], dtype=pl.String).new_from_index(0, n),
            "lang_k": np.full(n, entry.k, np.int8),
            "lang_D": np.full(n, entry.depth, np.int8),
            "corpus_seed": np.full(n, corpus, np.int32),
            "seq_id": np.arange(n, dtype=np.int32),
            "tokens": _lists(tokens[real], length),
            "depths": _lists(dyck.depths(tokens)[real], length),
            "length": length.astype(np.int16),
        }
    )


def _lists(values: np.ndarray, lengths: np.ndarray) -> pl.Series:
    """A list column from its values, one list after another (every list has at least one)."""
    row = np.repeat(np.arange(len(lengths)), lengths)
    flat = pl.DataFrame({"row": row, "value": values})
    return flat.group_by("row", maintain_order=True).agg("value")["value"]
