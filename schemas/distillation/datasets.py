"""Datasets of the study."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Strings(pa.DataFrameModel):
    """Held-out strings of a parity task, a row each; and behind them a row for each student that a teacher answers."""

    part: pl.String = pa.Field(isin=["held", "student"])
    d: pl.Int16 = pa.Field(ge=2, description="signs of a string")
    k: pl.Int16 = pa.Field(ge=1, description="signs of a parity")
    depth: pl.Int16 = pa.Field(ge=1, description="parities on the way to a class; 1: sparse parity")
    row: pl.Int32 = pa.Field(ge=0, description="number of the string, or of the student within its replica")
    bits: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.UInt8}, nullable=True, description="of a string: 0 is the sign +1, 1 is -1"
    )
    label: pl.UInt8 = pa.Field(nullable=True, description="class of a string")
    replica: pl.Int32 = pa.Field(nullable=True, ge=0, description="of the student")
    student: pl.String = pa.Field(nullable=True, description="its arm and its number among those of that arm")
    batch: pl.Int32 = pa.Field(nullable=True, ge=1, description="strings of a step")
    tau: pl.Float64 = pa.Field(nullable=True, ge=0, description="temperature; 0: most likely classes")
    teacher: pl.Int32 = pa.Field(
        nullable=True, ge=0, description="number of the model that answers; null: labels"
    )
    schedule: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.Struct({"checkpoint": pl.Int32, "start": pl.Int32, "end": pl.Int32})},
        nullable=True,
        description="teacher steps of the checkpoints in turn, with the student steps [start, end) of each",
    )
    hard: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.UInt8},
        nullable=True,
        description="classes answered, string by string, step by step",
    )
    soft: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.Float32},
        nullable=True,
        description="probabilities answered, class by class",
    )

    class Config:
        """Exactly these columns, in this order."""

        strict = True
        ordered = True

    @pa.dataframe_check(name="a string has as many bits as its task")
    def whole(cls, data: PolarsData) -> pl.LazyFrame:
        held = pl.col("part") == "held"
        return data.lazyframe.select(
            (~held | ((pl.col("bits").list.len() == pl.col("d")) & pl.col("label").is_not_null())).alias("ok")
        )


SCHEMA = Strings


def complete(frame: pl.DataFrame) -> pl.DataFrame:
    """Return ``frame`` with all columns of the schema, in its order and types; those that it lacks are null."""
    types = {name: column.dtype.type for name, column in Strings.to_schema().columns.items()}
    return frame.select(
        (pl.col(name).cast(kind) if name in frame.columns else pl.lit(None, kind)).alias(name)
        for name, kind in types.items()
    )


def held(bits: NDArray[np.uint8], labels: NDArray[np.int64], k: int, depth: int) -> pl.DataFrame:
    """Return the rows of held-out strings (N, d) with their classes (N,)."""
    frame = pl.DataFrame({"row": range(len(bits)), "bits": bits.tolist(), "label": labels})
    own = {"part": "held", "d": bits.shape[1], "k": k, "depth": depth}
    return complete(frame.with_columns(**{name: pl.lit(value) for name, value in own.items()}))
