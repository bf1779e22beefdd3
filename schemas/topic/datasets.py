"""Documents of the study, and the arrays that models read from them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pandera.polars as pa
import polars as pl
from numpy.typing import NDArray
from pandera.api.polars.types import PolarsData

if TYPE_CHECKING:
    from pipeline.languages import topic as language

SCHEMES = ("thesis", "released")


def _language() -> Any:
    """Return the language of disjoint topics; jobs on other corpora do without it."""
    return importlib.import_module("pipeline.languages.topic")


class Documents(pa.DataFrameModel):
    """One row per document of disjoint topics, with its masks, which are drawn once: those of the thesis and of the
    released code."""

    split: pl.String = pa.Field(isin=["train", "dev"])
    document: pl.Int32 = pa.Field(ge=0, description="its number in the split")
    topics: pl.Int16 = pa.Field(ge=2, description="topics of the corpus, T")
    words: pl.Int16 = pa.Field(ge=1, description="words of a topic, v")
    p_mask: pl.Float64 = pa.Field(gt=0, lt=1, description="probability that a position is masked")
    p_keep: pl.Float64 = pa.Field(ge=0, lt=1, description="probability that a masked position stays")
    p_random: pl.Float64 = pa.Field(ge=0, lt=1, description="probability that a masked position shows a random id")
    theta: pl.List = pa.Field(dtype_kwargs={"inner": pl.Float32}, description="shares of topics")
    tokens: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16}, description="ids of words, from 1 to T v")
    thesis_at: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16}, description="masked positions, as the thesis masks")
    thesis_shown: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16}, description="ids that they show")
    released_at: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.Int16}, description="masked positions, as the released code masks"
    )
    released_shown: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16}, description="ids that they show")

    class Config:
        """Exactly these columns, in this order; one row per document."""

        strict = True
        ordered = True
        unique = ["split", "document"]

    @pa.dataframe_check(name="tokens are words of the corpus")
    def are_words(cls, data: PolarsData) -> pl.LazyFrame:
        last = pl.col("topics").cast(pl.Int32) * pl.col("words")
        tokens = pl.col("tokens").list
        return data.lazyframe.select((tokens.min() >= 1) & (tokens.max() <= last))

    @pa.dataframe_check(name="shares of topics sum to 1")
    def shares(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("theta").list.sum() - 1).abs() <= 1e-5)

    @pa.dataframe_check(name="at least one position is masked, each within the document, and each shows an id")
    def masks(cls, data: PolarsData) -> pl.LazyFrame:
        size = pl.col("topics").cast(pl.Int32) * pl.col("words")
        right = pl.lit(True)
        for scheme in SCHEMES:
            at, shown = pl.col(f"{scheme}_at").list, pl.col(f"{scheme}_shown").list
            right &= (at.len() >= 1) & (at.len() == shown.len()) & (at.min() >= 0)
            right &= (at.max() < pl.col("tokens").list.len()) & (shown.min() >= 0)
            right &= shown.max() <= size + (_language().SPECIALS if scheme == "released" else 0)
        return data.lazyframe.select(right)


class Texts(pa.DataFrameModel):
    """One row per document of a corpus that stands in for natural language (`pipeline.languages.topic_corpora`), with
    masks that are drawn once."""

    split: pl.String = pa.Field(isin=["train", "dev"])
    document: pl.Int32 = pa.Field(ge=0, description="its number in the split")
    symbols: pl.Int16 = pa.Field(ge=6, description="ids, special ones included, V")
    stop_words: pl.Int16 = pa.Field(ge=1, description="how many of the first words are stop words")
    entry: pl.String = pa.Field(description="of real text, where it is from; else empty")
    text: pl.String = pa.Field(description="of real text, as it is printed; else empty")
    theta: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.Float32}, description="shares of topics; empty where nobody knows them"
    )
    tokens: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16}, description="ids of words between CLS 2 and SEP 3")
    at: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16}, description="masked positions")
    shown: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16}, description="ids that they show")

    class Config:
        """Exactly these columns, in this order; one row per document."""

        strict = True
        ordered = True
        unique = ["split", "document"]

    @pa.dataframe_check(name="words stand between CLS and SEP")
    def framed(cls, data: PolarsData) -> pl.LazyFrame:
        tokens = pl.col("tokens").list
        inner = tokens.slice(1, tokens.len() - 2).list
        right = (tokens.first() == 2) & (tokens.last() == 3) & (tokens.len() >= 3)
        return data.lazyframe.select(right & (inner.min() >= 4) & (inner.max() < pl.col("symbols")))

    @pa.dataframe_check(name="shares of topics sum to 1, where they are known")
    def shares(cls, data: PolarsData) -> pl.LazyFrame:
        theta = pl.col("theta").list
        return data.lazyframe.select((theta.len() == 0) | ((theta.sum() - 1).abs() <= 1e-5))

    @pa.dataframe_check(name="at least one position is masked, each within the document, and each shows an id")
    def masks(cls, data: PolarsData) -> pl.LazyFrame:
        at, shown = pl.col("at").list, pl.col("shown").list
        right = (at.len() >= 1) & (at.len() == shown.len()) & (at.min() >= 1) & (shown.min() >= 1)
        right &= (at.max() < pl.col("tokens").list.len() - 1) & (shown.max() < pl.col("symbols"))
        return data.lazyframe.select(right)


class Words(pa.DataFrameModel):
    """One row per id of a corpus that stands in for natural language: what it is, and how likely topics make it."""

    id: pl.Int16 = pa.Field(ge=0, unique=True, description="its number in documents")
    word: pl.String = pa.Field(unique=True, str_length={"min_value": 1}, description="as it is printed")
    stop: pl.Boolean = pa.Field(description="a special id or a stop word, which no topic keeps")
    law: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.Float64},
        description="p(word | topic) of words that are no stop words, by topic; empty where nobody knows it",
    )

    class Config:
        """Exactly these columns, in this order."""

        strict = True
        ordered = True


def documents(frame: pl.DataFrame) -> language.Documents:
    """Return the documents of a frame, in its order."""
    lengths = frame["tokens"].list.len().to_numpy().astype(np.int64)
    theta = frame["theta"].explode().to_numpy().astype(float).reshape(frame.height, -1)
    found: language.Documents = _language().Documents(_flat(frame, "tokens"), lengths, theta)
    return found


def masks(frame: pl.DataFrame, scheme: str) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which positions of the documents are masked, one document behind the other, and what all of them show."""
    read = documents(frame)
    many = frame[f"{scheme}_at"].list.len().to_numpy()
    begins = np.repeat(read.lengths.cumsum() - read.lengths, many)
    where = begins + _flat(frame, f"{scheme}_at")
    at = np.zeros(len(read.tokens), bool)
    at[where] = True
    shown = read.tokens.copy()
    shown[where] = _flat(frame, f"{scheme}_shown")
    return at, shown


