"""Datasets of the study, a model for each kind: samples of Ising models as counts."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

TWO_PAIRS, RANDOM = FAMILIES = ["pairs", "random"]
SAMPLES, SCHEME_DRAWS = "samples", "schemes"


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
    family: pl.String = pa.Field(isin=FAMILIES)
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


SCHEMA = {SAMPLES: Draws, SCHEME_DRAWS: SchemeDraws}
