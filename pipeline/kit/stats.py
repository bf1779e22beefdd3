"""Distances between random probability vectors, which attention of different models is held against."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def simplex_distance(n: ArrayLike) -> NDArray[np.float64]:
    """Return E|a - b|^2 of two independent vectors uniform on the simplex with n entries (flat Dirichlet).

    It is 2 (E|a|^2 - 1/n) = 2 (2/(n+1) - 1/n) = 2(n-1) / (n(n+1)).
    """
    n = np.asarray(n, float)
    return 2 * (n - 1) / (n * (n + 1))


def causal_distance(n: int) -> float:
    """Return E|A - B|_F^2 of two independent causal n x n matrices, row i uniform on the simplex with i entries.

    >>> round(causal_distance(16), 4)
    2.9968
    """
    return float(simplex_distance(np.arange(1, n + 1)).sum())
