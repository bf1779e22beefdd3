"""Claims 10 to 17 and 19: what a classifier of pairs learns of a diffusion."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import Condition, above, below, within
from pipeline.kit.evidence import Part
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured
from pipeline.studies.selfsup.diffusion_comparisons import (
    AGAINST_EULER,
    AGAINST_QUADRATIC,
    BENDS,
    CLOSE,
    COARSE,
    COMPLEXITY_RATE,
    DEPENDENCE,
    DRIFT,
    DRIFT_CONTROL,
    DRIFT_SPAN,
    ENDS,
    ENOUGH,
    EQUALLY_CLOSE,
    FINE,
    GAP_APART,
    GAP_ETAS,
    GAP_RATE,
    GAP_RATIO,
    HARMLESS,
    LAW,
    LIMIT_OFFSET,
    LIMIT_SLOPE,
    MORE_DEPENDENT,
    MORE_PAIRS,
    NARROW,
    NEIGHBOURS,
    PREDICTS,
    QUANTITIES,
    RATES,
    SLOPE_ERROR,
    STATIONARY,
    WIDE,
)
from pipeline.studies.selfsup.names import SOURCE
from schemas.claims import CORRECTED, OWN, STATED
from schemas.selfsup.diffusions import CURVATURE, EQ_2_2, LEMMA_4, LEMMA_5, LOCAL, OVERALL, REMARK_1, SCALING, UNCAPPED

STATEMENTS = {
    "10": "The kernel that a fitted classifier implies comes closer to the true one at the rates of a regular problem.",
    "11": "A contrast law that is shifted away from the kernel makes the same excess risk stand for a larger error of "
    "the kernel.",
    "12": "The slope of the conditional mean is recovered.",
    "13": f"Over a time span of {DRIFT_SPAN:,.0f}, observations every {FINE:g} do not give a better drift than every "
    f"{COARSE:g}, dependent or not.",
    "14": "The generalisation gap falls with the time span; pairs of a trajectory that is observed often narrow it by "
    "less than as many independent pairs, and the more so the more often it is observed.",
    "15": "Lemma 1, Theorem 2 and Eq. 2.32 hold on random instances, Lemmas 4 and 5 in corrected form; the envelope of "
    "Lemma 6 holds for an Ornstein-Uhlenbeck process.",
    "16": "The second factor of Theorem 3's proof and the height of the kernel grow as the interval falls, by the "
    "powers -d/2.",
    "17": f"For a non-linear diffusion a neural classifier of {ENOUGH:,} pairs or more finds a better kernel than "
    "Euler's, and than a log-quadratic classifier of the same pairs.",
    "19": "It is the excess of the kernel over the noise that makes recovery hard, more than the excess of the noise "
    f"over the kernel: noise up to {WIDE:g} times as wide as the process does little harm, far wider noise does some.",
}
E2, THEOREM_1, THEOREM_2 = (SOURCE.format(what) for what in ("Eq. 2.12", "Theorem 1", "Theorem 2"))
# "though decreasing eta gives more samples, the samples will be more dependent and hence less useful"
AFTER_THEOREM_1 = SOURCE.format("section 2.1.1.4, after Theorem 1")
HALF = within(-0.5, 0.1)  # of a rate of -1/2
RANGES = {"kl": (-1.5, -0.7), "exc": (-1.3, -0.8), "l1": (-0.65, -0.38)}
INEQUALITIES = {
    CURVATURE: ("r'' is at least 2/(1 + c_q)^5", SOURCE.format("Eq. 2.26"), OWN),
    LOCAL: ("Theorem 2", THEOREM_2, STATED),
    UNCAPPED: ("Theorem 2 without its cap on p/p*", THEOREM_2, OWN),
    OVERALL: ("Eq. 2.32", SOURCE.format("Eq. 2.32"), STATED),
    REMARK_1: ("Remark 1", SOURCE.format("Remark 1"), STATED),
    LEMMA_4: ("Lemma 4, corrected", SOURCE.format("Lemma 4"), CORRECTED),
    LEMMA_5: ("Lemma 5, for the mean and for z = 0", SOURCE.format("Lemma 5"), CORRECTED),
    EQ_2_2: ("Eq. 2.2, corrected", SOURCE.format("Eq. 2.2"), CORRECTED),
    SCALING: ("slopes of Eq. 2.32's second factor", SOURCE.format("Theorem 3"), OWN),
}
_PARTS = {
    "15": {
        "identities": Part("Lemma 1, Eqs. 2.2 to 2.32", SOURCE.format("section 2.1"), OWN),
        "mixing": Part("mixing, B, kernels", SOURCE.format("section 2.1.2.1"), OWN),
        "lemma 4": Part("Lemma 4, corrected", SOURCE.format("Lemma 4"), CORRECTED),
        "lemma 5": Part("Lemma 5, for the mean and for z = 0", SOURCE.format("Lemma 5"), CORRECTED),
    },
    "16": {
        "scaling": Part("the second factor of Eq. 2.32", SOURCE.format("Theorem 3"), OWN),
        "height": Part("height of the kernel", SOURCE.format("Lemma 6"), OWN),
    },
}


def between(low: float, high: float) -> tuple[Condition, Condition]:
    """Return the conditions that the value lies in [low, high]."""
    return Condition("value", ">=", low), Condition("value", "<=", high)


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 10 to 17, and of claim 19.

    The source prints no measurement. What it says of directions is stated; bars are own checks.
    """
    yield from _recovery(context)
    yield from _spans(context)
    yield from _inequalities(context)
    for claim, parts in _PARTS.items():
        yield from evidence.part_gates(context.theory(), claim, parts)
    yield from _network(context)
    yield from _closeness(context)


