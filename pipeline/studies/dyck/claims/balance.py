"""Claims 8 to 11: balance and length generalisation (no numbers are published)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.kit.conditions import above, below
from pipeline.kit.evidence import gate
from pipeline.kit.verdicts import Gate
from pipeline.studies.dyck.claims.common import APPENDIX_D_2, SECTION_4_2
from pipeline.studies.dyck.comparisons import (
    ACCURACIES,
    GAINED,
    RANK,
    RANK_POOLED,
    RANK_WITHIN,
    VIOLATION_RATIO,
    VIOLATION_SHIFT,
)
from pipeline.studies.dyck.names import COMPLETE, PREFIX
from schemas.claims import OWN, STATED

if TYPE_CHECKING:
    from pipeline.kit.results import Results

RATIO_BELOW = 0.5
POOLED = -0.5
SOURCES = {COMPLETE: SECTION_4_2, PREFIX: APPENDIX_D_2}


def balance(context: Results, claim: str = "8", data: str = COMPLETE) -> Iterator[Gate]:
    """Yield the gates of claim 8: the contrastive term lowers the balance violation (by half is our bar)."""
    start = "" if data == COMPLETE else "balance, "
    for name, comparison, conditions, kind in (
        ("ratio of medians", VIOLATION_RATIO[data], below(RATIO_BELOW), OWN),
        ("difference of medians", VIOLATION_SHIFT[data], below(0.0), STATED),
    ):
        yield gate(context, claim, f"{start}{name}", comparison, conditions, SOURCES[data], kind=kind)


def accuracy(context: Results, claim: str = "9", data: str = COMPLETE) -> Iterator[Gate]:
    """Yield the gates of claim 9: the contrastive term improves accuracy at length."""
    for name in ACCURACIES:
        yield gate(context, claim, name, GAINED[data, name], above(0.0), SOURCES[data])


def on_prefixes(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 11: claims 8 and 9 hold for models trained on prefixes; of a correlation within an arm
    nothing is claimed."""
    yield from balance(context, "11", PREFIX)
    yield from accuracy(context, "11", PREFIX)


def rank(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 10: balance violation and accuracy at length are anticorrelated, in standard training.

    The source's measure of accuracy is that of closing brackets (section 4.2); that of its code is the other one. Over
    both arms pooled (the bar is the chapter's) the rank correlation is also of what the contrastive term does to each,
    which claims 8 and 9 are about.
    """
    paper, code = "acc_close", "acc_thr80"
    for arm, comparison, kind in (
        ("standard, closing brackets", RANK[COMPLETE, "standard", paper], STATED),
        ("standard", RANK[COMPLETE, "standard", code], OWN),
        ("within both arms, closing brackets", RANK_WITHIN[COMPLETE, paper], OWN),
        ("within both arms", RANK_WITHIN[COMPLETE, code], OWN),
    ):
        yield gate(context, "10", arm, comparison, below(0.0), SECTION_4_2, kind=kind)
    yield gate(context, "10", "both arms pooled", RANK_POOLED[COMPLETE, code], below(POOLED), SECTION_4_2, kind=OWN)
