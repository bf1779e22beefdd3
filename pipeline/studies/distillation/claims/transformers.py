"""Claims 16 and 17: Transformers on sparse parity."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit.conditions import above, at_least, at_most
from pipeline.kit.evidence import gate
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.distillation.claims.common import SECTION
from pipeline.studies.distillation.comparisons import (
    ATTENDING_DELAY,
    ATTENDING_END,
    ATTENTION_END,
    ATTENTION_PEAK,
    BY_PEAK,
    VALLEY,
)
from schemas.claims import OWN

START, APPENDIX = SECTION.format("4.2.2, Figure 4.4"), SECTION.format("4.2.7.2, Figures 4.15 and 4.16")
CHANCE = at_most(0.55)


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    for arm, targets in (("ce", "labels"), ("os", "the last checkpoint")):
        name = f"students of {targets}"
        yield gate(context, "16", name, ATTENDING_END[arm], CHANCE, START, published=Published(0.5))
    yield gate(context, "16", "largest correlation", BY_PEAK, above(0.5), APPENDIX)
    yield gate(context, "16", "between the peaks", ATTENDING_END["between"], CHANCE, APPENDIX)
    yield gate(context, "16", "SEP between the peaks", VALLEY, at_most(1.5), APPENDIX, kind=OWN)
    yield gate(context, "16", "progressive students", ATTENDING_DELAY, at_most(1.15), START)
    yield gate(context, "17", "largest", ATTENTION_PEAK, at_least(5.0), APPENDIX)
    yield gate(context, "17", "at the end", ATTENTION_END, at_most(2.0), APPENDIX)
