"""Result tables of the study."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl

from schemas.results import Result


class Accuracy(Result):
    """The share of next tokens that a run predicts: mean over its replicas, with a bootstrap interval."""

    run: pl.String
    value: pl.Float64 = pa.Field(ge=0, le=1)
    lo: pl.Float64 = pa.Field(ge=0, le=1, nullable=True)
    hi: pl.Float64 = pa.Field(ge=0, le=1, nullable=True)
    n: pl.Int32 = pa.Field(ge=1, description="replicas")

    class Config:
        """One row per run."""

        unique = ["run"]


SCHEMAS = {"accuracy": Accuracy}
