"""Claim 19: hierarchical parity."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least
from pipeline.kit.evidence import Part
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.distillation.claims.common import SECTION
from pipeline.studies.distillation.comparisons import APART, BEST_PAIR, PAIR_LESS_SINGLE
from schemas.claims import CORRECTED

SOURCE = SECTION.format("4.2.7.3, Figures 4.18 to 4.22")


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    classes = Part("with the corrected rule every input belongs to one class of the tree", SOURCE, CORRECTED)
    yield from evidence.part_gates(context.theory(), "19", {"classes": classes})
    more = (
        ("two checkpoints", BEST_PAIR, at_least(0.95)),
        ("two against one", PAIR_LESS_SINGLE, above(0.0)),
        ("one after another", APART, at_least(0.1)),
    )
    for name, comparison, bar in more:
        yield evidence.gate(context, "19", name, comparison, bar, SOURCE)
