"""What theory checks of this study share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

LIU = "Liu 2024, section 4.2.{}"
ERRATUM = "distillation-{}"
UNPUBLISHED = "own check, not in the source"  # where a row is about what the source does not say


def row(
    check: str, statement: str, size: str, measured: float, comparison: str, bound: float, **more: Any
) -> dict[str, Any]:
    """Return one row of `schemas.theory.rows`."""
    return {
        "check": check, "statement": statement, "size": size, "measured": float(measured),
        "comparison": comparison, "bound": float(bound), **more,
    }  # fmt: skip


def printed(name: str) -> dict[str, Any]:
    """Return what makes a row one that shows the printed form of an erratum fail."""
    return {"form": "printed", "erratum": ERRATUM.format(name)}


def corrected(name: str) -> dict[str, Any]:
    """Return what makes a row one that shows the corrected form of an erratum hold."""
    return {"form": "corrected", "erratum": ERRATUM.format(name)}


def exceptions(bad: ArrayLike, *outputs: ArrayLike) -> float:
    """Return how often ``bad`` is true; NaN if one of the outputs that it was found from is NaN."""
    broken = any(bool(np.isnan(output).any()) for output in outputs)
    return math.nan if broken else float(np.sum(bad))
