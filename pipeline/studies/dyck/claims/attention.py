"""Claims 3 to 7, 12 and 22 to 25: accuracy in distribution, stack scores, and attention on the probe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import Condition, at_least, at_most, below, within
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.dyck.claims.common import (
    ACCURACIES,
    APPENDIX_C_7,
    APPENDIX_D_2,
    PROBE_LENGTH,
    RANDOM_MAPS,
    SECTION_4_1,
    measured,
)
from pipeline.studies.dyck.claims.table1 import cell_name
from pipeline.studies.dyck.names import (
    ALL_CELLS,
    COMPLETE,
    FACTORS,
    LINEAR,
    LONGER_CELLS,
    MINIMAL,
    MODELS,
    PREFIX,
    PREFIX_MINIMAL,
    PREFIX_MODELS,
    PREFIX_STANDARD,
    PREFIX_STANDARD_ALL,
    PUBLISHED_PREFIX_VARIATION,
    PUBLISHED_VARIATION,
    STACK_CELLS,
    STACK_LIKE,
    STANDARD,
    TABLE_1,
    THEORY_LAYERS,
    UNIFORM,
    WIDE,
    convention,
)
from schemas.claims import FLOOR, OWN

ACCURATE = 0.97  # required of every model (section 4.1, Figure 1, Table 1)
STACK_LIKE_SHARE_BELOW = 0.2
OVER_RANDOM = (0.5, 1.4)
MINIMAL_BELOW = 0.5
RATIO_BELOW, RATIO_INTERVAL_BELOW = 0.25, 0.5
PREFIX_RATIO = 5.0
UNIFORM_ACCURATE = 0.99  # footnote 4
UNSEEN_AT_LEAST = 0.1
FOOTNOTE_4 = "Wen et al. 2023, footnote 4"
_UNLIKE_A_STACK = (Condition("hi", "<", STACK_LIKE),)
_BLOCKS = {"gpt": "block of GPT (M1)", "resln": "block of Table 1 (M8)"}
_DATA = {COMPLETE: "complete strings", PREFIX: "prefixes"}


def in_distribution(contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 3: every model is accurate on data like its training data and, of these, on strings that
    it was not trained on."""
    models = {run: name for run, name in MODELS.items() if run != WIDE}
    models |= {run: f"M8, {cell_name(*cell)}" for cell, run in TABLE_1.items()}
    for run, name in models.items():
        yield _accurate("3", name, run, contrasts, ACCURATE, SECTION_4_1)
    for run, name in models.items():
        measurement, missing = measured(
            contrasts, contrast="in_distribution", first=run, metric="acc_close_unseen"
        )
        measure = f"median {ACCURACIES['acc_close']} by {name} on strings like its training data that are not among it"
        yield Gate(
            "3",
            f"{name}, unseen",
            measure,
            SECTION_4_1,
            at_least(ACCURATE),
            measurement,
            missing,
            kind=OWN,
        )


