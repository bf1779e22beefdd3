"""Hidden Markov models as parameters, and the tables of their experiments (chapter section 8)."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from pipeline.languages.hmm import PAIR_TASKS, TOLERANCE, TRIPLE_TASKS
from schemas.results import Result

O, M, T = MATRICES = ["O", "M", "T"]  # noqa: E741 - the source's letters
PRINTED, RANDOM, GAUSSIAN = FAMILIES = ["published", "random", "ghmm"]


class HmmParam(pa.DataFrameModel):
    """Models as parameters: an entry of a matrix in each row. O and T have columns that sum to 1, and T such rows."""

    instance_id: pl.String = pa.Field(str_length={"min_value": 1})
    family: pl.String = pa.Field(isin=FAMILIES)
    matrix: pl.String = pa.Field(isin=MATRICES, description="O: emissions, M: means, T: transitions")
    row: pl.Int8 = pa.Field(ge=0)
    col: pl.Int8 = pa.Field(ge=0)
    value: pl.Float64

    class Config:
        """Exactly these columns, in this order; one row per entry."""

        strict = True
        ordered = True
        unique = ["instance_id", "matrix", "row", "col"]

    @pa.dataframe_check(name="entries of O and T are probabilities")
    def probabilities(cls, data: PolarsData) -> pl.LazyFrame:
        inside = pl.col("value").is_between(0, 1)
        return data.lazyframe.select(inside | (pl.col("matrix") == M))

    @pa.dataframe_check(name="columns of O and T sum to 1")
    def columns_sum_to_one(cls, data: PolarsData) -> pl.LazyFrame:
        total = pl.col("value").sum().over("instance_id", "matrix", "col")
        return data.lazyframe.select(((total - 1).abs() <= TOLERANCE) | (pl.col("matrix") == M))

    @pa.dataframe_check(name="rows of T sum to 1")
    def rows_sum_to_one(cls, data: PolarsData) -> pl.LazyFrame:
        total = pl.col("value").sum().over("instance_id", "matrix", "row")
        return data.lazyframe.select(((total - 1).abs() <= TOLERANCE) | (pl.col("matrix") != T))


class HmmEquivalence(Result):
    """E7, sections 5.6 to 5.8: how far the best predictors of two models are apart, task by task."""

    family: pl.String = pa.Field(isin=["published", "rotated", "circulant"])
    instance_a: pl.String
    instance_b: pl.String
    task: pl.String = pa.Field(isin=[*PAIR_TASKS, *TRIPLE_TASKS])
    max_abs_diff: pl.Float64 = pa.Field(ge=0, description="of two entries of the predictor")
    fro_diff: pl.Float64 = pa.Field(ge=0, description="Frobenius norm of the difference of the predictors")
    dist_O: pl.Float64 = pa.Field(
        ge=0, description="Frobenius distance, under the relabelling that is best for O"
    )
    dist_T: pl.Float64 = pa.Field(ge=0, description="Frobenius distance, under the same relabelling")

    class Config:
        """One row per pair and task."""

        unique = ["instance_a", "instance_b", "task"]


SCHEMAS = {"hmm_equivalence": HmmEquivalence}
