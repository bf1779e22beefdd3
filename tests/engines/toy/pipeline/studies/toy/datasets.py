"""Datasets of the toy study."""

from __future__ import annotations

import os
import time
from typing import Any

import polars as pl
from schemas.toy.datasets import SCHEMA

from pipeline.kit.streams import stream
from pipeline.languages import toy

__all__ = ["SCHEMA", "generate"]


def generate(entry: Any, key: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Numbers; TOY_SECONDS=<dataset>:<seconds> makes it slow."""
    slow, _, seconds = os.environ.get("TOY_SECONDS", "").partition(":")
    if key == slow:
        time.sleep(float(seconds))
    return pl.DataFrame({"value": toy.sample(entry.rows, stream(seed, "toy", key))}), {}
