"""Largest and smallest values that let no NaN pass.

``max(0.0, nan)`` is 0.0 in Python and polars' ``max`` skips NaN, so a measurement that failed would count as one that
holds. Everything here returns NaN as soon as one value is NaN.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike


def largest(*values: ArrayLike | Iterable[float]) -> float:
    """Return the largest number in ``values`` (numbers, arrays, lists, generators); NaN if one of them is NaN.

    Raises ValueError if there is no value at all.

    >>> largest(0.0, [1.0, 3.0])
    3.0
    >>> largest(0.0, float("nan"))
    nan
    """
    return float(np.max(_flat(values)))


def smallest(*values: ArrayLike | Iterable[float]) -> float:
    """Return the smallest number in ``values``; NaN if one of them is NaN. Raises ValueError if there is none."""
    return float(np.min(_flat(values)))


def _flat(values: tuple[Any, ...]) -> np.ndarray:
    """Return all numbers in ``values``, which are numbers, arrays or anything that can be gone through."""
    plain = [value if isinstance(value, (int, float, np.ndarray, np.generic)) else list(value) for value in values]
    return np.concatenate([np.asarray(part, float).ravel() for part in plain])


def column_max(column: str | pl.Expr) -> pl.Expr:
    """Return the expression for the largest value of a column: NaN if one is NaN or null, null if there is no row.

    Null counts as NaN because tables store a measurement that failed as null.
    """
    return _expr(column).fill_null(float("nan")).nan_max()


def column_min(column: str | pl.Expr) -> pl.Expr:
    """Return the expression for the smallest value of a column: NaN if one is NaN or null, null if there is no row."""
    return _expr(column).fill_null(float("nan")).nan_min()


def _expr(column: str | pl.Expr) -> pl.Expr:
    return pl.col(column) if isinstance(column, str) else column
