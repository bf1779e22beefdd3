"""Tables that a test makes by hand, held against the schemas of the tables that they stand for."""

from __future__ import annotations

from collections.abc import Mapping

import pandera.polars as pa
import polars as pl


def fitting(
    tables: Mapping[str, pl.DataFrame], schemas: Mapping[str, type[pa.DataFrameModel]]
) -> dict[str, pl.DataFrame]:
    """Return ``tables`` with the types that ``schemas`` give their columns, each of which allows all its values.

    A test makes the columns and rows that its subject reads, so what a schema asks of all columns together, or of all
    rows, is left out. Raises SchemaErrors, or AssertionError for a column that no table of this name has.
    """
    return {name: _fitting(name, frame, schemas[name]) for name, frame in tables.items()}


def _fitting(name: str, frame: pl.DataFrame, model: type[pa.DataFrameModel]) -> pl.DataFrame:
    columns = model.to_schema().columns
    unknown = [column for column in frame.columns if column not in columns]
    assert not unknown, f"no table {name} has {', '.join(unknown)}"
    own = pa.DataFrameSchema({column: columns[column] for column in frame.columns}, coerce=True)
    return own.validate(frame, lazy=True)
