"""Figure ``means``."""

from __future__ import annotations

from pipeline.studies.toy.figures.common import Figure, bars

from pipeline.kit.results import Results


def means(results: Results) -> Figure:
    """Draw one bar per run."""
    return bars(results.table("means"), "mean")
