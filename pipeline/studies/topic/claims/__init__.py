"""The claims of the study."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence, verdicts
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Condition, Gate
from pipeline.studies.topic.names import CONSTRUCTION, LABELS

# Each claim as a reader of the source would say it.
STATEMENTS = {"1": "One layer is enough to count."}


def judge(context: Results) -> pl.DataFrame:
    """Return the claims table (`schemas.claims.Claims`) from the tables and theory rows of the study."""
    return verdicts.table(_counting(context), STATEMENTS, context.study, context.scale, context.params_hash)


def _counting(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 1: one layer is enough to count; by construction, and trained."""
    errors, missing = evidence.failures(context.theory(), CONSTRUCTION)
    predicate = "the construction makes no error"
    none = (Condition("value", "<=", 0.0),)
    yield Gate("1", "construction", predicate, "the source, its section", none, errors, missing)
    least = context.settings.least_accuracy
    for run, label in LABELS.items():
        found, missing = evidence.one_row(context.table("accuracy"), f"{run} has no models", run=run)
        enough = (Condition("value", ">=", least),)
        predicate = f"accuracy is at least {least}"
        yield Gate("1", label, predicate, "the source, its section", enough, found, missing)
