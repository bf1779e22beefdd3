"""What models of the toy study answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from schemas.toy.datasets import SCHEMA

__all__ = ["SCHEMA", "answer"]


def answer(
    entry: Any, key: str, seed: int, arrays: dict[str, np.ndarray], header: dict[str, Any]
) -> tuple[pl.DataFrame, dict[str, str]]:
    """The first weight of each replica, between 0 and 1."""
    return pl.DataFrame({"value": arrays["weights"][:, 0].astype(float) % 1}), {}