def questions(frame: pl.DataFrame, scheme: str) -> language.Questions:
    """Return what a model reads and is asked of the documents of a frame."""
    topics, words = (int(frame[name][0]) for name in ("topics", "words"))
    told = topics, words, scheme == "released"
    found: language.Questions = _language().questions(documents(frame), *masks(frame, scheme), *told)
    return found


def masking(frame: pl.DataFrame) -> language.Masking:
    """Return the probabilities that the documents of a frame were masked with."""
    told = (float(frame[name][0]) for name in ("p_mask", "p_keep", "p_random"))
    found: language.Masking = _language().Masking(*told)
    return found


def _flat(frame: pl.DataFrame, column: str) -> NDArray[np.int64]:
    return frame[column].explode().to_numpy().astype(np.int64)


def texts(frame: pl.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the tokens of a frame of `Texts`, one document behind the other, and how many each has."""
    return _flat(frame, "tokens"), frame["tokens"].list.len().to_numpy().astype(np.int64)


def text_masks(frame: pl.DataFrame) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which positions of a frame of `Texts` are masked, one document behind the other, and what all show."""
    tokens, lengths = texts(frame)
    begins = np.repeat(lengths.cumsum() - lengths, frame["at"].list.len().to_numpy())
    where = begins + _flat(frame, "at")
    at, shown = np.zeros(len(tokens), bool), tokens.copy()
    at[where] = True
    shown[where] = _flat(frame, "shown")
    return at, shown


SCHEMA = {"disjoint": Documents, "texts": Texts, "words": Words}
