"""Claim 21: models that copy, and maps of theirs that can be read and mislead (appendix B.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import at_least
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.dyck.claims import common
from pipeline.studies.dyck.names import (
    COPY_DEEP,
    COPY_HEADS,
    COPY_NO_SKIP,
    COPY_SHALLOW,
    COPY_STRIPPED,
    LIFTS_READ,
    MISLEADING_BELOW,
    UNIFORM_MODE,
)
from schemas.claims import FLOOR

FIGURES_4_6, FIGURE_5 = (
    "Wen et al. 2023, appendix B.1, Figures 4 and 6",
    "Wen et al. 2023, appendix B.1, Figure 5",
)
DEEP = {COPY_DEEP: "4 layers", COPY_HEADS: "4 layers, 4 heads"}
# Whether the paper's model had a residual stream is not stated.
SHALLOW = {
    COPY_SHALLOW: "1 layer",
    COPY_NO_SKIP: "1 layer, no skip connection around the MLP",
    COPY_STRIPPED: "1 layer, attention alone",
}
DEEP_ACCURATE, SHALLOW_ACCURATE = 0.96, 0.9


def accuracy(contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 21 on accuracy: the models copy; every position of held-out strings counts."""
    for models, bound, source in (
        (DEEP, DEEP_ACCURATE, FIGURES_4_6),
        (SHALLOW, SHALLOW_ACCURATE, FIGURE_5),
    ):
        for run, name in models.items():
            measured, missing = common.measured(contrasts, contrast="copying", first=run)
            yield Gate(
                "21",
                f"accuracy, {name}",
                f"median accuracy of copying ({name}) on held-out strings",
                source,
                at_least(bound),
                measured,
                missing,
                Published(bound, form=FLOOR),
            )


def misleading(ablation: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 21 on maps: some map seems to say what the model does, and hardly matters;
    which one is left to chance."""
    low, high = LIFTS_READ
    accuracies = pl.col("acc_before", "acc_after")
    undefined = pl.any_horizontal((accuracies.is_null() | accuracies.is_nan()).any())
    count = pl.when(undefined).then(float("nan")).otherwise(pl.col("misleading").sum())
    for run, name in DEEP.items():
        maps = ablation.filter(run=run, mode=UNIFORM_MODE)
        measurement, missing = evidence.reduced(maps, count, common.missing(run))
        measure = (
            f"number of maps ({name}, all replicas) where the lift of some bracket is at most {low} or at least "
            f"{high:g}, and where uniform attention in their place changes accuracy by less than {MISLEADING_BELOW}"
        )
        measured = replace(measurement, n=maps["replica"].n_unique()) if measurement else None
        yield Gate("21", f"misleading maps, {name}", measure, FIGURES_4_6, at_least(1), measured, missing)
