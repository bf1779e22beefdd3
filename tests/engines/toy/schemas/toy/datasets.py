"""Datasets of the toy study."""

from __future__ import annotations

import pandera.polars as pa


class Numbers(pa.DataFrameModel):
    value: float = pa.Field(ge=0, lt=1)


SCHEMA = Numbers
