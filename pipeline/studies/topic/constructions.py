"""What the theory checks of the topic study share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pipeline.kit.theory_rows import of
from pipeline.languages.topic import Masking

SOURCE = "Li 2025, section 2.1{}"
OWN_CHECK = "own check, not in the source"
CONTROL = f"{OWN_CHECK} (control)"
ERRATUM = "topic-{}"
# Errata, as the gates of claim 1 call them.
SLIPS = {
    "indices": "indices",
    "hessian-rank": "rank of the Hessian",
    "penalty": "penalty",
    "normaliser": "normaliser",
    "proof-q": "q of the proof",
    "softmax": "softmax",
    "equation-2.20": "equation 2.20",
    "lambda-1": "λ₁",
    "equation-2.26": "equation 2.26",
    "combination": "combined cases",
    "comparison": "compared cases",
    "assumption-2.1.2": "Assumption 2.1.2",
    "bias": "bias of Theorem 2.1.1",
    "example": "example of Theorem 2.1.1",
    "remark-2.1.2": "Remark 2.1.2",
    "table-2.1": "caption of Table 2.1",
    "normalised-embeddings": "normalisation of embeddings",
}
# What judges the form of an erratum that holds, where that is not the gate of all slips.
HELD = {
    "lambda-1": ("1", "constants of Theorem 2.1.3"),
    "bias": ("1", "Theorem 2.1.1, its bias"),
    "assumption-2.1.2": ("7", "free attention, with the weight of [MASK]"),
}
# What the variants of `pipeline.studies.topic.exact.stage_two` are called on the page.
NORMALISERS = {"paper": "normaliser as printed", "consistent": "normaliser with [MASK]"}


def slip(name: str, form: str) -> dict[str, Any]:
    """Return what makes a row one on an erratum: on its printed form, or on the corrected one."""
    gate = ("1", f"{SLIPS[name]}, as printed") if form == "printed" else HELD.get(name, ("1", "slips"))
    return {"form": form, "erratum": ERRATUM.format(name)} | of(*gate)


def slope(x: ArrayLike, y: ArrayLike) -> float:
    """Return the slope of the line through positive points in logarithms, by least squares; NaN if a value is NaN.

    >>> round(slope([1, 10, 100], [3, 300, 30000]), 12)
    2.0
    """
    u, w = (np.log(np.asarray(part, float)) for part in (x, y))
    u, w = u - u.mean(), w - w.mean()
    return float((u * w).sum() / (u * u).sum())


def named(size: tuple[int, ...] | list[int]) -> tuple[str, str]:
    """Return sizes T, v and tau as the end of the name of a check, and in words.

    >>> named([10, 10, 2])
    ('10-10-2', 'T = 10, v = 10, τ = 2')
    """
    topics, v, tau = size
    return f"{topics}-{v}-{tau}", f"T = {topics}, v = {v}, τ = {tau}"


def masking_of(entry: Any) -> Masking:
    """Return the masking that an entry names."""
    return Masking(entry.p_mask, entry.p_keep, entry.p_random)
