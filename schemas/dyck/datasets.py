"""Dyck sequences: what every dataset of the study must satisfy, checked without the code that generates them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandera.polars as pa
import polars as pl
from numpy.typing import NDArray
from pandera.api.polars.types import PolarsData

SPLITS = [
    "train_complete",
    "train_prefix",
    "dev_complete",
    "dev_prefix",
    "lengen",
    "probe16",
    "probe19",
    "probe28",
    "copy",
    "dev_copy",
]
COMPLETE = ["train_complete", "dev_complete"]


class Sequences(pa.DataFrameModel):
    """Bracket strings of Dyck_{k,D}, one row per sequence, without start token and padding (chapter table 1).

    Tokens are 1..2k: type t opens with 2t-1 and closes with 2t. The depth of a token is the number of
    unmatched opens after it. ``corpus_seed`` numbers the independent corpora of the dataset from 0.
    """

    split: pl.String = pa.Field(isin=SPLITS)
    lang_k: pl.Int8 = pa.Field(ge=1)
    lang_D: pl.Int8 = pa.Field(ge=1)
    corpus_seed: pl.Int32 = pa.Field(ge=0)
    seq_id: pl.Int32 = pa.Field(ge=0)
    tokens: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int8})
    depths: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int8})
    length: pl.Int16 = pa.Field(ge=1, le=500)

    class Config:
        """Exactly these columns, in this order; one row per key."""

        strict = True
        ordered = True
        unique = ["split", "lang_k", "lang_D", "corpus_seed", "seq_id"]

    @pa.dataframe_check(name="length counts tokens and depths")
    def length_counts(cls, data: PolarsData) -> pl.LazyFrame:
        n = pl.col("length").cast(pl.UInt32)
        same = (pl.col("tokens").list.len() == n) & (pl.col("depths").list.len() == n)
        return data.lazyframe.select(same.fill_null(False))

    @pa.dataframe_check(name="tokens are 1..2k")
    def tokens_in_range(cls, data: PolarsData) -> pl.LazyFrame:
        flat = _Flat.of(data)
        largest = 2 * flat.frame["lang_k"].to_numpy().astype(np.int16)[flat.row]
        return flat.rows_without((flat.tokens < 1) | (flat.tokens > largest))

    @pa.dataframe_check(name="depths count the unmatched opens")
    def depths_follow_tokens(cls, data: PolarsData) -> pl.LazyFrame:
        flat = _Flat.of(data)
        depths = flat.frame["depths"].to_arrow().flatten().to_numpy(zero_copy_only=False)
        if len(depths) != len(flat.tokens):  # reported by the check of the length
            return pl.LazyFrame({"ok": [True] * flat.frame.height})
        return flat.rows_without(depths != flat.depth)

    @pa.dataframe_check(name="depths are 0..D")
    def depth_bounded(cls, data: PolarsData) -> pl.LazyFrame:
        flat = _Flat.of(data)
        return flat.rows_without((flat.depth < 0) | (flat.depth > flat.frame["lang_D"].to_numpy()[flat.row]))

    @pa.dataframe_check(name="every closer matches its opener")
    def closers_match(cls, data: PolarsData) -> pl.LazyFrame:
        flat = _Flat.of(data)
        # Ordered by pair depth, then row, then position, the tokens of one row at one pair depth are
        # neighbours and alternate: a closer comes right after its opener.
        closer = flat.tokens % 2 == 0
        order = np.argsort((flat.depth + closer).astype(np.int16), kind="stable")
        before = np.roll(order, 1)
        matches = (flat.tokens[before] == flat.tokens[order] - 1) & (flat.row[before] == flat.row[order])
        return flat.rows_without(np.isin(np.arange(len(order)), order[closer[order] & ~matches]))

    @pa.dataframe_check(name="complete strings end at depth 0")
    def complete_ends(cls, data: PolarsData) -> pl.LazyFrame:
        complete = pl.col("split").is_in(COMPLETE)
        ends = (pl.col("depths").list.last() == 0) & (pl.col("length") % 2 == 0)
        return data.lazyframe.select((~complete | ends).fill_null(False))


@dataclass(frozen=True)
class _Flat:
    """All tokens of a frame one after another, with their row and the depth that they imply."""

    frame: pl.DataFrame
    tokens: NDArray[np.int16]
    row: NDArray[np.int64]
    depth: NDArray[np.int64]

    @classmethod
    def of(cls, data: PolarsData) -> _Flat:
        frame = data.lazyframe.collect()
        tokens = frame["tokens"].to_arrow().flatten().to_numpy(zero_copy_only=False).astype(np.int16)
        lengths = frame["tokens"].list.len().fill_null(0).to_numpy().astype(np.int64)
        row = np.repeat(np.arange(frame.height), lengths)
        total = np.cumsum(np.where(tokens % 2 == 1, 1, -1))
        before = np.concatenate([[0], total])[np.cumsum(lengths) - lengths]  # what the rows above add up to
        return cls(frame, tokens, row, total - before[row])

    def rows_without(self, bad: NDArray[np.bool_]) -> pl.LazyFrame:
        """Return, as one bool per row, whether none of its tokens is ``bad``."""
        return pl.LazyFrame({"ok": np.bincount(self.row[bad], minlength=self.frame.height) == 0})


SCHEMA = Sequences
