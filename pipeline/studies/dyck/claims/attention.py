"""Claims 3 to 7, 12 and 22 to 25: accuracy in distribution, stack scores, and attention on the probe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most, below, within
from pipeline.kit.evidence import gate
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.dyck.claims.common import APPENDIX_C_7, APPENDIX_D_2, RANDOM_MAPS, SECTION_4_1
from pipeline.studies.dyck.comparisons import (
    ACCURACY,
    EFFECTS,
    NAMES,
    ON_SENTENCES,
    OVER_RANDOM,
    STACK_MEAN,
    STACK_SHARE,
    STUDIED,
    UNLIKE_A_STACK,
    UNSEEN,
    VARIATION,
    VARIATION_RATIO,
)
from pipeline.studies.dyck.names import (
    COMPLETE,
    LINEAR,
    MINIMAL,
    MODELS,
    PREFIX,
    PREFIX_MINIMAL,
    PREFIX_MODELS,
    PREFIX_STANDARD,
    PREFIX_STANDARD_ALL,
    PUBLISHED_PREFIX_VARIATION,
    PUBLISHED_VARIATION,
    STACK_LIKE,
    STANDARD,
    TABLE_1,
    THEORY_LAYERS,
    UNIFORM,
)
from schemas.claims import FLOOR, NOT_RUN, OWN

if TYPE_CHECKING:
    from pipeline.kit.results import Results

ACCURATE = 0.97  # required of every model (section 4.1, Figure 1, Table 1)
FEW, HALF = 0.2, 0.5  # of models; the source says "typically", how few is ours
OVER_RANDOM_LIES = (0.5, 1.4)
MINIMAL_BELOW = 0.5
RATIO_BELOW = 0.25
PREFIX_RATIO = 5.0
UNIFORM_ACCURATE = 0.99  # footnote 4
UNSEEN_AT_LEAST = 0.1
FOOTNOTE_4 = "Wen et al. 2023, footnote 4"


def in_distribution(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 3: every model is accurate on data like its training data and, of these, on strings that
    it was not trained on."""
    for run, name in STUDIED.items():
        yield _accurate(context, "3", name, run, ACCURATE, SECTION_4_1)
    for run, name in STUDIED.items():
        yield gate(context, "3", f"{name}, unseen", UNSEEN[run], at_least(ACCURATE), SECTION_4_1, kind=OWN)