def unseen(accuracy: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 3 on how many held-out strings training did not show: short ones are few."""
    for data, run in ((COMPLETE, STANDARD), (PREFIX, TABLE_1[2, 4, 2])):
        name = f"{data} data, share of unseen strings"
        rows = accuracy.filter(pl.col("in_distribution"), run=run, replica=0)
        measurement, missing = evidence.one_row(rows, f"{run}: no models at this scale", value="unseen_share")
        measure = (
            f"share of the held-out strings for models trained on {data} strings (k=2, D=4) that is not in the "
            "training corpus, so that accuracy on them can be told"
        )
        enough = at_least(UNSEEN_AT_LEAST)
        yield Gate("3", name, measure, SECTION_4_1, enough, measurement, missing, kind=OWN)


def uniform(contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 12: models whose attention is frozen to uniform are accurate on data like
    their training data."""
    for data, run in UNIFORM.items():
        yield _accurate("12", f"M7, {data} data", run, contrasts, UNIFORM_ACCURATE, FOOTNOTE_4)


def _accurate(
    claim: str, name: str, run: str, contrasts: pl.DataFrame, bound: float, source: str, models: str = ""
) -> Gate:
    """Return the gate ``name`` on the accuracy of a run; ``models`` names these where ``name`` does not."""
    measurement, missing = measured(contrasts, contrast="in_distribution", first=run, metric="acc_close")
    measure = f"median {ACCURACIES['acc_close']} by {models or name} on data like its training data"
    published = Published(bound, form=FLOOR)
    return Gate(claim, name, measure, source, at_least(bound), measurement, missing, published)


def stack_like(contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 4: attention of standard models is not stack-like, nor that of Table 1's."""
    table_1 = {run: f"M8, {cell_name(*cell)}" for cell, run in TABLE_1.items() if cell[-1] == 2}
    for run, name in ({run: MODELS[run] for run in (STANDARD, LINEAR)} | table_1).items():
        yield _stack_like_share("4", name, run, contrasts, SECTION_4_1)
        yield _stack_mean("4", name, run, contrasts, SECTION_4_1)


def _stack_like_share(claim: str, name: str, run: str, contrasts: pl.DataFrame, source: str) -> Gate:
    measurement, missing = measured(contrasts, contrast="stack", statistic="stack-like share", first=run)
    measure = f"share of {name} replicas whose last-layer stack score is at least {STACK_LIKE}"
    few = below(STACK_LIKE_SHARE_BELOW)
    return Gate(claim, f"{name}, stack-like share", measure, source, few, measurement, missing)


def _stack_mean(claim: str, name: str, run: str, contrasts: pl.DataFrame, source: str) -> Gate:
    measurement, missing = measured(contrasts, contrast="stack", statistic="mean", first=run)
    measure = f"mean last-layer stack score of {name}"
    return Gate(claim, f"{name}, mean", measure, source, _UNLIKE_A_STACK, measurement, missing)


def cells(contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 23: attention is not stack-like in any cell of the factorial, of those trained long and
    of those that other runs train longer; over all models, because not all of them are accurate by then."""
    for (k, depth, block, data, length), run in (STACK_CELLS | LONGER_CELLS).items():
        if length == "short":
            continue
        name = f"{block}, {data}, k={k}, D={depth}" + (", trained longer" if length == "longer" else "")
        measurement, missing = measured(contrasts, contrast="stack", statistic="mean on D5", first=run)
        measure = (
            f"mean last-layer stack score on D5 of models with the {_BLOCKS[block]}, trained {length} on "
            f"{_DATA[data]}, k={k}, D={depth}"
        )
        yield Gate("23", name, measure, SECTION_4_1, _UNLIKE_A_STACK, measurement, missing, kind=OWN)


def effects(table: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 24: what makes attention more stack-like, over all cells of the factorial."""
    for factor, (low, high) in FACTORS.items():
        why = "no models at this scale in some cell of the factorial"
        measurement, missing = evidence.one_row(table, why, factor=factor, scope=ALL_CELLS)
        levels = [_BLOCKS.get(level, f"{factor} {level}") for level in (high, low)]
        over = "over all cells with {}, minus {}".format(*levels)
        measure = f"mean last-layer stack score on D5 {over}"
        positive = (Condition("value", ">", 0), Condition("lo", ">", 0))
        yield Gate("24", factor, measure, SECTION_4_1, positive, measurement, missing, kind=OWN)


def theory_layer(contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 25: models of layers (6) are accurate, and their attention is not stack-like."""
    yield _accurate("25", "accuracy", THEORY_LAYERS, contrasts, ACCURATE, APPENDIX_C_7, models="M9")
    yield _stack_like_share("25", "M9", THEORY_LAYERS, contrasts, APPENDIX_C_7)
    yield _stack_mean("25", "M9", THEORY_LAYERS, contrasts, APPENDIX_C_7)


def _ratio(first: float, second: float) -> Published:
    """Return the ratio of two printed numbers."""
    return Published(first / second, derivation=f"{first:g} / {second:g}")


def variation(variation: pl.DataFrame, tolerance: float) -> Iterator[Gate]:
    """Yield the gates of claim 5: how much attention of standard models varies between initialisations."""
    for run in (STANDARD, LINEAR):
        published = PUBLISHED_VARIATION[run]
        measurement, missing = measured(variation, run=run, start_included=False)
        yield Gate(
            "5",
            MODELS[run],
            f"variation of {MODELS[run]} on D4 (last layer, no start token)",
            SECTION_4_1,
            within(published, tolerance),
            measurement,
            missing,
            published,
        )


def over_random(contrasts: pl.DataFrame, theory: dict[str, Any]) -> Iterator[Gate]:
    """Yield the gates of claim 6: how much attention of standard models varies, as a multiple of random maps."""
    random = theory.get(RANDOM_MAPS.format(PROBE_LENGTH))
    lowest, highest = OVER_RANDOM
    conditions = (*at_least(lowest), *at_most(highest))
    for run in (STANDARD, LINEAR):
        measurement, missing = measured(
            contrasts, contrast="variation_over_random", first=run, metric=convention(start=False)
        )
        yield Gate(
            "6",
            MODELS[run],
            f"variation of {MODELS[run]} over that of random causal maps",
            SECTION_4_1,
            conditions,
            measurement,
            missing,
            published=_ratio(PUBLISHED_VARIATION[run], random["bound"]) if random else None,
        )


def minimal(variation: pl.DataFrame, contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 7: a minimal first layer makes maps agree."""
    name, other = MODELS[MINIMAL], MODELS[STANDARD]
    for start in (False, True):
        variant = f"start token {'included' if start else 'omitted'}"
        measurement, missing = measured(variation, run=MINIMAL, start_included=start)
        yield Gate(
            "7",
            f"{name}, {variant}",
            f"variation of {name} on D4 ({variant})",
            SECTION_4_1,
            below(MINIMAL_BELOW),
            measurement,
            missing,
            published=PUBLISHED_VARIATION[MINIMAL],
        )
        measurement, missing = measured(
            contrasts, contrast="variation_ratio", first=MINIMAL, second=STANDARD, metric=convention(start)
        )
        yield Gate(
            "7",
            f"{name} over {other}, {variant}",
            f"variation of {name} over that of {other} ({variant})",
            SECTION_4_1,
            (*below(RATIO_BELOW), Condition("hi", "<", RATIO_INTERVAL_BELOW)),
            measurement,
            missing,
            published=_ratio(PUBLISHED_VARIATION[MINIMAL], PUBLISHED_VARIATION[STANDARD]),
        )


def prefix_ratio(contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 22: trained on prefixes, standard models vary several times more than those
    with a minimal first layer."""
    for run in (PREFIX_STANDARD, PREFIX_STANDARD_ALL):
        for start in (False, True):
            measurement, missing = measured(
                contrasts,
                contrast="variation_ratio",
                first=run,
                second=PREFIX_MINIMAL,
                metric=convention(start),
            )
            variant = f"start token {'included' if start else 'omitted'}"
            yield Gate(
                "22",
                f"{PREFIX_MODELS[run]}, {variant}",
                f"variation on D4 ({variant}) of {PREFIX_MODELS[run]}, over that of M4, both trained on prefixes",
                APPENDIX_D_2,
                at_least(PREFIX_RATIO),
                measurement,
                missing,
                published=_ratio(PUBLISHED_PREFIX_VARIATION["M1"], PUBLISHED_PREFIX_VARIATION["M4"]),
                size_needed="paper",
            )
