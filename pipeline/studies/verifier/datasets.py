"""Datasets of the study: balanced strings (Li 2025, sections 3.2.1.1, 3.2.1.5), and documents of test cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.languages import dyck_strings as language
from pipeline.languages import test_cases
from pipeline.store import tables
from pipeline.studies.verifier.names import DOCUMENTS, NAMES, RESERVED, TRAINING
from schemas.verifier.datasets import SCHEMA

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.studies.verifier.params import Cases, Corpus, Strings

__all__ = ["SCHEMA", "generate"]


def generate(entry: Strings | Cases, key: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the sets of the dataset ``key``, each from a stream of its own, and no metadata."""
    if entry.kind == "cases":
        return _cases(entry, key, seed), {}
    parts = []
    for name, kind in entry.sets.items():
        rng = stream(seed, entry.study, key, name)
        tokens = language.sample(rng, kind.strings, entry.brackets, kind.p, entry.q, entry.max_depth)
        lengths = np.full(kind.strings, entry.brackets + 2)
        if kind.cut:
            lengths = rng.integers(entry.cut[0], entry.cut[1] + 1, kind.strings) + 1
        parts.append(frame(name, entry.brackets, tokens, lengths))
    return pl.concat(parts), {}


def corpus(entry: Corpus) -> test_cases.Corpus:
    """Return the law of documents that parameters describe."""
    first, second, third, more = entry.corruption
    return test_cases.Corpus(**entry.model_dump() | {"corruption": (first, second, third, more)})


def _cases(entry: Cases, key: str, seed: int) -> pl.DataFrame:
    """Return held-out documents (`DOCUMENTS`), and prompts for random names, for reserved ones (with the body that they
    do not have in training), and for those that verifiers are trained on."""
    law = corpus(entry.corpus)
    tokens, _ = test_cases.sample(stream(seed, entry.study, key, DOCUMENTS), entry.documents, law)
    parts = [_documents(DOCUMENTS, [row[row != test_cases.PAD].tolist() for row in tokens])]
    rng = stream(seed, entry.study, key, "names")
    known = {*test_cases.RESERVED, *test_cases.TRAINING}
    random: list[str] = []
    while len(random) < entry.names:
        name = "".join(chr(ord("a") + letter) for letter in rng.integers(0, 26, 3).tolist())
        if name not in known:
            known.add(name)
            random.append(name)
    for which, names in ((NAMES, random), (RESERVED, test_cases.RESERVED), (TRAINING, test_cases.TRAINING)):
        rng = stream(seed, entry.study, key, which)
        sums = [rng.integers(1, 10, (law.demonstrations, 2)).tolist() for _ in names]
        prompts = [
            test_cases.prompt(name, test_cases.APPEND, [(i, j) for i, j in each])
            for name, each in zip(names, sums, strict=True)
        ]
        parts.append(_documents(which, prompts))
    return pl.concat(parts)


def _documents(name: str, rows: list[list[int]]) -> pl.DataFrame:
    n, lengths = len(rows), np.array([len(row) for row in rows])
    return pl.DataFrame(
        {
            "set": pl.Series([name] * n, dtype=pl.String),
            "replica": pl.Series(np.full(n, -1, np.int16)),
            "string_id": pl.Series(np.arange(n, dtype=np.int32)),
            "brackets": pl.Series(np.zeros(n, np.int16)),
            "error": pl.Series([None] * n, dtype=pl.String),
            "error_at": pl.Series(np.full(n, -1, np.int16)),
            "tokens": tables.lists(np.concatenate(rows).astype(np.int8), lengths),
        }
    )


def frame(
    name: str, brackets: int, tokens_NxT: NDArray[np.int8], lengths_N: NDArray[np.int64], replica: int = -1
) -> pl.DataFrame:
    """Return rows of the schema: strings of these ``lengths``, `BEGIN` counted, and what is wrong in each."""
    at, kind = language.first_errors(tokens_NxT, lengths_N, brackets)
    used = np.arange(tokens_NxT.shape[1]) < lengths_N[:, None]
    n = len(tokens_NxT)
    return pl.DataFrame(
        {
            "set": pl.Series([name] * n, dtype=pl.String),
            "replica": pl.Series(np.full(n, replica, np.int16)),
            "string_id": pl.Series(np.arange(n, dtype=np.int32)),
            "brackets": pl.Series(np.full(n, brackets, np.int16)),
            "error": pl.Series([language.ERRORS[k] if k >= 0 else None for k in kind], dtype=pl.String),
            "error_at": pl.Series(at),
            "tokens": tables.lists(tokens_NxT[used].astype(np.int8), lengths_N),
        }
    )


def padded(column: pl.Series, width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (N, ``width``) the strings of a column, filled up with 0, and their lengths (N,)."""
    lengths = column.list.len().to_numpy().astype(np.int64)
    tokens = np.zeros((len(column), width), np.int64)
    tokens[np.arange(width) < lengths[:, None]] = column.explode().to_numpy()
    return tokens, lengths