def unseen(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 3 on how many held-out strings training did not show: short ones are few. This is a
    count of strings, whatever models make of them."""
    for data, run in ((COMPLETE, STANDARD), (PREFIX, TABLE_1[2, 4, 2])):
        name = f"{data} data, share of unseen strings"
        rows = context.table("accuracy").filter("in_distribution", run=run, replica=0)
        measurement, missing = evidence.one_row(rows, NOT_RUN, value="unseen_share")
        measure = (
            f"share of the held-out strings for models trained on {data} strings (k=2, D=4) that is not in the "
            "training corpus, so that accuracy on them can be told"
        )
        enough = at_least(UNSEEN_AT_LEAST)
        yield Gate("3", name, measure, SECTION_4_1, enough, measurement, missing, kind=OWN)


def uniform(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 12: models whose attention is frozen to uniform are accurate on data like
    their training data."""
    for run in UNIFORM.values():
        yield _accurate(context, "12", NAMES[run], run, UNIFORM_ACCURATE, FOOTNOTE_4)


def _accurate(context: Results, claim: str, name: str, run: str, bound: float, source: str) -> Gate:
    published = Published(bound, form=FLOOR)
    return gate(context, claim, name, ACCURACY[run], at_least(bound), source, published=published)


def stack_like(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 4: attention of standard models is not stack-like, nor that of Table 1's."""
    for run in UNLIKE_A_STACK:
        yield from _unlike_a_stack(context, "4", run, SECTION_4_1)


def theory_layer(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 25: models of layers (6) are accurate, and their attention is not stack-like."""
    yield _accurate(context, "25", "accuracy", THEORY_LAYERS, ACCURATE, APPENDIX_C_7)
    yield from _unlike_a_stack(context, "25", THEORY_LAYERS, APPENDIX_C_7)


def _unlike_a_stack(context: Results, claim: str, run: str, source: str) -> Iterator[Gate]:
    """Yield the gates that the typical model of a run is not stack-like, that few are, and not on average."""
    name, share = NAMES[run], STACK_SHARE[run]
    yield gate(context, claim, f"{name}, most models", share, below(HALF), source)
    yield gate(context, claim, f"{name}, stack-like share", share, below(FEW), source, kind=OWN)
    yield gate(context, claim, f"{name}, mean", STACK_MEAN[run], below(STACK_LIKE), source)


def cells(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 23: attention is not stack-like in any cell of the factorial, of those trained long and
    of those that other runs train longer; over all models, because not all of them are accurate by then."""
    for cell, comparison in ON_SENTENCES.items():
        k, depth, block, data, length = cell
        if length != "short":
            name = f"{block}, {data}, k={k}, D={depth}" + (", trained longer" if length == "longer" else "")
            yield gate(context, "23", name, comparison, below(STACK_LIKE), SECTION_4_1, kind=OWN)


def effects(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 24: what makes attention more stack-like, over all cells of the factorial."""
    for factor, comparison in EFFECTS.items():
        yield gate(context, "24", factor, comparison, above(0.0), SECTION_4_1, kind=OWN)


def _ratio(first: float, second: float) -> Published:
    """Return the ratio of two printed numbers."""
    return Published(first / second, derivation=f"{first:g} / {second:g}")


def variation(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 5: how much attention of standard models varies between initialisations."""
    for run in (STANDARD, LINEAR):
        published = PUBLISHED_VARIATION[run]
        near = within(published, context.settings.variation_tolerance)
        yield gate(context, "5", MODELS[run], VARIATION[run, False], near, SECTION_4_1, published=published)


def over_random(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 6: how much attention of standard models varies, as a multiple of random maps."""
    random = context.theory().filter(group=RANDOM_MAPS)["bound"].item()
    lowest, highest = OVER_RANDOM_LIES
    conditions = (*at_least(lowest), *at_most(highest))
    for run, comparison in OVER_RANDOM.items():
        published = _ratio(PUBLISHED_VARIATION[run], random)
        yield gate(context, "6", MODELS[run], comparison, conditions, SECTION_4_1, published=published)


def minimal(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 7: a minimal first layer makes maps agree."""
    name, other = MODELS[MINIMAL], MODELS[STANDARD]
    ratio = _ratio(PUBLISHED_VARIATION[MINIMAL], PUBLISHED_VARIATION[STANDARD])
    for start in (False, True):
        variant = _variant(start)
        yield gate(
            context,
            "7",
            f"{name}, {variant}",
            VARIATION[MINIMAL, start],
            below(MINIMAL_BELOW),
            SECTION_4_1,
            published=PUBLISHED_VARIATION[MINIMAL],
        )
        yield gate(
            context,
            "7",
            f"{name} over {other}, {variant}",
            VARIATION_RATIO[MINIMAL, STANDARD, start],
            below(RATIO_BELOW),
            SECTION_4_1,
            published=ratio,
        )


def prefix_ratio(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 22: trained on prefixes, standard models vary several times more than those
    with a minimal first layer."""
    published = _ratio(PUBLISHED_PREFIX_VARIATION["M1"], PUBLISHED_PREFIX_VARIATION["M4"])
    for run in (PREFIX_STANDARD, PREFIX_STANDARD_ALL):
        for start in (False, True):
            yield gate(
                context,
                "22",
                f"{PREFIX_MODELS[run]}, {_variant(start)}",
                VARIATION_RATIO[run, PREFIX_MINIMAL, start],
                at_least(PREFIX_RATIO),
                APPENDIX_D_2,
                published=published,
                size_needed="paper",
            )


def _variant(start: bool) -> str:
    return f"start token {'included' if start else 'omitted'}"
