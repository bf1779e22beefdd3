"""Training curves, shared by all studies."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData


class Curves(pa.DataFrameModel):
    """Mean over the steps since the previous point; null once a replica has diverged.

    ``replica`` counts the models of the run: in a grid, all of the first learning rate first. Behind ``accuracy``
    comes what else the objective measures.
    """

    run: str
    replica: pl.Int32 = pa.Field(ge=0)
    step: pl.Int32 = pa.Field(ge=1)
    loss: float = pa.Field(nullable=True)
    accuracy: float = pa.Field(ge=0, le=1, nullable=True)

    class Config:
        unique = ["run", "replica", "step"]

    @pa.dataframe_check(name="further metrics are Float64")
    def further_metrics(cls, data: PolarsData) -> pl.LazyFrame:
        known = cls.to_schema().columns
        schema = data.lazyframe.collect_schema()
        return data.lazyframe.select(
            pl.lit(all(dtype == pl.Float64 for name, dtype in schema.items() if name not in known)).alias("ok")
        )
