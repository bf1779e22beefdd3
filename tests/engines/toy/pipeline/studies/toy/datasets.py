"""Datasets of the toy study."""

from __future__ import annotations

from typing import Any

import polars as pl
from schemas.toy.datasets import SCHEMA

from pipeline.kit.streams import stream
from pipeline.languages import toy

__all__ = ["SCHEMA", "generate"]


def generate(entry: Any, key: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return numbers, once nothing lets the dataset wait (`toy.wait`)."""
    toy.wait(key)
    return pl.DataFrame({"value": toy.sample(entry.rows, stream(seed, "toy", key))}), {}
