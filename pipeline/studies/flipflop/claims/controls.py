"""Claims 8 to 13 and 17: what changes the errors; of claim 18, what penalties do to models of strings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from pipeline.kit import evidence
from pipeline.kit.conditions import Condition, above, at_most, below
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.flipflop import comparisons
from pipeline.studies.flipflop.claims.common import SECTION
from pipeline.studies.flipflop.comparisons import AMOUNTS, KINDS, OUT
from pipeline.studies.flipflop.names import MIDDLE_EMBED_HALF, MIDDLE_MIXTURE, MIDDLE_SHARP, MIDDLE_SINE
from schemas.claims import OWN

FACTOR_THREE = -math.log10(3)  # a third of the error, in decades
MONOTONE = 0.5  # a rank correlation from which on we call an effect monotone
R4, R5, R6, R7 = (SECTION.format(f"3.5.4, R{n}") for n in (4, 5, 6, 7))
TENTH = Published(-1.0, derivation="an order of magnitude")


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    gate = partial(evidence.gate, context)
    for name in ("dense", "sparse"):
        yield gate("8", f"{name}, tenfold", comparisons.REMOVED[name], at_most(-1.0), R4)
    yield gate("8", "dense, direction", comparisons.REMOVED["dense"], below(0.0), R4)
    for name in OUT:
        middle = comparisons.MIDDLE_CHANGED[MIDDLE_MIXTURE, name]
        yield gate("8", f"{name}, middle-sized, tenfold", middle, at_most(-1.0), R4)
    six = Published(0.24, derivation="6 of 25 models")
    clean = comparisons.MIXTURE_CLEAN
    yield gate("8", "models without error", clean, above(0.0), R4, published=six, size_needed="paper")
    yield gate("8", "largest share", comparisons.MIXTURE_LEAD, above(0.0), R4)
    for run, what in AMOUNTS.items():
        for name, conditions in (("sparse", below(0.0)), ("dense", above(-1.0))):
            yield gate("9", f"{what}, {name}", comparisons.MORE[run, name, "base"], conditions, R5)
        for name in OUT:
            beside = comparisons.MORE[run, name, "mixture"]
            yield gate("9", f"{what}, {name}, beside the mixture", beside, above(0.0), R5)
    flat = Condition("value", ">", -MONOTONE), Condition("value", "<", MONOTONE)
    for (name, field), comparison in comparisons.SIZE.items():
        yield gate("10", f"{name}, {field}", comparison, flat, R5)
    two = Published(-2.0, derivation="two orders of magnitude")
    yield gate("11", "sparse", comparisons.DROPPED, at_most(-1.0), R6, published=two, size_needed="paper")
    yield gate("11", "not without error", comparisons.DROPPED_CLEAN, below(0.5), R6)
    middle = comparisons.MIDDLE_CHANGED[MIDDLE_EMBED_HALF, "sparse"]
    yield gate("11", "sparse, middle-sized", middle, at_most(-1.0), R6, published=two, size_needed="paper")
    yield gate("12", "sinusoidal, middle-sized", comparisons.MIDDLE_CHANGED[MIDDLE_SINE, "dense"], below(0.0), R6)
    middle = comparisons.MIDDLE_CHANGED[MIDDLE_SHARP, "sparse"]
    yield gate("13", "entropy, sparse, middle-sized", middle, at_most(FACTOR_THREE), R7, published=TENTH)
    for name, comparison in comparisons.POSITIONS.items():
        yield gate("12", name, comparison, above(0.0), R6)
    third = at_most(FACTOR_THREE)
    for kind in KINDS:
        sparse = comparisons.PENALISED[kind, "sparse"]
        yield gate("13", f"{kind}, sparse", sparse, third, R7, published=TENTH, size_needed="paper")
        yield gate("13", f"{kind}, dense", comparisons.PENALISED[kind, "dense"], below(0.0), R7, kind=OWN)
        yield gate("18", f"strings, {kind}, weights", comparisons.SHARPER[kind], above(0.0), R7, kind=OWN)
    best = comparisons.BEST_PENALTY
    yield gate("13", "best setting, sparse", best, third, R7, published=TENTH, size_needed="paper")
    yield gate("18", "strings, all settings, weights", comparisons.ALL_SHARPER, above(0.5), R7, kind=OWN)
    yield gate("17", "all settings", comparisons.OPTIMISED, above(0.5), SECTION.format("3.5.6.4"))
