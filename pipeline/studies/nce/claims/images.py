"""Claim 15: with images, normalised gradients are faster (Figure 4.3, an ordering: no values are published)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import below
from pipeline.kit.evidence import Evidence
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.nce.claims.common import SOURCE
from pipeline.studies.nce.names import DIGITS, IMAGE_NAMES, LOSS_NAMES, MNIST
from schemas.claims import OWN, STATED
from schemas.nce.tables import AREA, DIAG, EARLY, FINAL_TEST, FULL, S_AREA

SETTINGS = {DIGITS: (FULL, DIAG), MNIST: (FULL,)}  # on which noise methods are compared


def faster(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 15: NGD trains faster than GD, each at its best step size.

    The area under the training loss is smaller in every seed and, as the loss early in training, on average with its
    interval. Whether the test loss is lower in the end, which is not claimed, has gates of its own.
    """
    contrasts = context.table("digits_contrasts").filter(rule=S_AREA).with_columns(n="seeds")
    final = context.table("digits_final")
    early = f"training loss after {final['early_step'][0]} updates" if final.height else "early training loss"
    measures = [
        ("area", "area under the training loss", AREA, "largest", STATED),
        ("mean area", "area under the training loss", AREA, "value", STATED),
        ("early loss", early, EARLY, "value", STATED),
        ("last test loss", "test loss after the last update", FINAL_TEST, "value", OWN),
    ]
    for dataset, noises in SETTINGS.items():
        for noise, (loss, shown) in product(noises, LOSS_NAMES.items()):
            where = {"dataset": dataset, "q_kind": noise, "loss": loss}
            for name, words, quantity, column, kind in measures:
                rows = contrasts.filter(**where, quantity=quantity)
                gap = "largest difference over seeds" if column == "largest" else "mean difference"
                yield Gate(
                    "15",
                    f"{IMAGE_NAMES[dataset]}, {noise} noise, {shown}: {name}",
                    f"{words}, NGD minus GD, each at the step size with the smallest mean area, {gap}",
                    SOURCE.format("Figure 4.3"),
                    below(0),
                    *_measured(rows, column, final.filter(**where)),
                    kind=kind,
                )


def _measured(contrast: pl.DataFrame, column: str, final: pl.DataFrame) -> Evidence:
    """Return the evidence of a difference, or why there is none; the largest over seeds has no interval."""
    if final.height:
        missing = "every step size of a method diverged, or one of the methods was not run"
    else:
        missing = (
            "no such models were trained: see the replicas of its runs, and for MNIST the path of its images"
        )
    return evidence.one_row(
        contrast.drop("lo", "hi") if column == "largest" else contrast, missing, value=column
    )
