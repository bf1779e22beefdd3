"""Datasets of the study."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl


class Sequences(pa.DataFrameModel):
    """One row per sequence."""

    symbols: pl.Int16 = pa.Field(ge=2, description="how many symbols the language has")
    tokens: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16})

    class Config:
        """Exactly these columns, in this order."""

        strict = True
        ordered = True


SCHEMA = Sequences
