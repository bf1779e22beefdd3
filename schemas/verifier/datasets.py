"""Datasets of the study: strings of brackets, whole, cut, or ending with their first mistake; documents."""

from __future__ import annotations

import numpy as np
import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from pipeline.languages import dyck_strings as language
from pipeline.languages import test_cases


class Strings(pa.DataFrameModel):
    """One row per string, its begin first (`pipeline.languages.dyck_strings`, `pipeline.languages.test_cases`)."""

    set: pl.String = pa.Field(description="what the strings are for: training, mistakes, prompts of a kind, documents")
    replica: pl.Int16 = pa.Field(ge=-1, description="the model that wrote it; -1: it is of the grammar alone")
    string_id: pl.Int32 = pa.Field(
        ge=0, description="number of the string in its set and, if a model wrote it, of this model; from 0"
    )
    brackets: pl.Int16 = pa.Field(ge=0, description="of a whole string, D; 0: this is a document of test cases")
    error: pl.String = pa.Field(
        isin=language.ERRORS, nullable=True, description="why it cannot be completed; null if it can"
    )
    error_at: pl.Int16 = pa.Field(ge=-1, description="position of the first mistake; -1 for none")
    tokens: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int8})

    class Config:
        """Exactly these columns, in this order."""

        strict = True
        ordered = True
        unique = ["set", "replica", "string_id"]

    @pa.dataframe_check(name="no string goes on behind its first mistake, and strings of the grammar have none")
    def ends_with_its_mistake(cls, data: PolarsData) -> pl.LazyFrame:
        frame = data.lazyframe.select("replica", "brackets", "error", "error_at", "tokens").collect()
        right = np.zeros(frame.height, bool)
        for (brackets,), rows in frame.with_row_index().group_by("brackets"):
            if brackets == 0:
                known = rows["tokens"].explode().is_between(0, len(test_cases.SIGNS) - 1).all()
                right[rows["index"].to_numpy()] = known
                continue
            lengths = rows["tokens"].list.len().to_numpy().astype(np.int64)
            tokens = np.zeros((rows.height, int(str(brackets)) + 3), np.int64)
            short = lengths <= tokens.shape[1]
            if not short.all():
                continue
            tokens[np.arange(tokens.shape[1]) < lengths[:, None]] = rows["tokens"].explode().to_numpy()
            at, kind = language.first_errors(tokens, lengths, int(str(brackets)))
            names = np.array([*language.ERRORS, None], object)[kind]
            same = (at == rows["error_at"].to_numpy()) & (names == rows["error"].to_numpy())
            ends = (at < 0) | ((at == lengths - 1) & (rows["replica"].to_numpy() >= 0))
            right[rows["index"].to_numpy()] = same & ends & (tokens[:, 0] == language.BEGIN)
        return pl.LazyFrame({"right": right})


SCHEMA = Strings
