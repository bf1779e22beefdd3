"""What theory checks of this study share."""

from __future__ import annotations

from typing import Any

from pipeline.kit.theory_rows import of

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


def printed(name: str) -> dict[str, Any]:
    """Return what makes a row one that shows the printed form of an erratum of claim 32 fail."""
    return {"form": "printed", "erratum": ERRATUM.format(name)} | of("32", f"{SLIPS[name]}, printed")


def corrected(name: str) -> dict[str, Any]:
    """Return what makes a row one that shows the corrected form of an erratum of claim 32 hold."""
    return {"form": "corrected", "erratum": ERRATUM.format(name)} | of("32", f"{SLIPS[name]}, corrected")
