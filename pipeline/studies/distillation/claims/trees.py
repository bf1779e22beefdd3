"""Claim 19: hierarchical parity."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit import evidence
from pipeline.kit.extremes import column_max
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, above, at_least, at_most
from pipeline.studies.distillation.claims.common import SECTION, contrast
from schemas.claims import CORRECTED

SOURCE = SECTION.format("4.2.7.3, Figures 4.18 to 4.22")


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    measurement = evidence.checks(context.theory(), r"^tree\.corrected", column_max("measured"))
    yield Gate(
        "19", "classes", "inputs that belong to no class of the tree, or to several: signs of nodes", SOURCE,
        at_most(0.0), *measurement, kind=CORRECTED,
    )  # fmt: skip
    yield Gate(
        "19", "two checkpoints", "mean final accuracy of students of the best pair is at least 0.95", SOURCE,
        at_least(0.95), *contrast(context, "tree best pair"),
    )  # fmt: skip
    yield Gate(
        "19", "two against one", "mean final accuracy of the best pair minus that of the best single one is above 0",
        SOURCE, above(0.0), *contrast(context, "tree best pair - best single"),
    )  # fmt: skip
    yield Gate(
        "19", "one after another", "median number of different steps at which the three parities separate most is at "
        "least 2", SOURCE, at_least(2.0), *contrast(context, "tree peaks"),
    )  # fmt: skip
