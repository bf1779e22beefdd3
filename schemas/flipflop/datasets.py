"""Held-out sets of the flip-flop study."""

from __future__ import annotations

import numpy as np
import pandera.polars as pa
import polars as pl
from numpy.typing import NDArray
from pandera.api.polars.types import PolarsData

from pipeline.languages import flipflop as language


class Sequences(pa.DataFrameModel):
    """One row per sequence; strings are those of the language, inputs of the automaton begin with a write."""

    task: pl.String = pa.Field(isin=["strings", "automaton"])
    set: pl.String
    length: pl.Int16 = pa.Field(ge=4)
    symbols: pl.Int8 = pa.Field(ge=2, description="data symbols")
    p_ignore: pl.Float64 = pa.Field(ge=0, le=1)
    tokens: pl.List = pa.Field(dtype_kwargs={"inner": pl.UInt8})

    class Config:
        """Exactly these columns, in this order."""

        strict = True
        ordered = True

    @pa.dataframe_check(name="every read gives back what was last written")
    def legal(cls, data: PolarsData) -> pl.LazyFrame:
        frame = data.lazyframe.select("task", "length", "symbols", "tokens").collect()
        right = np.zeros(frame.height, bool)
        for (task, length, symbols), at in frame.with_row_index().group_by("task", "length", "symbols"):
            rows, tokens = at["index"].to_numpy(), matrix(at["tokens"])
            if tokens.shape[1] == length:
                inputs = (tokens[:, 0] != language.NOOP) & (tokens <= 2).all(1)
                right[rows] = language.legal(tokens, int(str(symbols))) if task == "strings" else inputs
        return pl.LazyFrame({"right": right})


def matrix(column: pl.Series) -> NDArray[np.uint8]:
    """Return a column of lists of one length as an array."""
    flat = column.to_arrow().flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(column), -1)


SCHEMA = Sequences
