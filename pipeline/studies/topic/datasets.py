"""Documents of the study, with masks that are drawn once (Li 2025, sections 2.1.1 and 2.1.5.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.languages import topic as language
from pipeline.store import tables
from schemas.topic.datasets import SCHEMA

if TYPE_CHECKING:
    from pipeline.studies.topic.params import Dataset

__all__ = ["SCHEMA", "generate"]


def generate(entry: Dataset, key: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the documents of the dataset ``key``; its metadata name their kind.

    Documents and masks have streams of their own, so that both masking schemes mask the same documents.
    """
    return pl.concat(_split(entry, key, seed, name) for name in ("train", "dev")), {"kind": entry.kind}


def _split(entry: Dataset, key: str, seed: int, split: str) -> pl.DataFrame:
    n = getattr(entry, split)
    size = entry.topics * entry.words
    rng = stream(seed, entry.study, key, split, "documents")
    common = (rng, n, entry.topics, entry.words)
    if entry.alpha is not None:
        made = language.mixed(*common, entry.alpha, entry.shortest, entry.longest)
    else:
        made = language.exact(*common, entry.chosen or 0, entry.shortest, entry.longest)
    masking = language.Masking(entry.p_mask, entry.p_keep, entry.p_random)
    columns = {
        "split": pl.Series([split] * n),
        "document": pl.Series(np.arange(n), dtype=pl.Int32),
        "topics": pl.Series([entry.topics] * n, dtype=pl.Int16),
        "words": pl.Series([entry.words] * n, dtype=pl.Int16),
        "p_mask": pl.Series([entry.p_mask] * n),
        "p_keep": pl.Series([entry.p_keep] * n),
        "p_random": pl.Series([entry.p_random] * n),
        "theta": tables.lists(made.theta.ravel().astype(np.float32), np.full(n, entry.topics)),
        "tokens": tables.lists(made.tokens.astype(np.int16), made.lengths),
    }
    ends = made.lengths.cumsum()
    within = np.arange(len(made.tokens)) - np.repeat(ends - made.lengths, made.lengths)
    owner = np.repeat(np.arange(n), made.lengths)
    # The thesis replaces by words; the released code by any id, special ones included.
    ids = {
        "thesis": np.arange(1, size + 1),
        "released": np.arange(language.vocabulary(entry.topics, entry.words, True)),
    }
    for scheme, replacements in ids.items():
        rng = stream(seed, entry.study, key, split, "masks", scheme)
        at, shown = language.masked(rng, made.tokens, made.lengths, masking, replacements)
        many = np.bincount(owner[at], minlength=n)
        columns[f"{scheme}_at"] = tables.lists(within[at].astype(np.int16), many)
        columns[f"{scheme}_shown"] = tables.lists(shown[at].astype(np.int16), many)
    return pl.DataFrame(columns)
