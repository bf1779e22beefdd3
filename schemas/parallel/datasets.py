"""Datasets of the study, a model for each kind: samples of Ising models as counts, a synthetic translation corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from pipeline.languages import synmt

if TYPE_CHECKING:
    from numpy.typing import NDArray

TWO_PAIRS, RANDOM = FAMILIES = ["pairs", "random"]
SAMPLES, SCHEME_DRAWS, CORPUS = "samples", "schemes", "synmt"
ANSWERED = "answered"  # what models wrote: the kind of its entry
TRAIN, VALID, TEST = SPLITS = ["train", "valid", "test"]


class Draws(pa.DataFrameModel):
    """How often a state came with a mask, in one sample; what did not come has no row."""

    spins: pl.Int8 = pa.Field(ge=2, le=10, description="spins of the model")
    J: pl.Float64 = pa.Field(description="coupling of all pairs; there are no fields")
    n: pl.Int32 = pa.Field(ge=1, description="states of the sample")
    repetition: pl.Int32 = pa.Field(ge=0, description="number of the sample among those of its size, from 0")
    k: pl.Int8 = pa.Field(ge=1, description="masked positions")
    mask: pl.Int16 = pa.Field(ge=1, description="a bit for each position, the first the most significant")
    state: pl.Int16 = pa.Field(ge=0, description="a bit for each spin, the first the most significant, +1 as 1")
    count: pl.Int32 = pa.Field(ge=1, description="how many of the sample's states came so")

    class Config:
        """Exactly these columns, in this order."""

        strict = True
        ordered = True
        unique = ["n", "repetition", "k", "mask", "state"]

    @pa.dataframe_check(name="a sample has n states, the same for all sizes of masks, and masks of k positions")
    def adds_up(cls, data: PolarsData) -> pl.LazyFrame:
        by_state = pl.col("of_state")
        frame = data.lazyframe.with_columns(
            of_state=pl.col("count").sum().over("n", "repetition", "k", "state"),
            of_sample=pl.col("count").sum().over("n", "repetition", "k"),
        )
        group = ("n", "repetition", "state")
        same = by_state.min().over(group) == by_state.max().over(group)
        masked = pl.col("mask").bitwise_count_ones() == pl.col("k")
        inside = pl.col("state") < 2 ** pl.col("spins").cast(pl.Int32)
        return frame.select((pl.col("of_sample") == pl.col("n")) & masked & inside & same)


class SchemeDraws(pa.DataFrameModel):
    """How often a state came with a mask of a set, in one sample of a law of four spins; others are left out."""

    law: pl.String = pa.Field(description="id: pairs-J of two coupled pairs, drawn-sigma-draw of random models")
    family: pl.String = pa.Field(isin=FAMILIES, description="of laws: coupled pairs, or random models")
    strength: pl.Float64 = pa.Field(ge=0, description="coupling within pairs; of random models, sigma")
    theta: pl.List = pa.Field(dtype_kwargs={"inner": pl.Float64}, description="couplings of pairs, then fields")
    scheme: pl.String = pa.Field(description="set of masks, each equally likely")
    n: pl.Int32 = pa.Field(ge=1, description="states of the sample")
    repetition: pl.Int32 = pa.Field(ge=0, description="number of the sample, from 0")
    mask: pl.Int16 = pa.Field(ge=1, lt=16, description="a bit for each position, the first the most significant")
    state: pl.Int16 = pa.Field(ge=0, lt=16, description="a bit for each spin, the first the most significant, +1 as 1")
    count: pl.Int32 = pa.Field(ge=1, description="how many of the sample's states came so")

    class Config:
        """Exactly these columns, in this order."""

        strict = True
        ordered = True
        unique = ["law", "scheme", "n", "repetition", "mask", "state"]

    @pa.dataframe_check(name="a sample has n states, the same for all sets of masks")
    def adds_up(cls, data: PolarsData) -> pl.LazyFrame:
        sample = ("law", "scheme", "n", "repetition")
        frame = data.lazyframe.with_columns(
            of_state=pl.col("count").sum().over(*sample, "state"), of_sample=pl.col("count").sum().over(sample)
        )
        state = ("law", "n", "repetition", "state")
        same = pl.col("of_state").min().over(state) == pl.col("of_state").max().over(state)
        return frame.select((pl.col("of_sample") == pl.col("n")) & same)


class Corpus(pa.DataFrameModel):
    """SYNMT (PAR-D10, `pipeline.languages.synmt`): a source, and a translation that was drawn or that a model gave."""

    split: pl.String = pa.Field(isin=SPLITS, description="sources of a split are in no other")
    alpha: pl.Float64 = pa.Field(ge=0, le=1, description="probability that register and particle are drawn")
    first_register: pl.Float64 = pa.Field(ge=0, le=1, description="probability of z = 0, where it is drawn")
    replica: pl.Int16 = pa.Field(ge=-1, description="the model that translated; -1: drawn from the law")
    idx: pl.Int32 = pa.Field(ge=0, description="number of the sentence in its split, from 0; the same for all alpha")
    blocks: pl.Int16 = pa.Field(ge=1, description="of 24 words, in the lexicon")
    doubles: pl.Boolean = pa.Field(description="whether a quarter of the words have two tokens each")
    src: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16}, description="words, from 0")
    tgt: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16}, description="ids of the translation, EOS last")
    z: pl.Int8 = pa.Field(ge=0, le=1, nullable=True, description="register; null where a model translated")
    j: pl.Int16 = pa.Field(ge=0, nullable=True, description="word that the particle stands before; null as z")
    n_words: pl.Int16 = pa.Field(ge=1, description="L, words of the source")
    log_p: pl.Float64 = pa.Field(
        le=1e-12, nullable=True, description="log p(tgt | src), nats; null where a model gave what has no probability"
    )
    tc_nats: pl.Float64 = pa.Field(ge=-1e-9, description="total correlation of target tokens given the source, nats")
    h_nats: pl.Float64 = pa.Field(ge=-1e-9, description="H(Y | src), nats")
    tv_prod: pl.Float64 = pa.Field(
        ge=-1e-9, le=1 + 1e-9, description="total variation between p(y | src) and the product of its marginals"
    )
    alike: pl.Boolean = pa.Field(
        description="the position-wise likeliest tokens are a translation of positive probability"
    )
    stutter: pl.Int16 = pa.Field(ge=0, description="of these, equal neighbours")

    class Config:
        """Exactly these columns, in this order."""

        strict = True
        ordered = True
        unique = ["split", "replica", "idx"]

    @pa.dataframe_check(name="words are of the lexicon, neighbours differ, and a drawn target is f(src, z, j)")
    def translates(cls, data: PolarsData) -> pl.LazyFrame:
        frame = data.lazyframe.collect()
        right = np.zeros(frame.height, bool)
        for (blocks, doubles), rows in frame.with_row_index().group_by("blocks", "doubles"):
            lexicon, at = synmt.Lexicon(int(str(blocks)), bool(doubles)), rows["index"].to_numpy()
            words = padded(rows["src"], synmt.NONE)
            inside = ((words >= synmt.NONE) & (words < lexicon.words)).all(1)
            apart = ((words[:, 1:] != words[:, :-1]) | (words[:, 1:] == synmt.NONE)).all(1)
            right[at] = inside & apart & (rows["n_words"].to_numpy() == (words >= 0).sum(1))
            drawn = np.flatnonzero(right[at] & rows["z"].is_not_null().to_numpy())
            given = padded(rows["tgt"], synmt.PAD)[drawn]
            z, j = (rows[name].to_numpy()[drawn].astype(np.int64) for name in ("z", "j"))
            known = j <= (words[drawn] >= 0).sum(1)
            made = synmt.translate(lexicon, words[drawn], z, np.where(known, j, 0), given.shape[1])
            right[at[drawn]] = known & (made == given).all(1)
        return pl.LazyFrame({"right": right})


def padded(column: pl.Series, fill: int, size: int | None = None) -> NDArray[np.int64]:
    """Return lists as an array (N, longest or ``size``), ``fill`` behind their ends."""
    counts = column.list.len().to_numpy().astype(np.int64)
    size = int(counts.max(initial=1)) if size is None else size
    found = np.full((len(counts), size), fill, np.int64)
    found[np.arange(size) < counts[:, None]] = column.explode(empty_as_null=False).to_numpy() if len(counts) else []
    return found


SCHEMA = {SAMPLES: Draws, SCHEME_DRAWS: SchemeDraws, CORPUS: Corpus, ANSWERED: Corpus}
