"""Claim 15: with images, normalised gradients are faster (Figure 4.3, an ordering: no values are published)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from pipeline.kit.verdicts import Condition, Gate, Measured
from schemas.nce.tables import AREA, DIAG, DIGITS, EARLY, ENCE, FULL, MNIST, NCE, S_AREA

SOURCE = "Liu 2024, Figure 4.3"
NAMES = {NCE: "NCE", ENCE: "eNCE"}
# What is compared, on which noise, and at which scale it can be told.
SETTINGS = {DIGITS: ("digits", (FULL, DIAG), "quick"), MNIST: ("MNIST", (FULL,), "paper")}


def faster(context: Any) -> Iterator[Gate]:
    """Claim 15: the area under the training loss is smaller with NGD than with GD in every seed, each at its best step
    size, and the loss early in training is lower."""
    contrasts = context.table("digits_contrasts").filter(rule=S_AREA)
    final = context.table("digits_final")
    early = f"training loss after {final['early_step'][0]} updates" if final.height else "early training loss"
    for dataset, (name, noises, scale) in SETTINGS.items():
        for noise in noises:
            for loss, shown in NAMES.items():
                where = {"dataset": dataset, "q_kind": noise, "loss": loss}
                for quantity, words in ((AREA, "area under the training loss"), (EARLY, early)):
                    measured, missing = _largest(
                        contrasts.filter(**where, quantity=quantity), final.filter(**where)
                    )
                    yield Gate(
                        "15",
                        f"{name}, {noise} noise, {shown}: {'area' if quantity == AREA else 'early loss'}",
                        f"{words}, NGD minus GD, each at the step size with the smallest mean area: the largest "
                        "difference over seeds is below 0",
                        SOURCE,
                        (Condition("value", "<", 0),),
                        measured,
                        missing,
                        scale_needed=scale,
                    )


def _largest(contrast: pl.DataFrame, final: pl.DataFrame) -> tuple[Measured | None, str]:
    """The largest difference over seeds; or None, and why there is none."""
    if contrast.height:
        row = contrast.row(0, named=True)
        return Measured(row["largest"], n=row["seeds"]), ""
    if final.height:
        return None, "every step size of a method diverged, or one of the methods was not run"
    return (
        None,
        "no such models were trained: see the replicas of its runs, and for MNIST the path of its images",
    )
