"""What modules of claims share."""

from __future__ import annotations

from pipeline.kit.intervals import Interval
from pipeline.kit.verdicts import Measured

NO_ROW = "not run at this scale"
CONFIDENCE = 0.95


def measured(found: Interval) -> Measured:
    """Return what a gate reads of an interval at `CONFIDENCE` that claims took of tables."""
    return Measured(
        found.value, found.lo, found.hi, found.n, interval=found.kind, fewest=found.fewest, confidence=CONFIDENCE
    )
