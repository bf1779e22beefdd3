"""Claims and their verdicts, shared by all studies: one row per model and gate."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from schemas.results import SCALES

# Of a gate: whether the effect that it asks for (a direction, an order, a bound) is there.
HOLDS = "holds"
FAILS = "fails"
UNDECIDED = "undecided at this scale"  # the interval of what was measured reaches across a bar
TOO_FEW = "too few models"  # something was measured, on fewer models than a verdict needs
NOT_RUN = "not run at this scale"
VERDICTS = [HOLDS, UNDECIDED, FAILS, TOO_FEW, NOT_RUN]

# Of a whole claim: how it stands by its gates on published statements.
IN_PART = "contradicted in part"  # some of the gates that were tested fail
CONTRADICTED = "contradicted"  # all of them do
STATES = [HOLDS, UNDECIDED, IN_PART, CONTRADICTED, TOO_FEW, NOT_RUN]

# Of a gate: where the published number lies, beside the interval of what was measured.
INSIDE = "inside our interval"
OUTSIDE = "outside our interval"
NO_INTERVAL = "no interval to compare with"
NONE_PUBLISHED = "none published"
SIZES = [INSIDE, OUTSIDE, NO_INTERVAL, NONE_PUBLISHED, NOT_RUN]

# What a gate tests: what the source says, our form of a statement that is misprinted, what the source says of data or
# models that are not here, tested on others, or a statement that no source makes. The first kind that a claim has
# decides it.
STATED = "published statement"
CORRECTED = "corrected form"
ANALOGUE = "statement on a stand-in"
OWN = "own check"
KINDS = [STATED, CORRECTED, ANALOGUE, OWN]

# Why a gate is not run that asks for what a user has to bring: it begins with this.
EXTERNAL = "needs-external"

# How the source says a published number.
NUMBER, FLOOR, CEILING = FORMS = ["number", "at least", "at most"]


class Claims(pa.DataFrameModel):
    """What was published, what we measure, and the verdict that follows (`pipeline.kit.verdicts`)."""

    study: pl.String
    claim: pl.String = pa.Field(str_matches=r"^[0-9]+[a-z]?$", description="its number in the chapter")
    statement: pl.String = pa.Field(str_length={"min_value": 1}, description="the claim in a sentence")
    gate: pl.String = pa.Field(str_length={"min_value": 1}, description="the model or quantity that is tested")
    comparison: pl.String = pa.Field(description="key of the comparison that is judged; empty for none")
    kind: pl.String = pa.Field(isin=KINDS, description="whose statement is tested")
    predicate: pl.String = pa.Field(str_length={"min_value": 1})
    source: pl.String = pa.Field(str_length={"min_value": 1}, description="paper and section")
    published: pl.Float64 = pa.Field(
        nullable=True, description="a number printed in the source; of a printed range the lower end"
    )
    published_high: pl.Float64 = pa.Field(nullable=True, description="of a printed range the upper end")
    published_form: pl.String = pa.Field(isin=["", *FORMS], description="how the source says it; empty for none")
    derivation: pl.String = pa.Field(description="how a number that is not printed follows from printed ones")
    bound: pl.String = pa.Field(description="what the gate asks of value and interval")
    value: pl.Float64 = pa.Field(nullable=True, description="ours; null where it could not be measured")
    lo: pl.Float64 = pa.Field(nullable=True, description="interval over replicas; docs/intervals.md")
    hi: pl.Float64 = pa.Field(nullable=True)
    n: pl.Int32 = pa.Field(ge=0, nullable=True, description="replicas; null where there are none, as in theory")
    excluded: pl.Int32 = pa.Field(ge=0)
    excluded_reason: pl.String
    interval: pl.String = pa.Field(description="kind of the interval; empty for none")
    fewest: pl.Int32 = pa.Field(ge=0, nullable=True, description="replicas that a verdict needs")
    scale_needed: pl.String = pa.Field(isin=SCALES)
    scale: pl.String = pa.Field(isin=SCALES)
    verdict: pl.String = pa.Field(isin=VERDICTS, description="whether the effect is there")
    size: pl.String = pa.Field(isin=SIZES, description="where the published number lies")
    replicas_needed: pl.Int32 = pa.Field(
        ge=1, nullable=True, description="replicas that would decide an undecided gate, by the spread of these"
    )
    reason: pl.String = pa.Field(str_length={"min_value": 1})
    params_hash: pl.String = pa.Field(str_length={"min_value": 1})

    class Config:
        """Exactly these columns, in this order; one row per key."""

        strict = True
        ordered = True
        unique = ["study", "claim", "gate"]

    @pa.dataframe_check(name="what holds was measured, at a scale that can show it")
    def what_holds_is_measured(cls, data: PolarsData) -> pl.LazyFrame:
        order = {scale: rank for rank, scale in enumerate(SCALES)}
        rank = {name: pl.col(name).replace_strict(order, default=-1) for name in ("scale", "scale_needed")}
        measured = pl.col("value").is_not_null() & (rank["scale"] >= rank["scale_needed"])
        return data.lazyframe.select(~pl.col("verdict").is_in([HOLDS, UNDECIDED]) | measured)

    @pa.dataframe_check(name="a printed range has two ends")
    def range_has_two_ends(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(
            pl.col("published_high").is_null()
            | (pl.col("published").is_not_null() & (pl.col("published") < pl.col("published_high")))
        )

    @pa.dataframe_check(name="what is excluded has a reason")
    def excluded_has_reason(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("excluded") > 0) == (pl.col("excluded_reason") != ""))

    @pa.dataframe_check(name="a published number has a form")
    def published_has_a_form(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("published_form") == "") == pl.col("published").is_null())
