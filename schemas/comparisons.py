"""Comparisons of models, shared by all studies: one row for each that an experiment declares, measured or not."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from schemas.results import Result

# Whether there is something to judge, and why not.
MEASURED = "measured"
TOO_FEW = "too few models"  # fewer than a verdict needs: those that learned, where only these count
NOT_RUN = "not run at this scale"  # a run that it compares has no models
STATES = [MEASURED, TOO_FEW, NOT_RUN]

# What two arms have in common.
NOTHING, SEEDS, MODELS = "nothing", "seed and data", "models"
TEACHERS = "teacher and data"  # of students that start from other weights, or of a student and its teacher
IN_COMMON = [NOTHING, SEEDS, TEACHERS, MODELS]


class Comparisons(Result):
    """What was compared, how, and the value with its interval (`pipeline.kit.comparisons`)."""

    comparison: pl.String = pa.Field(unique=True, description="its key in the study's list of comparisons")
    measure: pl.String = pa.Field(str_length={"min_value": 1}, description="what is measured, in words")
    statistic: pl.String = pa.Field(description="what is taken of the samples")
    first: pl.String = pa.Field(description="the arm; empty where the measure says it")
    second: pl.String = pa.Field(nullable=True, description="the arm that it is compared with")
    in_common: pl.String = pa.Field(isin=IN_COMMON, description="what both arms share; they are paired by it")
    unit: pl.String = pa.Field(description="what is independent, and counted by n")
    value: pl.Float64 = pa.Field(nullable=True, description="null where it is not defined")
    lo: pl.Float64 = pa.Field(nullable=True, description="lower end of the interval")
    hi: pl.Float64 = pa.Field(nullable=True, description="upper end of the interval")
    interval: pl.String = pa.Field(description="kind of the interval; docs/intervals.md")
    confidence: pl.Float64 = pa.Field(gt=0, lt=1)
    n: pl.Int32 = pa.Field(ge=0, description="units, of the smaller arm")
    fewest: pl.Int32 = pa.Field(ge=0, description="units that a verdict needs")
    n_excluded: pl.Int32 = pa.Field(ge=0, description="units that are left out")
    excluded_reason: pl.String = pa.Field(description="why; empty for none")
    state: pl.String = pa.Field(isin=STATES)

    @pa.dataframe_check(name="what was not run has no value")
    def not_run_is_empty(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("state") != NOT_RUN) | pl.col("value").is_null())

    @pa.dataframe_check(name="too few exactly where there are fewer units than a verdict needs")
    def too_few_is_counted(cls, data: PolarsData) -> pl.LazyFrame:
        few = pl.col("n") < pl.col("fewest")
        return data.lazyframe.select((pl.col("state") == NOT_RUN) | ((pl.col("state") == TOO_FEW) == few))

    @pa.dataframe_check(name="what is left out has a reason")
    def excluded_has_reason(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("n_excluded") > 0) == (pl.col("excluded_reason") != ""))
