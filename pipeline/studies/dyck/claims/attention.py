"""Claims 3 to 7, 12 and 22: accuracy in distribution, and attention on the probe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from pipeline.kit.verdicts import Condition, Gate, Published, within
from pipeline.studies.dyck.claims.common import APPENDIX_D_2, PROBE_LENGTH, RANDOM_MAPS, SECTION_4_1, measured
from pipeline.studies.dyck.claims.table1 import cell_name
from pipeline.studies.dyck.names import (
    LINEAR,
    MINIMAL,
    MODELS,
    PREFIX_MINIMAL,
    PREFIX_MODELS,
    PREFIX_STANDARD,
    PREFIX_STANDARD_ALL,
    PUBLISHED_PREFIX_VARIATION,
    PUBLISHED_VARIATION,
    STACK_LIKE,
    STANDARD,
    TABLE_1,
    UNIFORM,
    WIDE,
    convention,
)
from schemas.claims import FLOOR

ACCURATE = 0.97  # required of every model (section 4.1, Figure 1, Table 1)
STACK_LIKE_SHARE_BELOW = 0.2
OVER_RANDOM = (0.5, 1.4)
MINIMAL_BELOW = 0.5
RATIO_BELOW, RATIO_INTERVAL_BELOW = 0.25, 0.5
PREFIX_RATIO = 5.0
UNIFORM_ACCURATE = 0.99  # footnote 4
FOOTNOTE_4 = "Wen et al. 2023, footnote 4"


def in_distribution(contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 3: every model is accurate on data like its training data."""
    models = {run: name for run, name in MODELS.items() if run != WIDE}
    models |= {run: f"M8, {cell_name(*cell)}" for cell, run in TABLE_1.items()}
    for run, name in models.items():
        yield _accurate("3", name, run, contrasts, ACCURATE, SECTION_4_1)


def uniform(contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 12: models whose attention is frozen to uniform are accurate on data like
    their training data."""
    for data, run in UNIFORM.items():
        yield _accurate("12", f"M7, {data} data", run, contrasts, UNIFORM_ACCURATE, FOOTNOTE_4)


def _accurate(claim: str, name: str, run: str, contrasts: pl.DataFrame, bound: float, source: str) -> Gate:
    found, missing = measured(contrasts, contrast="in_distribution", first=run)
    predicate = f"median acc_close of {name} on data like its training data is at least {bound}"
    conditions = (Condition("value", ">=", bound),)
    return Gate(claim, name, predicate, source, conditions, found, missing, Published(bound, form=FLOOR))


def stack_like(contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 4: attention of standard models is not stack-like, nor that of Table 1's."""
    table_1 = {run: f"M8, {cell_name(*cell)}" for cell, run in TABLE_1.items() if cell[-1] == 2}
    for run, name in ({run: MODELS[run] for run in (STANDARD, LINEAR)} | table_1).items():
        where = {"contrast": "stack", "first": run}
        found, missing = measured(contrasts, statistic="stack-like share", **where)
        predicate = (
            f"share of {name} replicas whose last-layer stack_argmax is at least {STACK_LIKE} "
            f"is below {STACK_LIKE_SHARE_BELOW}"
        )
        below = (Condition("value", "<", STACK_LIKE_SHARE_BELOW),)
        yield Gate("4", f"{name}, stack-like share", predicate, SECTION_4_1, below, found, missing)
        found, missing = measured(contrasts, statistic="mean", **where)
        predicate = f"mean last-layer stack_argmax of {name} has an interval below {STACK_LIKE}"
        below = (Condition("hi", "<", STACK_LIKE),)
        yield Gate("4", f"{name}, mean", predicate, SECTION_4_1, below, found, missing)


def _ratio(first: float, second: float) -> Published:
    """Return the ratio of two printed numbers."""
    return Published(first / second, derivation=f"{first:g} / {second:g}")


def variation(variation: pl.DataFrame, tolerance: float) -> Iterator[Gate]:
    """Yield the gates of claim 5: how much attention of standard models varies between initialisations."""
    for run in (STANDARD, LINEAR):
        published = PUBLISHED_VARIATION[run]
        predicate = (
            f"variation of {MODELS[run]} on D4 (last layer, no start token) is {published} ± {tolerance}"
        )
        found, missing = measured(variation, run=run, start_included=False)
        yield Gate(
            "5",
            MODELS[run],
            predicate,
            SECTION_4_1,
            within(published, tolerance),
            found,
            missing,
            published,
        )


def over_random(contrasts: pl.DataFrame, theory: dict[str, Any]) -> Iterator[Gate]:
    """Yield the gates of claim 6: how much attention of standard models varies, as a multiple of random maps."""
    random = theory.get(RANDOM_MAPS.format(PROBE_LENGTH))
    lowest, highest = OVER_RANDOM
    conditions = (Condition("value", ">=", lowest), Condition("value", "<=", highest))
    for run in (STANDARD, LINEAR):
        found, missing = measured(
            contrasts, contrast="variation_over_random", first=run, metric=convention(start=False)
        )
        yield Gate(
            "6",
            MODELS[run],
            f"variation of {MODELS[run]} over that of random causal maps is in [{lowest}, {highest}]",
            SECTION_4_1,
            conditions,
            found,
            missing,
            published=_ratio(PUBLISHED_VARIATION[run], random["bound"]) if random else None,
        )


def minimal(variation: pl.DataFrame, contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 7: a minimal first layer makes maps agree."""
    name, other = MODELS[MINIMAL], MODELS[STANDARD]
    for start in (False, True):
        told = f"start token {'included' if start else 'omitted'}"
        found, missing = measured(variation, run=MINIMAL, start_included=start)
        yield Gate(
            "7",
            f"{name}, {told}",
            f"variation of {name} on D4 ({told}) is below {MINIMAL_BELOW}",
            SECTION_4_1,
            (Condition("value", "<", MINIMAL_BELOW),),
            found,
            missing,
            published=PUBLISHED_VARIATION[MINIMAL],
        )
        found, missing = measured(
            contrasts, contrast="variation_ratio", first=MINIMAL, second=STANDARD, metric=convention(start)
        )
        yield Gate(
            "7",
            f"{name} over {other}, {told}",
            f"variation of {name} over that of {other} ({told}) is below {RATIO_BELOW}, "
            f"its interval below {RATIO_INTERVAL_BELOW}",
            SECTION_4_1,
            (Condition("value", "<", RATIO_BELOW), Condition("hi", "<", RATIO_INTERVAL_BELOW)),
            found,
            missing,
            published=_ratio(PUBLISHED_VARIATION[MINIMAL], PUBLISHED_VARIATION[STANDARD]),
        )


def prefix_ratio(contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 22: trained on prefixes, standard models vary several times more than those
    with a minimal first layer."""
    for run in (PREFIX_STANDARD, PREFIX_STANDARD_ALL):
        for start in (False, True):
            found, missing = measured(
                contrasts,
                contrast="variation_ratio",
                first=run,
                second=PREFIX_MINIMAL,
                metric=convention(start),
            )
            told = f"start token {'included' if start else 'omitted'}"
            yield Gate(
                "22",
                f"{PREFIX_MODELS[run]}, {told}",
                f"variation on D4 ({told}) of {PREFIX_MODELS[run]}, over that of M4, both trained on prefixes, "
                f"is at least {PREFIX_RATIO:g}",
                APPENDIX_D_2,
                (Condition("value", ">=", PREFIX_RATIO),),
                found,
                missing,
                published=_ratio(PUBLISHED_PREFIX_VARIATION["M1"], PUBLISHED_PREFIX_VARIATION["M4"]),
                scale_needed="paper",
            )
