"""Sequences of the depth study: what every dataset must satisfy, checked without the code that generates them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandera.polars as pa
import polars as pl
from numpy.typing import NDArray
from pandera.api.polars.types import PolarsData

SPLITS = ["train", "fresh", "unseen_combination", "unseen_repetition", "unseen_token"]
TASKS = ["sc", "ic_qa", "tm", "ic_tm", "nested"]


class Sequences(pa.DataFrameModel):
    """One row per sequence; all sequences of a dataset have one length and one task (chapter, section 3).

    Tokens are d1 questions, the response sign d1, then d2 answers. ``l`` counts the tokens of a template (of a
    sequence, for ``sc``), ``k`` the pairs of a context; 0 where there are none. ``label`` is a token, of ``sc`` and
    ``tm`` the number of a class. ``corpus`` numbers independent corpora: of ``sc`` one for each number of sequences,
    of ``nested`` one for each number of ``hops``. What training holds back: ``unseen_combination`` of tokens that it
    shows, ``unseen_repetition`` of one token that it shows with others, ``unseen_token``.
    """

    task: pl.String = pa.Field(isin=TASKS)
    split: pl.String = pa.Field(isin=SPLITS)
    corpus: pl.Int8 = pa.Field(ge=0)
    seq_id: pl.Int32 = pa.Field(ge=0)
    k: pl.Int8 = pa.Field(ge=0)
    l: pl.Int8 = pa.Field(ge=0)
    d1: pl.Int16 = pa.Field(ge=1)
    d2: pl.Int16 = pa.Field(ge=0)
    hops: pl.Int8 = pa.Field(ge=0, description="lookups that the label takes; 0 but for nested")
    tokens: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16})
    label: pl.Int32 = pa.Field(ge=0)
    candidates: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16}, description="answers that the context offers")
    right: pl.Int16 = pa.Field(ge=0, description="the pair or example that holds the label; of tm the template")

    class Config:
        """Exactly these columns, in this order; one row per key."""

        strict = True
        ordered = True
        unique = ["split", "corpus", "seq_id"]

    @pa.dataframe_check(name="one task, one shape")
    def one_shape(cls, data: PolarsData) -> pl.LazyFrame:
        same = ["task", "k", "l", "d1", "d2"]
        shape = [pl.col(name) == pl.col(name).first() for name in same]
        lengths = [pl.col(name).list.len() for name in ("tokens", "candidates")]
        return data.lazyframe.select(pl.all_horizontal(*shape, *(n == n.first() for n in lengths)))

    @pa.dataframe_check(name="tokens are of the vocabulary")
    def tokens_in_range(cls, data: PolarsData) -> pl.LazyFrame:
        return _rows(data, lambda f: (f.tokens >= 0).all(1) & (f.tokens <= (f.d1 + f.d2)[:, None]).all(1))

    @pa.dataframe_check(name="the response sign ends the sequence")
    def sign_ends(cls, data: PolarsData) -> pl.LazyFrame:
        return _rows(data, lambda f: f.tokens[:, -1] == f.d1)

    @pa.dataframe_check(name="the label is the one that the task asks for")
    def label_is_right(cls, data: PolarsData) -> pl.LazyFrame:
        return _rows(data, lambda f: _LABEL_RIGHT[f.task](f))

    @pa.dataframe_check(name="what is held out does not occur in training")
    def held_out(cls, data: PolarsData) -> pl.LazyFrame:
        return _rows(data, _apart)


class _Arrays:
    """The columns of a frame of one shape as arrays."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.task = str(frame["task"][0])
        self.k, self.l = int(frame["k"][0]), int(frame["l"][0])
        self.tokens, self.candidates = (_matrix(frame[name]) for name in ("tokens", "candidates"))
        names = ("split", "corpus", "d1", "d2", "hops", "label", "right")
        self.split, self.corpus, self.d1, self.d2, self.hops, self.label, self.right = (
            frame[name].to_numpy() for name in names
        )
        self.rows = np.arange(frame.height)


def _matrix(column: pl.Series) -> NDArray[np.int64]:
    flat = column.to_arrow().flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(column), -1).astype(np.int64)


