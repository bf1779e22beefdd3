"""MT4: when the norms of keys, queries and values grow, and how far values turn (figure 2.4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]
ONSET = 0.1  # share of its growth from which a matrix counts as growing


def growth(norms: Floats, first: float) -> Floats:
    """Return (T,) the share of its growth that a norm has behind it, from ``first`` at step 0 to its largest."""
    span = norms.max() - first
    return (norms - first) / span if span > 0 else np.full(len(norms), np.nan)


def onset(grown: Floats, share: float) -> int | None:
    """Return the first step (from 1) after which ``share`` of the growth is behind; None if there is none."""
    reached = np.flatnonzero(grown >= share)
    return int(reached[0]) + 1 if len(reached) else None


def turned(before: Tensor, after: Tensor) -> float:
    """Return the cosine distance (1 - cosine) / 2 of two matrices, taken as vectors."""
    a, b = before.flatten().double(), after.flatten().double()
    return float((1 - a @ b / (a.norm() * b.norm())) / 2)
