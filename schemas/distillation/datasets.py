"""Datasets of the study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Examples(pa.DataFrameModel):
    """Held-out strings of a parity task, sentences of a grammar or blocks of text, a row each; and behind them a row
    for each student that a teacher answers, and where that answers while they train, for each checkpoint it needs."""

    part: pl.String = pa.Field(isin=["held", "student", "checkpoint"])
    task: pl.String = pa.Field(isin=["parity", "masked", "next"])
    d: pl.Int16 = pa.Field(ge=2, nullable=True, description="signs of a string")
    k: pl.Int16 = pa.Field(ge=1, nullable=True, description="signs of a parity")
    depth: pl.Int16 = pa.Field(ge=1, nullable=True, description="parities on the way to a class; 1: sparse parity")
    grammar: pl.String = pa.Field(nullable=True)
    root: pl.Int16 = pa.Field(ge=7, le=22, nullable=True, description="symbol that sentences derive from")
    rate: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="share of tokens that are selected")
    hide_masked: pl.Boolean = pa.Field(nullable=True, description="whether no selected token is attended to")
    level: pl.Int16 = pa.Field(ge=1, nullable=True, description="of the spans whose last tokens are asked for")
    length: pl.Int16 = pa.Field(ge=2, nullable=True, description="words of a block of text")
    words: pl.Int16 = pa.Field(ge=6, nullable=True, description="size of the vocabulary of text files")
    files: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.Struct({"path": pl.String, "md5": pl.String})},
        nullable=True,
        description="text files that blocks are cut from; null: a generated text",
    )
    row: pl.Int32 = pa.Field(
        ge=0, description="number of the string or sentence, or of the student; a checkpoint's step"
    )
    bits: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.UInt8}, nullable=True, description="of a string: 0 is the sign +1, 1 is -1"
    )
    label: pl.UInt8 = pa.Field(nullable=True, description="class of a string")
    tokens: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.UInt16}, nullable=True, description="ids of a sentence, padded"
    )
    shown: pl.List = pa.Field(dtype_kwargs={"inner": pl.UInt16}, nullable=True, description="ids that are shown of it")
    kind: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.UInt8},
        nullable=True,
        description="what became of each: 0 none, 1 masked, 2 random, 3 kept; of next tokens 1: asked for",
    )
    replica: pl.Int32 = pa.Field(nullable=True, ge=0, description="of the student")
    student: pl.String = pa.Field(
        nullable=True, description="its arm and its number among those of that arm; of a checkpoint its shape, as JSON"
    )
    batch: pl.Int32 = pa.Field(nullable=True, ge=1, description="strings or sentences of a step")
    asked: pl.Int32 = pa.Field(nullable=True, ge=1, description="answers kept for a step: as many as any step asks for")
    tau: pl.Float64 = pa.Field(nullable=True, ge=0, description="temperature; 0: most likely classes")
    teacher: pl.Int32 = pa.Field(nullable=True, ge=0, description="number of the model that answers; null: labels")
    schedule: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.Struct({"checkpoint": pl.Int32, "start": pl.Int32, "end": pl.Int32})},
        nullable=True,
        description="teacher steps of the checkpoints in turn, with the student steps [start, end) of each",
    )
    hard: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.UInt16},
        nullable=True,
        description="classes answered to what is asked, in its order, step by step; 0 behind the last",
    )
    soft: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.Float32},
        nullable=True,
        description="probabilities answered, class by class; a checkpoint's weights",
    )

    class Config:
        """Exactly these columns, in this order."""

        strict = True
        ordered = True

    @pa.dataframe_check(name="a string has as many bits as its task")
    def whole(cls, data: PolarsData) -> pl.LazyFrame:
        held = (pl.col("part") == "held") & (pl.col("task") == "parity")
        return data.lazyframe.select(
            (~held | ((pl.col("bits").list.len() == pl.col("d")) & pl.col("label").is_not_null())).alias("ok")
        )

    @pa.dataframe_check(name="a sentence begins with BOS, which is not asked for, and its parts have one length")
    def begins(cls, data: PolarsData) -> pl.LazyFrame:
        other = (pl.col("part") != "held") | (pl.col("task") == "parity")
        tokens, shown, kind = pl.col("tokens"), pl.col("shown"), pl.col("kind")
        same = (tokens.list.len() == shown.list.len()) & (tokens.list.len() == kind.list.len())
        begins = (tokens.list.first() == BOS) & (shown.list.first() == BOS) & (kind.list.first() == 0)
        return data.lazyframe.select((other | (same & begins).fill_null(False)).alias("ok"))


SCHEMA = Examples
BOS = 3
# What tells a task from another; the columns that hold it.
ABOUT = ("task", "d", "k", "depth", "grammar", "root", "rate", "hide_masked", "level", "length", "words", "files")


def task(entry: Any) -> dict[str, Any]:
    """Return what tells the task of an entry of params/distillation/; what such a task lacks is None."""
    values: dict[str, Any] = entry.model_dump(include=set(ABOUT))
    return {name: values.get(name) for name in ABOUT}


def complete(frame: pl.DataFrame) -> pl.DataFrame:
    """Return ``frame`` with all columns of the schema, in its order and types; those that it lacks are null."""
    types = {name: column.dtype.type for name, column in Examples.to_schema().columns.items()}
    return frame.select(
        (pl.col(name).cast(kind) if name in frame.columns else pl.lit(None, kind)).alias(name)
        for name, kind in types.items()
    )


def held(about: dict[str, Any], **columns: NDArray[Any]) -> pl.DataFrame:
    """Return the rows of held-out strings or sentences: ``about`` is the same in all, ``columns`` hold a value or a
    list for each."""
    count = len(next(iter(columns.values())))
    frame = pl.DataFrame({"row": range(count)} | {name: array.tolist() for name, array in columns.items()})
    same = pl.DataFrame([{"part": "held"} | {name: value for name, value in about.items() if value is not None}])
    return complete(frame.join(same, how="cross"))
