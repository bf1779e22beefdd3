"""What every result table of every study carries."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl

SCALES = ["smoke", "quick", "long", "paper"]  # of a run as a whole, by size


class Result(pa.DataFrameModel):
    """The scale and the hash of the parameters of the job that made a table; a table has no other columns than its own.

    Values that are not defined are null.
    """

    scale: pl.String = pa.Field(isin=SCALES)
    params_hash: pl.String = pa.Field(str_length={"min_value": 32, "max_value": 32})

    class Config:
        """No other columns; the tables say which rows there are."""

        strict = True
