"""Metrics of the toy study."""

from __future__ import annotations

import numpy as np


def mean(weights: np.ndarray) -> np.ndarray:
    """(replicas, weights) -> (replicas,)."""
    return weights.mean(1, dtype=np.float64)
