"""Claim 16: the executed lemmas and theorems."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import at_most
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.nce.claims.common import SOURCE
from pipeline.studies.nce.names import CHECKS
from schemas.claims import CORRECTED, OWN

LEMMA_60 = r"^lemma-60-[0-9.]+$"
VIOLATED_BELOW = 1.0  # R from which the printed Lemma 60 holds


def checks(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 16: no check fails, and the printed Lemma 60 fails exactly for R < 1."""
    rows = context.theory()
    for key, (name, source) in CHECKS.items():
        yield Gate("16", name, "theory checks that do not hold", SOURCE.format(source),
                   at_most(0), *evidence.failures(rows, key), kind=OWN)  # fmt: skip
    far = pl.col("check").str.strip_prefix("lemma-60-").cast(pl.Float64, strict=False) >= VIOLATED_BELOW
    wrong = ((pl.col("measured") > 1) == far).sum().cast(pl.Float64)  # measured: kappa over the printed bound
    measure = (
        f"number of R below {VIOLATED_BELOW:g} where the printed bound holds, and of others where it fails"
    )
    yield Gate("16", "printed Lemma 60", measure, SOURCE.format("Lemma 60"), at_most(0),
               *evidence.checks(rows, LEMMA_60, wrong), kind=CORRECTED)  # fmt: skip
