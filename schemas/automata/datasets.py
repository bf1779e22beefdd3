"""Datasets of the automata study."""

from __future__ import annotations

import numpy as np
import pandera.polars as pa
import polars as pl
from numpy.typing import NDArray
from pandera.api.polars.types import PolarsData

from pipeline.languages import automata

SPLITS = ["train", "validation", "test", "probability", "count", "length"]
RECURRING = ("abab1", "abab2")  # tasks of which all inputs, or half of them, are one and the same


class Sequences(pa.DataFrameModel):
    """One row per sequence: its symbols, and the states behind them, which are those of the simulator."""

    task: pl.String
    split: pl.String = pa.Field(isin=SPLITS)
    length: pl.Int16 = pa.Field(ge=1)
    p1: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="probability of the symbol 1")
    ones: pl.Int16 = pa.Field(ge=0, nullable=True, description="exact number of ones")
    tokens: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16})
    states: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16})

    class Config:
        """Exactly these columns, in this order."""

        strict = True
        ordered = True

    @pa.dataframe_check(name="the states are those of the automaton")
    def states_follow(cls, data: PolarsData) -> pl.LazyFrame:
        frame = data.lazyframe.select("task", "length", "tokens", "states").collect()
        right = np.zeros(frame.height, bool)
        for (task, _), at in frame.with_row_index().group_by("task", "length"):
            known, rows = automata.task(str(task)).automaton, at["index"].to_numpy()
            states = automata.simulate(known, matrix(at["tokens"]).astype(np.int64))
            right[rows] = (states == matrix(at["states"])).all(1)
        return pl.LazyFrame({"right": right})

    @pa.dataframe_check(name="no input of validation or test is one of training")
    def tested_on_others(cls, data: PolarsData) -> pl.LazyFrame:
        frame = data.lazyframe.select("task", "split", "tokens").collect().with_row_index()
        fresh = np.ones(frame.height, bool)
        for (task,), rows in frame.group_by("task"):
            if task not in RECURRING:
                trained, tested = rows.filter(split="train"), rows.filter(pl.col("split").is_in(["validation", "test"]))
                known = {row.tobytes() for row in matrix(trained["tokens"])}
                fresh[tested["index"].to_numpy()] = [row.tobytes() not in known for row in matrix(tested["tokens"])]
        return pl.LazyFrame({"fresh": fresh})

    @pa.dataframe_check(name="a count is the number of ones")
    def ones_counted(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(
            pl.col("ones").is_null() | (pl.col("tokens").list.eval(pl.element() == 1).list.sum() == pl.col("ones"))
        )


def matrix(column: pl.Series) -> NDArray[np.int16]:
    """Return a column of lists of one length as an array."""
    flat = column.to_arrow().flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(column), -1).astype(np.int16)


SCHEMA = Sequences
