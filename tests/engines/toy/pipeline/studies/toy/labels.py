"""What models of the toy study answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from schemas.toy.datasets import SCHEMA

__all__ = ["SCHEMA", "answers"]


def answers(
    entries: dict[str, Any], seed: int, arrays: dict[str, np.ndarray], header: dict[str, Any]
) -> dict[str, pl.DataFrame]:
    """The first weight of each replica, between 0 and 1."""
    return {key: pl.DataFrame({"value": arrays["weights"][:, 0].astype(float) % 1}) for key in entries}
