"""What gates of this study share: evidence from the table of comparisons, and no verdict on too few models."""

from __future__ import annotations

from pipeline.kit import evidence
from pipeline.kit.evidence import Evidence
from pipeline.kit.results import Results

SECTION = "Liu 2024, section {}"


def contrast(context: Results, name: str) -> Evidence:
    """Return the evidence of a comparison; of too few models there is none, and their value is the reason."""
    rows = context.table("contrasts").filter(contrast=name)
    measurement = evidence.one_row(rows, "not trained at this scale, or no model learned")
    return evidence.enough(*measurement, context.settings.fewest)
