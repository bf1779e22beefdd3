"""What gates of this study share: evidence from the table of comparisons, and no verdict on too few models."""

from __future__ import annotations

from pipeline.kit import evidence
from pipeline.kit.conditions import Condition
from pipeline.kit.evidence import Evidence
from pipeline.kit.results import Results

SECTION = "Li 2025, section {}"


def contrast(context: Results, name: str) -> Evidence:
    """Return the evidence of a comparison; of too few models there is none, and their value is the reason."""
    rows = context.table("contrasts").filter(contrast=name)
    measurement = evidence.one_row(rows, f"{name}: not trained at this scale")
    return evidence.enough(*measurement, context.settings.fewest)


def between(low: float, high: float) -> tuple[Condition, Condition]:
    """Return the conditions that the value lies from ``low`` to ``high``."""
    return Condition("value", ">=", low), Condition("value", "<=", high)
