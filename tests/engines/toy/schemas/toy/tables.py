"""Result tables of the toy study."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl


class Means(pa.DataFrameModel):
    run: str
    replica: pl.Int32
    mean: float


class Losses(pa.DataFrameModel):
    run: str
    loss: float


SCHEMAS = {"means": Means, "losses": Losses}
