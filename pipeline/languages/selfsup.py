"""Counting modulo a number of symbols: a language to start from, to be replaced by that of the study."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def sample(rng: np.random.Generator, n: int, length: int, symbols: int) -> NDArray[np.int16]:
    """Return (n, length): each row counts upwards from a random symbol.

    >>> sample(np.random.default_rng(0), 2, 4, 10).tolist()
    [[8, 9, 0, 1], [6, 7, 8, 9]]
    """
    return starting_at(rng.integers(symbols, size=n), length, symbols)


def starting_at(first: NDArray[np.integer], length: int, symbols: int) -> NDArray[np.int16]:
    """Return (N, length): the rows that begin with the symbols ``first`` (N,).

    >>> starting_at(np.array([1]), 3, 3).tolist()
    [[1, 2, 0]]
    """
    return ((first[:, None] + np.arange(length)) % symbols).astype(np.int16)
