"""Claim 26, our own: what the worst glitch of each model has in common."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit.conditions import above
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.flipflop.claims.common import contrast
from schemas.claims import OWN


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    for name in ("dense", "sparse"):
        yield Gate(
            "26", f"{name}, elsewhere",
            "share of models in whose worst glitch the heaviest head of the last layer looks elsewhere than at the "
            "last write", "our extension", above(0.5), *contrast(context, f"autopsy {name}, elsewhere"), kind=OWN,
        )  # fmt: skip
        yield Gate(
            "26", f"{name}, other bit",
            "share of models in whose worst glitch the heaviest head of the last layer looks at the other bit",
            "our extension", above(0.5), *contrast(context, f"autopsy {name}, other bit"), kind=OWN,
        )  # fmt: skip
