"""What the theory checks of the flipflop study share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

SOURCE = "Liu 2024, section 3.5{}"
ERRATUM = "flipflop-{}"
OWN = "own check, not in the source"
CONTROL = "own control, not in the source: this has to fail"


def row(
    check: str, statement: str, size: str, measured: float, comparison: str, bound: float, **more: Any
) -> dict[str, Any]:
    """Return one row of `schemas.theory.rows`."""
    return {
        "check": check, "statement": statement, "size": size, "measured": float(measured),
        "comparison": comparison, "bound": float(bound), **more,
    }  # fmt: skip


def exceptions(bad: ArrayLike, *outputs: ArrayLike) -> float:
    """Return how often ``bad`` is true; NaN if one of the outputs that it was found from is NaN."""
    broken = any(bool(np.isnan(output).any()) for output in outputs)
    return math.nan if broken else float(np.sum(bad))


def share(bad: ArrayLike, *outputs: ArrayLike) -> float:
    """Return the share of ``bad`` that is true; NaN if an output is NaN, or if there is nothing to count."""
    count = np.size(bad)
    return exceptions(bad, *outputs) / count if count else math.nan
