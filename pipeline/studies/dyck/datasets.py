"""The datasets of the Dyck study: DYCK-D1 to D7 (Wen et al. 2023, sections 2, 4, B.1 and D.2)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.languages import dyck
from pipeline.store import tables
from schemas.dyck.datasets import Sequences

if TYPE_CHECKING:
    from pipeline.studies.dyck.params import Dataset, Grammar

SCHEMA = Sequences


def generate(entry: Dataset, dataset_id: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the dataset of ``entry`` (`params.Complete`, `Prefix` or `Nested`) and the metadata of its file.

    Every corpus has a random stream of its own, so corpus c of a grammar is the same whatever else there is.
    Metadata: ``vocabulary`` (JSON list, tokens 0..2k of the largest k) and ``generator``.
    """
    parts = []
    for grammar in entry.grammars:
        for c in range(getattr(entry, "corpora", 1)):
            rng = stream(seed, "dyck", dataset_id, "grammar", grammar.k, grammar.depth, "corpus", c)
            parts.append(_frame(entry, grammar, c, _corpus(entry, grammar, rng)))
    frame = pl.concat(parts)
    metadata = {
        "vocabulary": json.dumps(dyck.vocabulary(max(grammar.k for grammar in entry.grammars))),
        "generator": f"pipeline.languages.dyck {entry.sampler}",
    }
    return frame, metadata


def _corpus(entry: Dataset, grammar: Grammar, rng: np.random.Generator) -> np.ndarray:
    k, depth = grammar.k, grammar.depth
    if entry.sampler == "complete":
        return dyck.sample_complete(rng, entry.sequences, k, depth, entry.q, entry.p_stop, entry.max_length)
    if entry.sampler == "prefix":
        lengths = rng.integers(entry.min_length, entry.max_length + 1, entry.sequences)
        return dyck.sample_prefixes(rng, entry.sequences, lengths, k, depth, entry.q)
    return dyck.nested_probe(k, depth)


def _frame(entry: Dataset, grammar: Grammar, corpus: int, tokens: np.ndarray) -> pl.DataFrame:
    n, real = len(tokens), tokens != dyck.PADDING
    length = real.sum(1)
    return pl.DataFrame(
        {
            "split": pl.Series([entry.split], dtype=pl.String).new_from_index(0, n),
            "lang_k": np.full(n, grammar.k, np.int8),
            "lang_D": np.full(n, grammar.depth, np.int8),
            "corpus_seed": np.full(n, corpus, np.int32),
            "seq_id": np.arange(n, dtype=np.int32),
            "tokens": tables.lists(tokens[real], length),
            "depths": tables.lists(dyck.depths(tokens)[real], length),
            "length": length.astype(np.int16),
        }
    )
