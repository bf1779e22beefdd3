"""Claims 3 to 6 and 32: the theory of sparse parity, executed and simulated (Liu 2024, section 4.2.6)."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most, within
from pipeline.kit.evidence import Part
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.distillation.comparisons import (
    ALIGNED_LEAST,
    ALIGNED_OUTSIDE,
    BOTH_STAGES,
    ENDS,
    PRINTED_MEAN,
    PRINTED_SIGNAL,
    PRINTED_SLOPE,
    PRINTED_TENFOLD,
    SECOND_STAGE,
    SLOPE,
    TARGETS,
    TARGETS_RATIO,
)
from schemas.claims import CORRECTED, OWN, STATED

LIU = "Liu 2024, section 4.2.{}"
# Theorem 23 takes a teacher behind stage one for which Corollary 3 holds; from the printed start that is what fails.
FROM_PRINTED_START = "6.1, Corollary 3, on which Theorem 23 rests"

STATEMENTS = {
    "3": "What the proofs compute at the start and behind stage one is exact, where misprints are corrected.",
    "4": "Behind stage one the teacher's outputs correlate with every coordinate of the support, from a start whose "
    "signs agree; from the printed start they shrink as the teacher gets wider, and so do its outputs.",
    "5": "A student that learns from the stage-one teacher sees the support with a number of samples that hardly grows "
    "with d; from labels it takes about d^(k-1).",
    "6": "A student whose first step is on the stage-one teacher learns the parity; one whose first step is on the "
    "final teacher does not.",
    "32": "Printed forms that are wrong are shown to be, and what stands in their place holds.",
}

# Errata of claim 32, and where they are printed.
SLIPS = {
    "size of majority coefficients": "6, Notations",
    "sum of majority coefficients": "6.1, Corollary 3",
    "mean of the majority": "6.1, Corollary 3",
    "sign of Claim 7": "6.1, Claim 7",
    "decay of Lemma 63": "6.1, Lemma 63",
    "start of Lemma 64": "6.1, Lemma 64",
    "Lemma 64 outside the support": "6.1, Lemma 64",
    "batch of Lemma 65": "6.1, Lemma 65",
    "Corollary 4": "6.1, Corollary 4",
    "rule of the tree": "7.3",
    "end of windows": "3.1.1, Definition 25",
    "levels": "3.1.1, Definition 26",
    "causal window": "9, equation 4.100",
    "equation 4.101": "9, equation 4.101",
}
ELSEWHERE = {"sign of Claim 7", "decay of Lemma 63", "rule of the tree"}  # corrected forms that claims 3 and 19 judge
PARTS = {
    "3": {
        "majority": Part("Fourier coefficients of the majority", LIU.format("6, Notations"), OWN),
        "Claim 7": Part("gradient at the start", LIU.format("6.1, Claim 7"), CORRECTED),
        "Lemma 63": Part("weights after a step on the whole population", LIU.format("6.1, Lemma 63"), CORRECTED),
        "Lemma 64, odd": Part("oddness of the stage-one network", LIU.format("6.1, Lemma 64")),
        "student's gradient": Part("gradient of a student's neurons against half of c_j", LIU.format("6.2"), CORRECTED),
    },
    "32": {
        f"{slip}, {form}": Part(what, LIU.format(section), kind)
        for slip, section in SLIPS.items()
        for form, what, kind in (
            ("printed", "the printed form is wrong", OWN),
            ("corrected", "what stands in its place", CORRECTED),
        )
        if form == "printed" or slip not in ELSEWHERE
    }
    | {"all other checks": Part("the theory of sparse parity, and definitions", LIU.format("6"), OWN)},
}


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 3 to 6 and 32."""
    for claim, parts in PARTS.items():
        yield from evidence.part_gates(context.theory(), claim, parts)
    yield from _correlations(context)
    yield from _samples(context)
    yield from _students(context)


def _correlations(context: Results) -> Iterator[Gate]:
    lemma = LIU.format("6.1, Lemma 64")
    for end in ENDS:
        name = f"aligned start, {end} width"
        yield evidence.gate(context, "4", name, ALIGNED_LEAST[end], at_least(1.0), lemma, kind=CORRECTED)
        name = f"aligned start, outside, {end} width"
        yield evidence.gate(context, "4", name, ALIGNED_OUTSIDE[end], at_most(0.25), lemma, kind=OWN)
    yield evidence.gate(context, "4", "printed start, exponent", PRINTED_SLOPE, within(-0.5, 0.15), lemma, kind=OWN)
    yield evidence.gate(context, "4", "printed start", PRINTED_MEAN, at_least(1.0), lemma)
    yield evidence.gate(context, "4", "printed start, signal", PRINTED_SIGNAL, at_least(0.5), lemma, kind=OWN)


def _samples(context: Results) -> Iterator[Gate]:
    theorem = LIU.format("6, Theorem 23")
    printed = Published(3.0, derivation="k - 1 for k = 4, for large d")
    yield evidence.gate(context, "5", "stage-one teacher", SLOPE["aligned"], at_most(0.5), theorem, kind=CORRECTED)
    yield evidence.gate(context, "5", "labels", SLOPE["labels"], within(3.0, 1.0), theorem, published=printed)
    yield evidence.gate(context, "5", "ratio", TARGETS_RATIO, at_least(1000.0), theorem, kind=OWN)
    start = LIU.format(FROM_PRINTED_START)
    yield evidence.gate(context, "5", "printed start", PRINTED_TENFOLD, at_least(0.9), start)
    ratio = context.table("support_recovery").drop_nulls("predicted").select(pl.col("value") / pl.col("predicted"))
    for name, which, value, conditions in (
        ("least", "smallest", column_min("value"), at_least(0.5)),
        ("most", "largest", column_max("value"), at_most(2.0)),
    ):
        measure = (
            "samples over those at which normal noise on the whole population's gradient leaves nine of ten neurons "
            f"right, {which} of all d and targets"
        )
        found = evidence.reduced(ratio, value, "nothing was simulated")
        yield Gate("5", f"prediction, {name}", measure, theorem, conditions, *found, kind=OWN)


def _students(context: Results) -> Iterator[Gate]:
    most = above(0.5)
    for (target, k), comparison in BOTH_STAGES.items():
        section = FROM_PRINTED_START if target == "iid" else "6, Theorem 23"
        kind = CORRECTED if target == "aligned" else STATED
        name = f"{TARGETS[target][0]}, k = {k}"
        yield evidence.gate(context, "6", name, comparison, most, LIU.format(section), kind=kind)
    for column, comparison in SECOND_STAGE.items():
        source = LIU.format("6.1, Lemma 65")
        yield evidence.gate(context, "6", f"stage two, {column}", comparison, most, source, kind=OWN)
