"""Claim 26, our own: what the last layer of a model does where it errs."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, below
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.flipflop import comparisons
from schemas.claims import OWN


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    for name in ("dense", "sparse"):
        for gate, known, conditions in (
            ("mended", comparisons.MENDED, above(0.5)),
            ("kept", comparisons.KEPT, at_least(0.9)),
            ("stale votes", comparisons.VOTES, above(0.0)),
            ("weight on the write", comparisons.ON_WRITE, below(0.0)),
        ):
            yield evidence.gate(context, "26", f"{name}, {gate}", known[name], conditions, "our extension", kind=OWN)
