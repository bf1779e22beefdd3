"""Claims 17 and 18: further optimisers, and what is done to single samples, in training on samples of Gaussians."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, below
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.nce.claims.common import SOURCE, defined
from pipeline.studies.nce.names import LOSS_NAMES, SAMPLES
from schemas.claims import OWN, STATED
from schemas.nce.tables import ADAM, ENCE, GD, MOMENTUM, NCE, NGD

DIMENSIONS = (1, 16)
BEST = "each at its step size with the smallest mean distance"
NOT_RUN = f"no such method, or none with n = {SAMPLES}, is in params/nce.yaml"


def further(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 17: momentum, of which section 4.1.1 speaks, and Adam, against NGD, on NCE."""
    source = SOURCE.format("section 4.1.1")
    for dim in DIMENSIONS:
        for optimizer, name, kind in ((MOMENTUM, "momentum", STATED), (ADAM, "Adam", OWN)):
            measure = f"smallest distance in {dim}-d on NCE, {name} minus NGD, {BEST}"
            row = _rows(context, dim, NCE, optimizer)
            yield Gate("17", f"{dim}-d: {name} against NGD", measure, source, above(0),
                       *evidence.one_row(row, NOT_RUN), kind=kind)  # fmt: skip


def guarded(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 18: gradients and log-ratios of single samples cut off, GD on eNCE."""
    source = SOURCE.format("section 4.1.6")
    for dim in DIMENSIONS:
        plain, limited, clipped = (
            _rows(context, dim, ENCE, GD, **guard) for guard in ({}, {"limit": True}, {"clip": True})
        )
        for name, row in (("gradients limited", limited), ("log-ratios clipped", clipped)):
            setting = f"{dim}-d, {name}"
            measure = f"smallest distance in {dim}-d of GD on {LOSS_NAMES[ENCE]}, {name} minus plain, {BEST}"
            yield Gate("18", f"{setting}: closer", measure, source, below(0),
                       *evidence.one_row(row, NOT_RUN))  # fmt: skip
            lost = row.join(plain.select("dim", before="etas_diverged"), on="dim")
            measure = (
                f"number of step sizes at which a seed of GD on {LOSS_NAMES[ENCE]} diverges in {dim}-d, {name} minus "
                "plain"
            )
            change = (pl.col("etas_diverged") - pl.col("before")).cast(pl.Float64)
            yield Gate("18", f"{setting}: diverges", measure, source, below(0),
                       *evidence.reduced(lost, change, NOT_RUN))  # fmt: skip
        other = _rows(context, dim, ENCE, NGD)
        both = limited.join(other.select("dim", other="mean_min_dist"), on="dim")
        ratio = defined(pl.col("mean_min_dist")) / defined(pl.col("other"))
        measure = (
            f"mean smallest distance in {dim}-d on {LOSS_NAMES[ENCE]}, GD with gradients of samples limited over plain "
            f"NGD, {BEST}"
        )
        yield Gate("18", f"{dim}-d: limited GD over NGD", measure, source, above(1),
                   *evidence.reduced(both, ratio, NOT_RUN), kind=OWN)  # fmt: skip


def _rows(context: Results, dim: int, loss: str, optimizer: str, **guard: Any) -> pl.DataFrame:
    """Return the row of a method; its column ``n`` counts seeds, as gates do."""
    guards = [
        pl.col(name).is_not_null() if name in guard else pl.col(name).is_null() for name in ("limit", "clip")
    ]
    rows = context.table("gauss_variants_selected").filter(
        *guards, dim=dim, loss=loss, optimizer=optimizer, n=SAMPLES
    )
    return rows.with_columns(n="seeds")
