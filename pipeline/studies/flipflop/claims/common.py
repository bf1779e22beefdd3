"""What gates of this study share: evidence from the table of comparisons, and no verdict on too few models."""

from __future__ import annotations

from pipeline.kit import evidence
from pipeline.kit.evidence import Evidence
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Condition, Measured, defined

SECTION = "Liu 2024, section {}"


def contrast(context: Results, name: str) -> Evidence:
    """Return the evidence of a comparison; of too few models there is none, and their value is the reason."""
    rows = context.table("contrasts").filter(contrast=name)
    found, missing = evidence.one_row(rows, f"{name}: not trained at this scale, or too few models learned")
    return enough(context, found, missing)


def enough(context: Results, found: Measured | None, missing: str) -> Evidence:
    """Return the same evidence; of too few models none, and their value as the reason."""
    if found is None or not defined(found.value) or (found.n or 0) >= context.settings.fewest:
        return found, missing
    return None, f"pilot: {found.value:.3g} of {found.n} models; a verdict needs {context.settings.fewest}"


def above(bar: float) -> tuple[Condition, ...]:
    """Return the condition that the value is above ``bar``."""
    return (Condition("value", ">", bar),)


def at_least(bar: float) -> tuple[Condition, ...]:
    """Return the condition that the value is at least ``bar``."""
    return (Condition("value", ">=", bar),)


def below(bar: float) -> tuple[Condition, ...]:
    """Return the condition that the value is below ``bar``."""
    return (Condition("value", "<", bar),)


def at_most(bar: float) -> tuple[Condition, ...]:
    """Return the condition that the value is at most ``bar``."""
    return (Condition("value", "<=", bar),)
