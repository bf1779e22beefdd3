"""Claim 16: the executed lemmas and theorems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from pipeline.kit.verdicts import Condition, Gate, Measured, within
from pipeline.studies.nce.claims.common import SOURCE

PARTS = {
    "nce-formulas": ("formulas", "Definitions 19, 20, Lemmas 44, 45"),
    "nce-flatness": ("flatness", "Propositions 7, 8"),
    "nce-curvature": ("curvature", "Lemmas 46 to 48"),
    "nce-barrier": ("barrier", "Lemmas 49, 50, 59, Claim 6, Theorems 17, 18"),
    "nce-normalised": ("normalised gradients", "Lemma 51, Theorem 19, Corollary 2"),
    "nce-exponential-loss": ("exponential loss", "Lemmas 53, 54, Theorem 21"),
    "nce-overlap": ("overlap", "Theorem 20, Lemmas 52, 60, 61"),
    "nce-tricks": ("numerical tricks", "section 4.1.6"),
}
LEMMA_60 = r"^lemma-60-[0-9.]+$"
VIOLATED_BELOW = 1.0  # R from which the printed Lemma 60 holds


def checks(context: Any) -> Iterator[Gate]:
    """No check fails; the printed Lemma 60 fails exactly for R < 1."""
    rows = context.theory()
    for key, (name, source) in PARTS.items():
        part = rows.filter(theory=key)
        measured = Measured(float((~part["passed"]).sum()), n=part.height) if part.height else None
        yield Gate("16", name, "theory checks that do not hold: none", SOURCE.format(source),
                   (Condition("value", "<=", 0),), measured, f"theory check {key} is not in params.yaml")  # fmt: skip
    lemma = rows.filter(pl.col("check").str.contains(LEMMA_60))
    far = pl.col("check").str.strip_prefix("lemma-60-").cast(pl.Float64, strict=False) >= VIOLATED_BELOW
    wrong = lemma.filter((pl.col("measured") > 1) == far).height  # measured: kappa over the printed bound
    predicate = (
        f"R at which the printed bound does not fail below {VIOLATED_BELOW:g} and hold from there on: none"
    )
    yield Gate("16", "printed Lemma 60", predicate, SOURCE.format("Lemma 60"), within(0, 0),
               Measured(float(wrong), n=lemma.height) if lemma.height else None,
               "theory check nce-overlap is not in params.yaml")  # fmt: skip
