"""Claims and their verdicts, shared by all studies: one row per model and gate."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
NOT_TESTED = "not tested at this scale"
PARTLY = "partly"  # of a whole claim: some of its testable gates hold

SCALES = ["smoke", "quick", "paper"]


class Claims(pa.DataFrameModel):
    """What was published, what we measure, and the verdict that follows (`pipeline.kit.verdicts`)."""

    study: pl.String
    claim: pl.String = pa.Field(str_matches=r"^[0-9]+[a-z]?$", description="its number in the chapter")
    gate: pl.String = pa.Field(
        str_length={"min_value": 1}, description="the model or quantity that is tested"
    )
    predicate: pl.String = pa.Field(str_length={"min_value": 1})
    source: pl.String = pa.Field(str_length={"min_value": 1}, description="paper and section")
    published: pl.Float64 = pa.Field(
        nullable=True, description="a number printed in the source; of a printed range the lower end"
    )
    published_high: pl.Float64 = pa.Field(nullable=True, description="of a printed range the upper end")
    bound: pl.String = pa.Field(description="what the gate asks of value and interval")
    value: pl.Float64 = pa.Field(nullable=True, description="ours; null where it could not be measured")
    lo: pl.Float64 = pa.Field(nullable=True, description="bootstrap interval over replicas")
    hi: pl.Float64 = pa.Field(nullable=True)
    n: pl.Int32 = pa.Field(
        ge=0, nullable=True, description="replicas; null where there are none, as in theory"
    )
    excluded: pl.Int32 = pa.Field(ge=0)
    excluded_reason: pl.String
    scale_needed: pl.String = pa.Field(isin=SCALES)
    scale: pl.String = pa.Field(isin=SCALES)
    verdict: pl.String = pa.Field(isin=[REPRODUCED, NOT_REPRODUCED, NOT_TESTED])
    reason: pl.String = pa.Field(str_length={"min_value": 1})
    params_hash: pl.String = pa.Field(str_length={"min_value": 1})

    class Config:
        """Exactly these columns, in this order; one row per key."""

        strict = True
        ordered = True
        unique = ["study", "claim", "gate"]

    @pa.dataframe_check(name="what is reproduced was measured, at a scale that can show it")
    def reproduced_is_measured(cls, data: PolarsData) -> pl.LazyFrame:
        order = {scale: rank for rank, scale in enumerate(SCALES)}
        rank = {name: pl.col(name).replace_strict(order, default=-1) for name in ("scale", "scale_needed")}
        measured = pl.col("value").is_not_null() & (rank["scale"] >= rank["scale_needed"])
        return data.lazyframe.select((pl.col("verdict") != REPRODUCED) | measured)

    @pa.dataframe_check(name="a printed range has two ends")
    def range_has_two_ends(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(
            pl.col("published_high").is_null()
            | (pl.col("published").is_not_null() & (pl.col("published") < pl.col("published_high")))
        )

    @pa.dataframe_check(name="what is excluded has a reason")
    def excluded_has_reason(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("excluded") > 0) == (pl.col("excluded_reason") != ""))


def upgraded(claims: pl.DataFrame) -> pl.DataFrame:
    """Return a claims table of an older reference set with the columns that were added since, empty."""
    added = {"published_high": pl.lit(None, pl.Float64), "bound": pl.lit("")}
    missing = [value.alias(name) for name, value in added.items() if name not in claims.columns]
    return claims.with_columns(missing).select(*Claims.to_schema().columns)
