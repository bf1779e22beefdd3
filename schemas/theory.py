"""Theory checks, shared by all studies: one row per statement that was executed numerically."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

FORMS = ["", "printed", "corrected"]
COMPARISONS = ["<=", ">=", "within", "beyond"]


class Theory(pa.DataFrameModel):
    """What was stated, what was measured, and whether it holds; the last follows from the columns before it.

    ``comparison`` reads *measured <comparison> bound*; ``within`` means |measured - bound| <= tolerance and
    ``beyond`` (a printed statement that is wrong) |measured - bound| > tolerance.
    """

    study: pl.String
    theory: pl.String = pa.Field(str_length={"min_value": 1}, description="id of the entry in params.yaml")
    check: pl.String = pa.Field(str_matches=r"^[a-z0-9][a-z0-9.-]*$")
    statement: pl.String = pa.Field(str_length={"min_value": 1})
    source: pl.String = pa.Field(str_length={"min_value": 1}, description="paper, section, equation")
    size: pl.String = pa.Field(description="of the instance: lengths, numbers of samples")
    measured: pl.Float64 = pa.Field(nullable=True, description="NaN: could not be measured, which never passes")
    comparison: pl.String = pa.Field(isin=COMPARISONS)
    bound: pl.Float64
    tolerance: pl.Float64 = pa.Field(ge=0, nullable=True)
    passed: pl.Boolean
    detail: pl.String
    erratum: pl.String = pa.Field(description="what the row is evidence for: a printed form that is wrong")
    form: pl.String = pa.Field(isin=FORMS, description="of an erratum: the printed form, or one that holds")
    claim: pl.String = pa.Field(str_matches=r"^([0-9]+[a-z]?)?$", description="that it decides; empty for none")
    part: pl.String = pa.Field(description="the gate of that claim that counts it")
    group: pl.String = pa.Field(description="of a figure: what the row is drawn with; else empty")
    x: pl.Float64 = pa.Field(nullable=True, description="of a figure: where the row is drawn")

    class Config:
        """Exactly these columns, in this order; one row per key."""

        strict = True
        ordered = True
        unique = ["study", "theory", "check"]

    @pa.dataframe_check(name="passed follows from measured, comparison and bound")
    def passed_is_computed(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("passed") == _HOLDS)

    @pa.dataframe_check(name="a row of an erratum says which form it tests")
    def form_given(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("erratum") == "") == (pl.col("form") == ""))

    @pa.dataframe_check(name="a row that decides a claim says in which part")
    def part_given(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("claim") == "") == (pl.col("part") == ""))

    @pa.dataframe_check(name="a tolerance exactly where the comparison needs one")
    def tolerance_given(cls, data: PolarsData) -> pl.LazyFrame:
        needs = pl.col("comparison").is_in(["within", "beyond"])
        return data.lazyframe.select(pl.col("tolerance").is_not_null() == needs)


_M, _B = pl.col("measured"), pl.col("bound")
_HOLDS = (
    # NaN compares as the largest number in polars: a measurement that failed must not pass ">=".
    pl.when(_M.is_nan() | _B.is_nan())
    .then(pl.lit(False))
    .when(pl.col("comparison") == "<=")
    .then(_M <= _B)
    .when(pl.col("comparison") == ">=")
    .then(_M >= _B)
    .when(pl.col("comparison") == "within")
    .then((_M - _B).abs() <= pl.col("tolerance"))
    .when(pl.col("comparison") == "beyond")
    .then((_M - _B).abs() > pl.col("tolerance"))
).fill_null(False)


def rows(study: str, theory: str, source: str, checks: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Return the table of one theory entry; ``passed`` is computed here.

    Each of ``checks`` gives check, statement, size, measured, comparison and bound, and where it applies
    tolerance, detail, its own source, erratum with form, claim with part, and group and x for a figure.
    """
    schema = {name: dtype for name, dtype in _dtypes().items() if name != "passed"}
    defaults = {"study": study, "theory": theory, "source": source, "tolerance": None, "detail": ""}
    defaults |= {"erratum": "", "form": "", "claim": "", "part": "", "group": "", "x": None}
    frame = pl.DataFrame([defaults | dict(check) for check in checks], schema=schema)
    return frame.with_columns(_HOLDS.alias("passed")).select(*_dtypes())


def _dtypes() -> dict[str, Any]:
    return {name: column.dtype.type for name, column in Theory.to_schema().columns.items()}
