"""The sentences of findings that are computed for the page: what they say follows the tables."""

from __future__ import annotations

import depth_tables

from pipeline.studies.depth.measures import findings
from pipeline.studies.depth.names import LIKENESS


def test_sentences_of_findings_follow_the_tables() -> None:
    """The direction of a sentence is that of its numbers."""
    contrasts = depth_tables.every()["contrasts"]
    for sign, word in ((1, "rises in layer 2"), (-1, "falls in layer 2")):
        changed = contrasts.filter(contrast=LIKENESS[2])
        rows = contrasts.filter(contrast=LIKENESS[1]).vstack(
            changed.with_columns(value=sign * changed["value"])
        )
        ((_, sentence),) = findings._likeness(rows)
        assert word in sentence and "rises in layer 1" in sentence
