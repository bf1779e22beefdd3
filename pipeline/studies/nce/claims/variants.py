"""Claims 17 and 18: further optimisers, and what is done to single samples, in training on samples of Gaussians."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit import evidence
from pipeline.kit.conditions import above, below
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.nce.claims.common import SOURCE
from pipeline.studies.nce.comparisons import (
    AGAINST_NGD,
    CLOSER,
    DIMENSIONS,
    DIVERGES,
    FURTHER,
    GUARDS,
    LIMITED,
    LIMITED_BOTH,
)
from schemas.claims import OWN, STATED
from schemas.nce.tables import ADAM


def further(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 17: momentum, of which section 4.1.1 speaks, and Adam, against NGD, on NCE."""
    source = SOURCE.format("section 4.1.1")
    for (dim, optimizer), comparison in AGAINST_NGD.items():
        kind = OWN if optimizer == ADAM else STATED
        gate = f"{dim}-d: {FURTHER[optimizer]} against NGD"
        yield evidence.gate(context, "17", gate, comparison, above(0), source, kind=kind)


def guarded(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 18: gradients and log-ratios of single samples cut off, GD on eNCE.

    The text names both for numerical stability, and says nothing of distances.
    """
    source = SOURCE.format("section 4.1.6")
    for dim in DIMENSIONS:
        for guard, name in GUARDS.items():
            for gate, comparison in (("closer", CLOSER[dim, guard]), ("diverges", DIVERGES[dim, guard])):
                yield evidence.gate(context, "18", f"{dim}-d, {name}: {gate}", comparison, below(0), source, kind=OWN)
        for other, comparison in (("NGD", LIMITED[dim]), ("limited NGD", LIMITED_BOTH[dim])):
            gate = f"{dim}-d: limited GD over {other}"
            yield evidence.gate(context, "18", gate, comparison, above(1), source, kind=OWN)
