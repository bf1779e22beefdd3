"""Claims 1 to 9: what predictors of masked tokens identify."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, below
from pipeline.kit.evidence import Part, largest, reduced
from pipeline.kit.extremes import column_min
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.languages.hmm import PAIR_TASKS, TRIPLE_TASKS
from pipeline.studies.selfsup.names import SOURCE
from schemas.claims import OWN, STATED

STATEMENTS = {
    "1": "There are HMMs that all predictors of one token from another confuse, though their parameters differ; "
    "predictors of two tokens tell them apart.",
    "2": "The published pair of HMMs has the printed determinants.",
}
THEOREM_6 = SOURCE.format("Theorem 6, Eq. 2.47")
NO_PAIR = "no such pair of models at this scale"

_PARTS = {
    "1": {
        "the published matrices": Part("sums and symmetry of the printed matrices", THEOREM_6),
        "the rotation": Part("the rotation between the printed models", SOURCE.format("section 2.2.3.2")),
    },
    "2": {"determinants": Part("printed determinants", SOURCE.format("Eq. 2.47"))},
}


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 1 to 9."""
    yield from _equivalence(context)
    for claim, parts in _PARTS.items():
        yield from evidence.part_gates(context.theory(), claim, parts)


def _equivalence(context: Results) -> Iterator[Gate]:
    table = context.table("hmm_equivalence")
    for family, name, bar, kind, source in (
        ("published", "published pair", 1e-7, STATED, THEOREM_6),
        ("rotated", "exact twins", 1e-13, OWN, SOURCE.format("section 2.2.3.2")),
    ):
        rows = table.filter(pl.col("task").is_in(PAIR_TASKS), family=family)
        yield Gate("1", f"{name}: one token", "largest difference of two predictors of one token", source, below(bar),
                   *largest(rows, "max_abs_diff", NO_PAIR), kind=kind)  # fmt: skip
    rows = table.filter(pl.col("task").is_in(TRIPLE_TASKS), family="published")
    yield Gate("1", "published pair: two tokens", "largest difference of two predictors of two tokens, the case where "
               "it is smallest", SOURCE.format("Theorem 7"), above(1e-4),
               *reduced(rows, column_min("max_abs_diff"), NO_PAIR), kind=OWN)  # fmt: skip
