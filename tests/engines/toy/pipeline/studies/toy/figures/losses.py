"""Figure ``losses``."""

from __future__ import annotations

from pipeline.studies.toy.figures.common import Figure, bars

from pipeline.kit.results import Results


def losses(results: Results) -> Figure:
    """Draw the losses of runs that have means, and count the theory checks in the title."""
    assert results.theory().height == 1
    both = results.table("losses").join(results.table("means"), on="run", how="semi")
    return bars(both, "loss")
