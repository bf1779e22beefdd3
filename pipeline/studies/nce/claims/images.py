"""Claim 15: with images, normalised gradients are faster (Figure 4.3, an ordering: no values are published)."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.evidence import Evidence
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Condition, Gate
from pipeline.studies.nce.claims.common import SOURCE
from pipeline.studies.nce.names import DIGITS, IMAGE_NAMES, LOSS_NAMES, MNIST
from schemas.nce.tables import AREA, DIAG, EARLY, FULL, S_AREA

# On which noise methods are compared, and at which scale it can be told
SETTINGS = {DIGITS: ((FULL, DIAG), "quick"), MNIST: ((FULL,), "paper")}


def faster(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 15: NGD trains faster than GD, each at its best step size.

    The area under the training loss is smaller in every seed, and the loss early in training is lower.
    """
    contrasts = context.table("digits_contrasts").filter(rule=S_AREA)
    final = context.table("digits_final")
    early = f"training loss after {final['early_step'][0]} updates" if final.height else "early training loss"
    for dataset, (noises, scale) in SETTINGS.items():
        for noise in noises:
            for loss, shown in LOSS_NAMES.items():
                setting = f"{IMAGE_NAMES[dataset]}, {noise} noise, {shown}"
                where = {"dataset": dataset, "q_kind": noise, "loss": loss}
                for quantity, words in ((AREA, "area under the training loss"), (EARLY, early)):
                    measured, missing = _largest(
                        contrasts.filter(**where, quantity=quantity), final.filter(**where)
                    )
                    yield Gate(
                        "15",
                        f"{setting}: {'area' if quantity == AREA else 'early loss'}",
                        f"{words}, NGD minus GD, each at the step size with the smallest mean area: the largest "
                        "difference over seeds is below 0",
                        SOURCE.format("Figure 4.3"),
                        (Condition("value", "<", 0),),
                        measured,
                        missing,
                        scale_needed=scale,
                    )


def _largest(contrast: pl.DataFrame, final: pl.DataFrame) -> Evidence:
    """Return the evidence of the largest difference over seeds, or why there is none."""
    if final.height:
        missing = "every step size of a method diverged, or one of the methods was not run"
    else:
        missing = (
            "no such models were trained: see the replicas of its runs, and for MNIST the path of its images"
        )
    return evidence.one_row(contrast.select("largest", n="seeds"), missing, value="largest")
