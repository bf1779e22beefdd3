"""Claims 10 to 14: sampled Gaussians (Figure 4.2, whose orderings are published, not its numbers)."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, below, within
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.nce.claims.common import SOURCE
from pipeline.studies.nce.comparisons import (
    AT_ETA,
    BOTH,
    BY_RULE,
    EXPONENTIAL,
    FRACTION,
    LARGE,
    LARGE_STEP,
    NORMALISED,
    ONE,
    ORDER,
    RULES,
    SIXTEEN,
    STANDARD,
    STANDARD_STEP,
)
from schemas.claims import OWN
from schemas.nce.tables import NCE, NGD, S_BEST, S_DIST, S_LOSS

FIGURE = SOURCE.format("Figure 4.2")


def matched(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 10 and of the first part of claim 12.

    At each step size, eNCE-NGD comes closer than NCE-NGD, and that closer than NCE-GD. The source compares at selected
    step sizes alone.
    """
    for (dim, eta, pair), comparison in AT_ETA.items():
        gate = f"eta = {eta:g}: {pair[0]} against {pair[1]}"
        yield evidence.gate(context, "10" if dim == ONE else "12", gate, comparison, below(0), FIGURE, kind=OWN)


def selected(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 11, 12 and 14: how close the methods come at step sizes that a rule selects.

    Claim 14 is the published ordering under the rule that the text states. A loss on fresh samples is no
    distance, so the chapter expects that this rule may break the ordering, and wants that shown.
    """
    for rule, prefix in ((S_LOSS, ""), (S_BEST, "lowest during the run: ")):
        for pair in ORDER:
            gate = f"{prefix}{pair[0]} against {pair[1]}"
            yield evidence.gate(context, "11", gate, BY_RULE[ONE, rule, pair], below(0), FIGURE)
        yield _started(context, rule, f"{prefix}has left the start: {NORMALISED[0]}")
    for pair in ORDER:
        gate = f"smallest distances: {pair[0]} against {pair[1]}"
        yield evidence.gate(context, "11", gate, BY_RULE[ONE, S_DIST, pair], below(0), FIGURE, kind=OWN)
    yield evidence.gate(context, "11", "ratio", FRACTION, below(0.5), FIGURE, kind=OWN)
    for pair in (BOTH, NORMALISED, EXPONENTIAL):
        gate = f"smallest distances: {pair[0]} against {pair[1]}"
        yield evidence.gate(context, "12", gate, BY_RULE[SIXTEEN, S_DIST, pair], below(0), FIGURE)
    apart, source = within(0, context.settings.comparable), SOURCE.format("section 4.1.2")
    yield evidence.gate(context, "12", "comparable", BY_RULE[SIXTEEN, S_DIST, EXPONENTIAL], apart, source)
    yield evidence.gate(context, "14", "lowest fresh loss", BY_RULE[SIXTEEN, S_LOSS, NORMALISED], below(0), FIGURE)


def _started(context: Results, rule: str, gate: str) -> Gate:
    """Return the gate that NCE-NGD, at the step size of ``rule``, has come nearer than it began, in one dimension.

    A loss on separated samples is least far beyond the optimum, so that a rule by losses may choose so large a step
    that the start stays the nearest point: then the smallest distance is that of the start, the same for every seed.
    """
    table = context.table("gauss_selected").filter(dim=ONE, loss=NCE, optimizer=NGD, rule=rule)
    rows = table.filter(pl.col("n") == pl.col("n").max())
    words = (
        f"standard deviation over seeds of the smallest distance of {NORMALISED[0]}, {ONE}-d, {RULES[rule]}; 0: no "
        "seed has come nearer than its start"
    )
    found = evidence.one_row(rows.select(value="sd_min_dist"), "not run at this scale")
    return Gate("11", gate, words, FIGURE, above(0), *found, kind=OWN)


def standard_steps(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 13: at standard step sizes GD hardly moves in 16 dimensions."""
    source = SOURCE.format("section 4.1.6")
    yield evidence.gate(context, "13", f"NCE-GD, eta <= {STANDARD_STEP:g}", STANDARD, above(16.5), source)
    yield evidence.gate(context, "13", f"NCE-NGD, eta = {LARGE_STEP:g}", LARGE, below(2.5), source)
