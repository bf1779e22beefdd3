"""What theory checks of this study share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

LIU = "Liu 2024, section 4.2.{}"
ERRATUM = "distillation-{}"
UNPUBLISHED = "own check, not in the source"  # where a row is about what the source does not say
# Errata of claim 32, as its gates call them.
SLIPS = {
    "majority-size": "size of majority coefficients",
    "corollary-3-sum": "sum of majority coefficients",
    "majority-mean": "mean of the majority",
    "claim-7-sign": "sign of Claim 7",
    "lemma-63-decay": "decay of Lemma 63",
    "lemma-64-start": "start of Lemma 64",
    "lemma-64-outside": "Lemma 64 outside the support",
    "lemma-65-batch": "batch of Lemma 65",
    "corollary-4-output": "Corollary 4",
    "tree-rule": "rule of the tree",
    "window-end": "end of windows",
    "level-count": "levels",
    "causal-window": "causal window",
    "equation-4.101": "equation 4.101",
}


def row(
    check: str, statement: str, size: str, measured: float, comparison: str, bound: float, **more: Any
) -> dict[str, Any]:
    """Return one row of `schemas.theory.rows`."""
    return {
        "check": check,
        "statement": statement,
        "size": size,
        "measured": float(measured),
        "comparison": comparison,
        "bound": float(bound),
        **more,
    }


def decides(claim: str, part: str) -> dict[str, Any]:
    """Return what makes a row one that decides a claim, in the gate ``part``."""
    return {"claim": claim, "part": part}


def judged(claim: str, part: str, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows as such that decide a claim; one that says what it decides itself is left as it is."""
    return [{**decides(claim, part), **each} for each in rows]


def printed(name: str) -> dict[str, Any]:
    """Return what makes a row one that shows the printed form of an erratum of claim 32 fail."""
    return {"form": "printed", "erratum": ERRATUM.format(name)} | decides("32", f"{SLIPS[name]}, printed")


def corrected(name: str) -> dict[str, Any]:
    """Return what makes a row one that shows the corrected form of an erratum of claim 32 hold."""
    return {"form": "corrected", "erratum": ERRATUM.format(name)} | decides("32", f"{SLIPS[name]}, corrected")


def exceptions(bad: ArrayLike, *outputs: ArrayLike) -> float:
    """Return how often ``bad`` is true; NaN if one of the outputs that it was found from is NaN."""
    broken = any(bool(np.isnan(output).any()) for output in outputs)
    return math.nan if broken else float(np.sum(bad))
