"""Training curves, shared by all studies."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl


class Curves(pa.DataFrameModel):
    """Mean over the steps since the previous point; null once a replica has diverged."""

    run: str
    replica: pl.Int32 = pa.Field(ge=0)
    step: pl.Int32 = pa.Field(ge=1)
    loss: float = pa.Field(nullable=True)
    accuracy: float = pa.Field(ge=0, le=1, nullable=True)
    regulariser: float = pa.Field(ge=0, nullable=True)

    class Config:
        strict = True
        unique = ["run", "replica", "step"]
