"""What gates of this study share."""

from __future__ import annotations

from pipeline.kit.conditions import Condition

SECTION = "Li 2025, section {}"
HALF = 0.5  # more than half of the models


def between(low: float, high: float) -> tuple[Condition, Condition]:
    """Return the conditions that the value lies from ``low`` to ``high``."""
    return Condition("value", ">=", low), Condition("value", "<=", high)
