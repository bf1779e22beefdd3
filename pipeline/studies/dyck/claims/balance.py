"""Claims 8 to 11: balance and length generalisation (no numbers are published)."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit.verdicts import Condition, Gate
from pipeline.studies.dyck.claims.common import ACCURACIES, APPENDIX_D_2, SECTION_4_2, measured
from pipeline.studies.dyck.names import ARMS, COMPLETE, PREFIX

BETA_RATIO_BELOW = 0.5
SOURCES = {COMPLETE: SECTION_4_2, PREFIX: APPENDIX_D_2}
_ON = {COMPLETE: "", PREFIX: " (trained on prefixes)"}
_BELOW_HALF = Condition("value", "<", BETA_RATIO_BELOW)


def balance(contrasts: pl.DataFrame, claim: str = "8", data: str = COMPLETE) -> Iterator[Gate]:
    """Yield the gates of claim 8: the contrastive term halves the balance violation."""
    for statistic, predicate, condition in (
        ("ratio of medians", f"contrastive over standard, is below {BETA_RATIO_BELOW}", _BELOW_HALF),
        (
            "difference of medians",
            "contrastive minus standard, has an interval below 0",
            Condition("hi", "<", 0),
        ),
    ):
        measurement, missing = measured(contrasts, contrast="beta", statistic=statistic, **_compared(data))
        predicate = f"median balance violation, {predicate}{_ON[data]}"
        gate = statistic if data == COMPLETE else f"balance, {statistic}"
        yield Gate(claim, gate, predicate, SOURCES[data], (condition,), measurement, missing)


def accuracy(contrasts: pl.DataFrame, claim: str = "9", data: str = COMPLETE) -> Iterator[Gate]:
    """Yield the gates of claim 9: the contrastive term improves accuracy at length."""
    for name, quantity in ACCURACIES.items():
        measurement, missing = measured(
            contrasts, contrast="accuracy", statistic="difference of means", metric=name, **_compared(data)
        )
        predicate = f"mean {quantity} at length, contrastive minus standard, is positive, its interval too"
        conditions = (Condition("value", ">", 0), Condition("lo", ">", 0))
        yield Gate(claim, name, f"{predicate}{_ON[data]}", SOURCES[data], conditions, measurement, missing)


def on_prefixes(contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 11: claims 8 and 9 hold for models trained on prefixes; of a correlation
    within an arm nothing is claimed."""
    yield from balance(contrasts, "11", PREFIX)
    yield from accuracy(contrasts, "11", PREFIX)


def _compared(data: str) -> dict[str, str]:
    return {"first": ARMS[data]["contrastive"], "second": ARMS[data]["standard"]}


def rank(contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 10: balance violation and accuracy at length are anticorrelated."""
    metric = "beta, acc_thr80"
    measurement, missing = measured(
        contrasts, contrast="rank", statistic="spearman", first=ARMS[COMPLETE]["standard"], metric=metric
    )
    correlation = f"Spearman's correlation of balance violation and {ACCURACIES['acc_thr80']} at length"
    predicate = f"{correlation}, over standard replicas, is negative, its interval too"
    negative = (Condition("value", "<", 0), Condition("hi", "<", 0))
    yield Gate("10", "standard", predicate, SECTION_4_2, negative, measurement, missing, scale_needed="paper")
    measurement, missing = measured(
        contrasts,
        contrast="rank",
        statistic="spearman within arms",
        metric=metric,
        **_compared(COMPLETE),
    )
    predicate = f"{correlation}, within both arms together, is negative, its interval too"
    yield Gate("10", "within both arms", predicate, SECTION_4_2, negative, measurement, missing)
