"""Claims 3 to 6 and 32: the theory of sparse parity, executed and simulated (Liu 2024, section 4.2.6)."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most, within
from pipeline.kit.evidence import Evidence
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured, Published
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
from pipeline.studies.distillation.names import SPARSE_PARITY
from schemas.claims import CORRECTED, OWN, STATED

LIU = "Liu 2024, section 4.2.{}"
EXACT = 1e-12
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
}  # fmt: skip

# Gates of claim 3: checks whose largest error is judged, what they say, section, kind.
IDENTITIES = {
    "majority": (r"^majority\.coefficients$", "Fourier coefficients of the majority", "6, Notations", OWN),
    "Claim 7": (r"^claim-7\.(start|corrected)$", "gradient at the start", "6.1, Claim 7", CORRECTED),
    "Lemma 63": (r"^lemma-63\.(corrected|sizes)$", "weights after a step on the whole population", "6.1, Lemma 63",
                 CORRECTED),
    "Lemma 64, odd": (r"^lemma-64\.(odd|even)$", "oddness of the stage-one network", "6.1, Lemma 64", STATED),
    "student's gradient": (r"^corollary-3\.(half|majority|same)$", "gradient of a student's neurons "
                           "against half of c_j", "6.2", CORRECTED),
}  # fmt: skip
ERRATA = {
    "size of majority coefficients": ("majority-size", "6, Notations"),
    "sum of majority coefficients": ("corollary-3-sum", "6.1, Corollary 3"),
    "mean of the majority": ("majority-mean", "6.1, Corollary 3"),
    "sign of Claim 7": ("claim-7-sign", "6.1, Claim 7"),
    "decay of Lemma 63": ("lemma-63-decay", "6.1, Lemma 63"),
    "start of Lemma 64": ("lemma-64-start", "6.1, Lemma 64"),
    "Lemma 64 outside the support": ("lemma-64-outside", "6.1, Lemma 64"),
    "batch of Lemma 65": ("lemma-65-batch", "6.1, Lemma 65"),
    "Corollary 4": ("corollary-4-output", "6.1, Corollary 4"),
    "rule of the tree": ("tree-rule", "7.3"),
    "end of windows": ("window-end", "3.1.1, Definition 25"),
    "levels": ("level-count", "3.1.1, Definition 26"),
    "causal window": ("causal-window", "9, equation 4.100"),
    "equation 4.101": ("equation-4.101", "9, equation 4.101"),
    "grid of splits": ("grid", "8.5"),
}
# What other gates judge: the identities of claim 3, and the classes of the tree in claim 19.
ELSEWHERE = "|".join([*(pattern for pattern, *_ in IDENTITIES.values()), r"^tree\.corrected$"])
WITHOUT_GATE = {
    "sign of Claim 7, corrected", "decay of Lemma 63, corrected", "rule of the tree, corrected",  # judged elsewhere
    "grid of splits, printed", "grid of splits, corrected",  # two printed numbers, whose order no run can change
}  # fmt: skip


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 3 to 6 and 32."""
    rows = context.theory().filter(pl.col("theory").is_in(SPARSE_PARITY))
    yield from _identities(rows)
    yield from _correlations(context)
    yield from _samples(context)
    yield from _students(context)
    yield from _errata(rows)


def _identities(rows: pl.DataFrame) -> Iterator[Gate]:
    for gate, (pattern, what, section, kind) in IDENTITIES.items():
        yield Gate(
            "3",
            gate,
            f"{what}, largest error",
            LIU.format(section),
            at_most(EXACT),
            *evidence.checks(rows, pattern, column_max("measured")),
            kind=kind,
        )


def _correlations(context: Results) -> Iterator[Gate]:
    lemma = LIU.format("6.1, Lemma 64")
    for end in ENDS:
        name = f"aligned start, {end} width"
        yield evidence.gate(context, "4", name, ALIGNED_LEAST[end], at_least(1.0), lemma, kind=CORRECTED)
        name = f"aligned start, outside, {end} width"
        yield evidence.gate(context, "4", name, ALIGNED_OUTSIDE[end], at_most(0.25), lemma, kind=OWN)
    yield evidence.gate(
        context, "4", "printed start, exponent", PRINTED_SLOPE, within(-0.5, 0.15), lemma, kind=OWN
    )
    yield evidence.gate(context, "4", "printed start", PRINTED_MEAN, at_least(1.0), lemma)
    yield evidence.gate(context, "4", "printed start, signal", PRINTED_SIGNAL, at_least(0.5), lemma, kind=OWN)


def _samples(context: Results) -> Iterator[Gate]:
    theorem = LIU.format("6, Theorem 23")
    printed = Published(3.0, derivation="k - 1 for k = 4, for large d")
    yield evidence.gate(
        context, "5", "stage-one teacher", SLOPE["aligned"], at_most(0.5), theorem, kind=CORRECTED
    )
    yield evidence.gate(context, "5", "labels", SLOPE["labels"], within(3.0, 1.0), theorem, published=printed)
    yield evidence.gate(context, "5", "ratio", TARGETS_RATIO, at_least(1000.0), theorem, kind=OWN)
    start = LIU.format(FROM_PRINTED_START)
    yield evidence.gate(context, "5", "printed start", PRINTED_TENFOLD, at_least(0.9), start)
    ratio = (
        context.table("support_recovery")
        .drop_nulls("predicted")
        .select(pl.col("value") / pl.col("predicted"))
    )
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


def _errata(rows: pl.DataFrame) -> Iterator[Gate]:
    none = at_most(0.0)
    rows = rows.filter(~pl.col("check").str.contains(ELSEWHERE))
    for name, (erratum, section) in ERRATA.items():
        every = rows.filter(erratum=f"distillation-{erratum}")
        for form, what, kind in (
            ("printed", "number of checks meant to show the slip that do not show it", OWN),
            ("corrected", "number of checks that do not hold", CORRECTED),
        ):
            gate = f"{name}, {form}"
            if gate not in WITHOUT_GATE:
                failing = _failing(every.filter(form=form), name)
                yield Gate("32", gate, what, LIU.format(section), none, *failing, kind=kind)
    others = rows.filter((pl.col("form") == "") | (pl.col("erratum") == "distillation-grid"))
    failing = _failing(others, "theory")
    what = "number of checks that do not hold"
    yield Gate("32", "all other checks", what, LIU.format("6"), none, *failing, kind=OWN)


def _failing(rows: pl.DataFrame, name: str) -> Evidence:
    """Return how many of the checks do not hold; one that is not defined does not."""
    if not rows.height:
        return None, f"there are no checks of {name}"
    holds = rows["passed"] & rows["measured"].is_not_nan() & rows["measured"].is_not_null()
    return Measured(float((~holds.fill_null(False)).sum()), n=rows.height), ""