def _recovery(context: Results) -> Iterator[Gate]:
    for name, comparison in RATES.items():
        yield evidence.gate(context, "10", QUANTITIES[name], comparison, between(*RANGES[name]), E2, kind=OWN)
    for (far, near), comparison in NEIGHBOURS.items():
        yield evidence.gate(context, "11", f"shift {far} against {near}", comparison, above(1), THEOREM_2)
    yield evidence.gate(context, "11", "KL, from end to end", ENDS["kl"], above(20), THEOREM_2, kind=OWN)
    yield evidence.gate(context, "11", "excess risk, from end to end", ENDS["exc"], below(2), THEOREM_2, kind=OWN)
    for m, comparison in SLOPE_ERROR.items():
        yield evidence.gate(context, "12", f"m = {m}", comparison, below(0.03), E2, kind=OWN)


def _spans(context: Results) -> Iterator[Gate]:
    yield evidence.gate(context, "13", "drift", DRIFT, above(0.9), THEOREM_1, kind=OWN)
    # The control: what holds of independent pairs as well says nothing of their dependence.
    yield evidence.gate(context, "13", "drift, independent pairs", DRIFT_CONTROL, above(0.9), THEOREM_1, kind=OWN)
    for eta, comparison in GAP_RATE.items():
        yield evidence.gate(
            context, "14", f"rate in T, eta = {eta:g}", comparison, within(-0.5, 0.1), THEOREM_1, kind=OWN
        )
    finest, widest = GAP_ETAS[0], GAP_ETAS[-1]
    name = f"against independent pairs, eta = {finest:g}"
    yield evidence.gate(context, "14", name, DEPENDENCE[finest], above(1), AFTER_THEOREM_1)
    for eta in GAP_ETAS[1:]:
        yield evidence.gate(
            context,
            "14",
            f"against independent pairs, eta = {eta:g}",
            DEPENDENCE[eta],
            above(1),
            AFTER_THEOREM_1,
            kind=OWN,
        )
    name = f"the same, eta = {finest:g} against {widest:g}"
    yield evidence.gate(context, "14", name, MORE_DEPENDENT, above(1), AFTER_THEOREM_1)
    longest = max(GAP_RATIO)  # were the span all that counts, it would be 1
    name = f"pairs count as well, T = {longest:g}"
    yield evidence.gate(context, "14", name, GAP_RATIO[longest], above(1), THEOREM_1, kind=OWN)
    # As many pairs at any interval would do as well, were the span all that counts. Independent pairs are the control.
    for what, ratios in (("", GAP_RATIO), (", independent pairs", GAP_APART)):
        for span, comparison in ratios.items():
            name = f"Phi of eta = {widest:g} against {finest:g}, T = {span:g}{what}"
            yield evidence.gate(context, "14", name, comparison, below(3), THEOREM_1, kind=OWN)
    # Of a finite class the rate is a theorem: this checks the random signs.
    source = SOURCE.format("Assumption 4")
    yield evidence.gate(
        context, "14", "Rademacher complexity by random signs", COMPLEXITY_RATE, within(-0.5, 0.1), source, kind=OWN
    )


