"""Claim 19: hierarchical parity."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least
from pipeline.kit.evidence import Part
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.distillation.claims.common import SECTION, contrast
from schemas.claims import CORRECTED

SOURCE = SECTION.format("4.2.7.3, Figures 4.18 to 4.22")


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    classes = Part("with the corrected rule every input belongs to one class of the tree", SOURCE, CORRECTED)
    yield from evidence.part_gates(context.theory(), "19", {"classes": classes})
    yield Gate(
        "19",
        "two checkpoints",
        "mean final accuracy of students of the best pair",
        SOURCE,
        at_least(0.95),
        *contrast(context, "tree best pair"),
    )
    yield Gate(
        "19",
        "two against one",
        "mean final accuracy of students of the best pair minus that of students of the best single one",
        SOURCE,
        above(0.0),
        *contrast(context, "tree best pair - best single"),
    )
    yield Gate(
        "19",
        "one after another",
        "number of different steps at which the three parities separate most, median",
        SOURCE,
        at_least(2.0),
        *contrast(context, "tree peaks"),
    )
