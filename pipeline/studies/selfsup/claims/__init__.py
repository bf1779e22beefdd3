"""The claims of the study."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence, verdicts
from pipeline.kit.conditions import at_least
from pipeline.kit.evidence import Part
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.selfsup.comparisons import LEARNS
from pipeline.studies.selfsup.names import LABELS

SOURCE = "the source, its section"

# Each claim as a reader of the source would say it.
STATEMENTS = {"1": "One layer is enough to count."}


def judge(context: Results) -> pl.DataFrame:
    """Return the claims table (`schemas.claims.Claims`) from the tables and theory rows of the study."""
    return verdicts.table(_counting(context), STATEMENTS, context.study, context.scale, context.params_hash)


def _counting(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 1: one layer is enough to count; by construction, and trained."""
    parts = {"construction": Part("a construction counts", SOURCE)}
    yield from evidence.part_gates(context.theory(), "1", parts)
    bar = at_least(context.settings.least_accuracy)
    for run, comparison in LEARNS.items():
        yield evidence.gate(context, "1", LABELS[run], comparison, bar, SOURCE)