def _inequalities(context: Results) -> Iterator[Gate]:
    table = context.table("sde_bounds")
    for check, (name, source, kind) in INEQUALITIES.items():
        rows = table.filter(pl.col("expected"), check=check)
        violated = Measured(float((~rows["holds"]).sum()), n=rows.height)
        yield Gate(
            "16" if check == SCALING else "15",
            name,
            f"random or listed instances that violate it ({name})",
            source,
            within(0, 0),
            violated if rows.height else None,
            "none was drawn",
            kind=kind,
        )
    printed = table.filter(~pl.col("expected"))
    for name, rows, what in (
        ("printed Lemma 5 and Eq. 2.2", printed.filter(pl.col("check") != LEMMA_4), "the printed form"),
        ("printed Lemma 4", printed.filter(check=LEMMA_4), "beta of pairs at most that of points"),
    ):
        holding = Measured(float(rows["holds"].sum()), n=rows.height) if rows.height else None
        source = SOURCE.format(name.removeprefix("printed "))
        words = f"instances in which {what} does hold"
        yield Gate("15", name, words, source, within(0, 0), holding, "none was drawn", kind=OWN)


def _network(context: Results) -> Iterator[Gate]:
    source = SOURCE.format("section 2.1")
    for m, comparison in AGAINST_EULER.items():
        bar = below(1) if m >= ENOUGH else above(1)
        yield evidence.gate(context, "17", f"against Euler, m = {m}", comparison, bar, source, kind=OWN)
    for m, comparison in AGAINST_QUADRATIC.items():
        bar = below(1) if m >= ENOUGH else above(1)
        name = f"against a log-quadratic classifier, m = {m}"
        yield evidence.gate(context, "17", name, comparison, bar, source, kind=OWN)
    for (more, fewer), comparison in MORE_PAIRS.items():
        yield evidence.gate(context, "17", f"{more} against {fewer} pairs", comparison, below(1), source, kind=OWN)
    yield evidence.gate(context, "17", "the most pairs", CLOSE, below(0.002), source, kind=OWN, scale_needed="paper")


def _closeness(context: Results) -> Iterator[Gate]:
    source = SOURCE.format("Eq. 2.4, Theorem 2")
    gates = {
        "a wide law": (HARMLESS, below(2)),
        "shifted against wide, equally close from both sides": (EQUALLY_CLOSE, above(2)),
        "the law of one-sided closeness": (LAW, above(0)),
        **{f"prediction against {rival}": (comparison, below(0)) for rival, comparison in PREDICTS.items()},
        **{f"N({shift}, {NARROW**2:g}), beside the line": (each, below(0)) for shift, each in BENDS.items()},
        "limit law, slope": (LIMIT_SLOPE, within(1, 0.15)),
        "limit law, offset": (LIMIT_OFFSET, within(0, 0.3)),
    }
    for name, (comparison, bar) in gates.items():
        yield evidence.gate(context, "19", name, comparison, bar, source, kind=OWN)
    yield from _widths(context.table("sde_widths"), source)


def _widths(table: pl.DataFrame, source: str) -> Iterator[Gate]:
    """Yield the gates of claim 19 on what wide noise costs in the limit."""
    measure = "limit of m KL for q = N(0, sd^2) over that for q = {}, {} of the intervals, sd = {}"
    widest = max(table["sd_q"].to_list(), default=WIDE)
    for name, sd, extreme, which, bar in (
        ("a wide law in the limit", WIDE, column_max("over"), "largest", below(2)),
        ("a far wider law in the limit", widest, column_min("over"), "smallest", above(2)),
    ):
        rows = table.filter(pl.col("sd_q") == sd)
        words = measure.format(STATIONARY, which, f"{sd:g}")
        yield Gate("19", name, words, source, bar, *evidence.reduced(rows, extreme, "no such width"), kind=OWN)
