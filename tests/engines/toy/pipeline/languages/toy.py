"""A language of numbers."""

from __future__ import annotations

import numpy as np


def sample(rows: int, generator: np.random.Generator) -> np.ndarray:
    """(rows,) uniform on [0, 1)."""
    return generator.random(rows)