def _rows(data: PolarsData, check: Callable[[_Arrays], NDArray[Any]]) -> pl.LazyFrame:
    """Return what ``check`` finds, one bool per row; True where lists have several lengths, which another
    check reports."""
    frame = data.lazyframe.collect()
    ragged = any(frame[name].list.len().n_unique() > 1 for name in ("tokens", "candidates"))
    if not frame.height or ragged or frame["task"].n_unique() > 1:
        return pl.LazyFrame({"ok": [True] * frame.height})
    return pl.LazyFrame({"ok": np.asarray(check(_Arrays(frame)), bool)})


def _equalities(tokens_NxL: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which tokens are equal, (N, L, L): what two sequences of one template have in common."""
    return tokens_NxL[:, :, None] == tokens_NxL[:, None]


def _classes(f: _Arrays) -> NDArray[np.bool_]:
    """Return whether the labels of a corpus are 0..N-1, each once, and its sequences distinct."""
    ok = np.zeros(len(f.rows), bool)
    for corpus in np.unique(f.corpus):
        rows = np.flatnonzero(f.corpus == corpus)
        unique = len(np.unique(f.tokens[rows], axis=0)) == len(rows)
        ok[rows] = unique & np.array_equal(np.sort(f.label[rows]), np.arange(len(rows)))
    return ok


def _lookup(f: _Arrays) -> NDArray[np.bool_]:
    """Return whether the asked pair's question is the query and its answer the label."""
    question, answer = f.tokens[f.rows, 3 * f.right], f.tokens[f.rows, 3 * f.right + 2]
    return (question == f.tokens[:, -2]) & (answer == f.label) & (f.candidates[f.rows, f.right] == f.label)


def _template(f: _Arrays) -> NDArray[np.bool_]:
    """Return whether each class has one pattern of equal tokens, and two classes have two patterns."""
    bits = _equalities(f.tokens[:, : f.l]).reshape(len(f.rows), -1)
    pattern = bits @ (1 << np.arange(bits.shape[1], dtype=np.int64)) if bits.shape[1] < 63 else f.label
    pairs = np.unique(np.stack([pattern, f.label], 1), axis=0)
    one_to_one = len(pairs) == len(np.unique(pairs[:, 0])) == len(np.unique(pairs[:, 1]))
    return np.full(len(f.rows), one_to_one) & (f.label == f.right)


def _template_in_context(f: _Arrays) -> NDArray[np.bool_]:
    """Return whether example ``right``, and no other, has the query's pattern of equal tokens, and every
    example has other tokens."""
    size = f.l + 2
    query = f.tokens[:, f.k * size : f.k * size + f.l]
    ok = f.candidates[f.rows, f.right] == f.label
    for i in range(f.k):
        example = f.tokens[:, i * size : i * size + f.l]
        same = (_equalities(example) == _equalities(query)).all((1, 2))
        ok &= same == (f.right == i)
        ok &= f.candidates[:, i] == f.tokens[:, i * size + f.l + 1]
        ok &= (example != query).any(1)
    return ok


def _chain(f: _Arrays) -> NDArray[np.bool_]:
    """Return whether following the pairs from the query ``hops`` times gives the label, which no pair leads
    on from."""
    at, pairs = f.tokens[:, -2].copy(), f.tokens[:, :-2].reshape(len(f.rows), -1, 3)
    ok = np.ones(len(f.rows), bool)
    for hop in range(int(f.hops.max())):
        found = pairs[:, :, 0] == at[:, None]
        going = hop < f.hops
        ok &= ~going | (found.sum(1) == 1)
        at = np.where(going, (found * pairs[:, :, 2]).sum(1), at)
    return ok & (at == f.label) & (pairs[:, :, 0] != at[:, None]).all(1) & (f.candidates == at[:, None]).any(1)


_LABEL_RIGHT = {"sc": _classes, "ic_qa": _lookup, "tm": _template, "ic_tm": _template_in_context, "nested": _chain}


def _apart(f: _Arrays) -> NDArray[np.bool_]:
    train = f.split == "train"
    ok = np.ones(len(f.rows), bool)
    if (tokens := f.split == "unseen_token").any():
        ok[tokens] = ~np.isin(f.tokens[tokens, :-1], np.unique(f.tokens[train, :-1])).any(1)
    if (held := np.isin(f.split, ["unseen_combination", "unseen_repetition"])).any():
        base = int(f.d1[0]) + 1
        code = f.tokens[:, :-1] @ base ** np.arange(f.tokens.shape[1] - 1)
        ok[held] = ~np.isin(code[held], np.unique(code[train]))
    return ok


SCHEMA = Sequences
