"""Claims 15 to 18: trained embeddings."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit.conditions import above, at_most
from pipeline.kit.evidence import gate
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.topic.claims.common import HALF, SECTION, between
from pipeline.studies.topic.comparisons import (
    ALONE_COST,
    COSINES,
    INNER,
    PAIRED_OFF,
    PANELS,
    SUMS,
    THEOREM_SUMS,
    UNIT_DIAGONAL,
)
from pipeline.studies.topic.names import ALL, ALL_SGD_SQ
from schemas.claims import OWN, STATED

THEOREM = SECTION.format("2.1.3, Theorem 2.1.1")
FIGURE = SECTION.format("2.1.5, Figure 2.1")
# Panels for which the source asks for no blocks off the diagonal: "a diagonal pattern is a special case" (caption).
DIAGONAL = ((ALL, "sq"), (ALL_SGD_SQ, "sq"))


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    for name, comparison, bars in (
        ("same topic", THEOREM_SUMS["block_sum_same"], between(1.05, 1.25)),
        ("other topics", THEOREM_SUMS["block_sum_diff"], between(-0.05, 0.05)),
    ):
        yield gate(context, "15", name, comparison, bars, THEOREM, kind=OWN)
    for name, key in PANELS.items():
        yield gate(context, "16", f"{name}, sums over topics", SUMS[key], above(HALF), f"{THEOREM}, and Figure 2.1")
        kind = OWN if key in DIAGONAL else STATED
        yield gate(context, "16", f"{name}, inner products", INNER[key], above(HALF), FIGURE, kind=kind)
        yield gate(context, "16", f"{name}, blocks", PAIRED_OFF[key], above(HALF), FIGURE, kind=kind)
        if key in COSINES:
            yield gate(context, "16", f"{name}, cosines", COSINES[key], above(HALF), FIGURE, kind=OWN)
    for name, cell in (("cross-entropy, Adam", "ce"), ("squared, Adam", "sq")):
        slight = at_most(context.settings.slight)
        yield gate(context, "17", name, ALONE_COST[cell], slight, SECTION.format("2.1.3"))
    source = "our extension: embeddings that start at unit size"
    yield gate(context, "18", "after training, entries", UNIT_DIAGONAL, above(HALF), source, kind=OWN)
