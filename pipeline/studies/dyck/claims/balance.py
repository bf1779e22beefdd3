"""Claims 8 to 11: balance and length generalisation (no numbers are published)."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit.conditions import Condition, below
from pipeline.kit.verdicts import Gate
from pipeline.studies.dyck.claims.common import ACCURACIES, APPENDIX_D_2, SECTION_4_2, measured
from pipeline.studies.dyck.names import ARMS, COMPLETE, PREFIX

BETA_RATIO_BELOW = 0.5
SOURCES = {COMPLETE: SECTION_4_2, PREFIX: APPENDIX_D_2}
_ON = {COMPLETE: "", PREFIX: " (trained on prefixes)"}


def balance(contrasts: pl.DataFrame, claim: str = "8", data: str = COMPLETE) -> Iterator[Gate]:
    """Yield the gates of claim 8: the contrastive term halves the balance violation."""
    for statistic, arms, conditions in (
        ("ratio of medians", "contrastive over standard", below(BETA_RATIO_BELOW)),
        ("difference of medians", "contrastive minus standard", (Condition("hi", "<", 0),)),
    ):
        measurement, missing = measured(contrasts, contrast="beta", statistic=statistic, **_compared(data))
        measure = f"median balance violation, {arms}{_ON[data]}"
        gate = statistic if data == COMPLETE else f"balance, {statistic}"
        yield Gate(claim, gate, measure, SOURCES[data], conditions, measurement, missing)


def accuracy(contrasts: pl.DataFrame, claim: str = "9", data: str = COMPLETE) -> Iterator[Gate]:
    """Yield the gates of claim 9: the contrastive term improves accuracy at length."""
    for name, quantity in ACCURACIES.items():
        measurement, missing = measured(
            contrasts, contrast="accuracy", statistic="difference of means", metric=name, **_compared(data)
        )
        measure = f"mean {quantity} at length, contrastive minus standard{_ON[data]}"
        conditions = (Condition("value", ">", 0), Condition("lo", ">", 0))
        yield Gate(claim, name, measure, SOURCES[data], conditions, measurement, missing)


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
    measure = f"{correlation}, over standard replicas"
    negative = (Condition("value", "<", 0), Condition("hi", "<", 0))
    yield Gate("10", "standard", measure, SECTION_4_2, negative, measurement, missing)
    measurement, missing = measured(
        contrasts,
        contrast="rank",
        statistic="spearman within arms",
        metric=metric,
        **_compared(COMPLETE),
    )
    measure = f"{correlation}, within both arms together"
    yield Gate("10", "within both arms", measure, SECTION_4_2, negative, measurement, missing)
