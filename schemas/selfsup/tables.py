"""Result tables of the study."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl

from schemas.comparisons import Comparisons
from schemas.results import Result


class Accuracy(Result):
    """The share of next tokens that each model predicts."""

    run: pl.String
    replica: pl.Int32 = pa.Field(ge=0)
    accuracy: pl.Float64 = pa.Field(ge=0, le=1)

    class Config:
        """One row per model."""

        unique = ["run", "replica"]


SCHEMAS = {"accuracy": Accuracy, "comparisons": Comparisons}
