"""The claim beyond the source: how fast block dynamics mix, and which masks train a small Transformer best."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from pipeline.kit import evidence, intervals
from pipeline.kit.conditions import Condition, above, within
from pipeline.kit.verdicts import Gate, Measured
from pipeline.studies.parallel.claims.common import CONFIDENCE, NO_ROW
from pipeline.studies.parallel.comparisons import (
    AHEAD,
    ALONE,
    AS_MANY,
    BY_COUPLING,
    CONSTANT,
    COUPLED,
    EVERY,
    EXPECTED,
    FOLLOWS,
    HALVES,
    MORE,
    ONLY_PAIRS,
    OVER_MODES,
    SAME_SIZE,
    SHOWN,
    SLOWEST,
    STRONG_PAIR,
    TRACE,
    UNTRAINED,
)
from pipeline.studies.parallel.names import SOURCE
from schemas.claims import OWN
from schemas.parallel.datasets import TWO_PAIRS
from schemas.parallel.tables import ALIGNED, ALL, MISALIGNED, PAIRS, SINGLES

if TYPE_CHECKING:
    from pipeline.kit.results import Results

CLAIM = "40"
POSITIVE = (Condition("lo", ">", 0.0), Condition("value", ">", 0.0))


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 40."""
    source = SOURCE.format("section 4.1.2, asked of a Transformer")
    asked = {
        "misaligned pairs against aligned pairs": SAME_SIZE[MISALIGNED, ALIGNED],
        **{f"misaligned pairs against aligned pairs, {which}": each for which, each in BY_COUPLING.items()},
        "misaligned pairs against all pairs": SAME_SIZE[MISALIGNED, PAIRS],
        "singles against all pairs": MORE[SINGLES, PAIRS],
        "all pairs against all": MORE[PAIRS, ALL],
        "singles against all pairs, equal predictions": AS_MANY[SINGLES, PAIRS],
        "all pairs against all, equal predictions": AS_MANY[PAIRS, ALL],
        "the constant, sets of pairs": FOLLOWS[CONSTANT, ONLY_PAIRS],
        "the constant, all sets": FOLLOWS[CONSTANT, EVERY],
        "the constant beyond masking more": AHEAD[CONSTANT, ALONE, EVERY],
        "the constant beyond the trace, sets of pairs": AHEAD[CONSTANT, TRACE, ONLY_PAIRS],
    }
    for name, comparison in asked.items():
        yield evidence.gate(context, CLAIM, name, comparison, POSITIVE, source, kind=OWN)
    # What the constant puts first, and the sum over all modes puts within a tenth of the other.
    yield evidence.gate(
        context,
        CLAIM,
        "all pairs against aligned pairs",
        SAME_SIZE[PAIRS, ALIGNED],
        POSITIVE,
        source,
        kind=OWN,
        scale_needed="long",
    )
    sums = SOURCE.format("Theorem 4.1.2 and Lemma 4.1.1, for a model without restrictions")
    for cells in SHOWN:
        for name, comparison, off in (("the sum", EXPECTED[cells], 0.2), ("the slowest mode", SLOWEST[cells], 0.3)):
            yield evidence.gate(context, CLAIM, f"{name}, {cells}", comparison, within(1.0, off), sums, kind=OWN)
    for half, comparison in HALVES.items():
        yield evidence.gate(context, CLAIM, f"the sum, {half}", comparison, within(1.0, 0.2), sums, kind=OWN)
    name = "the sum beyond the constant"
    yield evidence.gate(context, CLAIM, name, AHEAD[OVER_MODES, CONSTANT, EVERY], POSITIVE, sums, kind=OWN)
    yield evidence.gate(context, CLAIM, "training helps", UNTRAINED, above(0.5), source, kind=OWN)
    yield _conditionals(context)


def _conditionals(context: Results) -> Gate:
    """Return the gate on what is learned, without sampling: the masks that sample best need not train best.

    A unit is a repetition; its value is a mean over laws of two coupled pairs with a coupling from `STRONG_PAIR` on.
    """
    laws = context.table("par_scheme").filter(pl.col("strength") >= STRONG_PAIR, family=TWO_PAIRS)["law"].unique()
    models = context.table("par_scheme_model").filter(pl.col("law").is_in(laws.to_list()), k=2)
    by_set = models.group_by("repetition", "scheme", maintain_order=True)
    logs = by_set.agg(error=pl.col("kl_conditional").log().mean()).sort("repetition")
    both = logs.filter(scheme=MISALIGNED).join(logs.filter(scheme=ALIGNED), on="repetition", suffix="_aligned")
    apart = intervals.mean(both["error"] - both["error_aligned"], CONFIDENCE)
    return Gate(
        CLAIM,
        f"misaligned pairs against aligned pairs, {COUPLED}, conditionals alone",
        "logarithm of the divergence of what the Transformer says of masked positions from their law, mean difference: "
        f"misaligned pairs minus aligned pairs, mean over two coupled pairs, {COUPLED}, equal states",
        SOURCE.format("section 4.1.2, asked of a Transformer"),
        POSITIVE,
        Measured.of(apart, CONFIDENCE) if both.height else None,
        NO_ROW,
        kind=OWN,
    )
