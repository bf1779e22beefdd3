"""Datasets of the NCE study, a model for each kind."""

from __future__ import annotations

import numpy as np
import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

GAUSS, IMAGES = "gauss", "images"
DIMENSION = 16


class Pairs(pa.DataFrameModel):
    """NCE-D1, D16: data P* and noise Q = N(0, I) as parameters, one pair per dimension and seed.

    In one dimension N(R, 1), tau = [b, c]; in 16, N(0, diag(s)), tau = [1/s .., mu/s .., log partition]. The last
    coordinate is the log partition function.
    """

    dim: pl.Int8 = pa.Field(isin=[1, DIMENSION])
    seed: pl.Int32 = pa.Field(ge=0)
    s: pl.List = pa.Field(dtype_kwargs={"inner": pl.Float64}, description="variances of P*")
    tau_star: pl.List = pa.Field(dtype_kwargs={"inner": pl.Float64})
    tau_q: pl.List = pa.Field(dtype_kwargs={"inner": pl.Float64})
    init_dist: pl.Float64 = pa.Field(gt=0, description="|tau_q - tau_*|, all coordinates")

    class Config:
        """One row per dimension and seed."""

        strict = True
        ordered = True
        unique = ["dim", "seed"]

    @pa.dataframe_check(name="lists have the length of their family")
    def lengths(cls, data: PolarsData) -> pl.LazyFrame:
        dim = pl.col("dim").cast(pl.UInt32)
        coordinates = pl.when(dim == 1).then(2).otherwise(2 * dim + 1)
        same = (pl.col("tau_star").list.len() == coordinates) & (pl.col("tau_q").list.len() == coordinates)
        return data.lazyframe.select(same & (pl.col("s").list.len() == dim))

    @pa.dataframe_check(name="the distance is that of the points")
    def distance(cls, data: PolarsData) -> pl.LazyFrame:
        frame = data.lazyframe.collect()
        found = [
            np.linalg.norm(np.subtract(*row)) if len(row[0]) == len(row[1]) else np.nan
            for row in frame.select("tau_star", "tau_q").iter_rows()
        ]
        return pl.LazyFrame({"ok": np.isclose(np.array(found), frame["init_dist"], rtol=1e-12)})


class Images(pa.DataFrameModel):
    """NCE-DIG, NCE-MNIST: images of handwritten digits, as their source has them; none where that is not given.

    A source without parts of its own has ``part`` any: each seed then splits it.
    """

    index: pl.Int32 = pa.Field(ge=0, unique=True)
    label: pl.Int8 = pa.Field(ge=0, le=9)
    part: pl.String = pa.Field(isin=["any", "train", "test"])
    levels: pl.Int16 = pa.Field(gt=1, le=256, description="values that a pixel may take: 0 to levels - 1")
    pixels: pl.List = pa.Field(dtype_kwargs={"inner": pl.UInt8}, description="row by row")

    class Config:
        """Exactly these columns, in this order."""

        strict = True
        ordered = True

    @pa.dataframe_check(name="images are square, and of one size")
    def square(cls, data: PolarsData) -> pl.LazyFrame:
        pixels = pl.col("pixels").list.len()
        side = pixels.cast(pl.Float64).sqrt().round().cast(pl.UInt32)
        return data.lazyframe.select((pixels == side * side) & (pixels == pixels.first()) & (pixels > 0))

    @pa.dataframe_check(name="pixels are below levels")
    def below_levels(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("pixels").list.max().cast(pl.Int16) < pl.col("levels"))


SCHEMA = {GAUSS: Pairs, IMAGES: Images}
