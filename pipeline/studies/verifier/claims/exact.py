"""Claims 1 to 8 and 32: what is exact, simulated beside exact numbers, or printed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import Condition, above, at_least, at_most, below, within
from pipeline.kit.evidence import Part, reduced
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.verifier import checks
from pipeline.studies.verifier.names import PRINTED
from schemas.claims import CEILING, CORRECTED, FLOOR, OWN, STATED
from schemas.verifier.theory_tables import (
    ARGMAX,
    AWARE,
    BIAS,
    FIXED,
    IID,
    PLAIN,
    RANDOM,
    REJECTION,
    SAMPLE,
    SAMPLING,
    SCAN,
    TOKENWISE,
)

if TYPE_CHECKING:
    from pipeline.kit.results import Results

STATEMENTS = {
    "1": "To produce one string of D bits takes 2^D D calls without a verifier, and 2 D with one.",
    "2": "Without a verifier, to find what an oracle hides takes a number of calls that is exponential in D.",
    "3": "To solve a knapsack is hard without a verifier, and takes 2 calls an item with one.",
    "4": "Tokenwise rejection with a perfect verifier does not sample from the restricted distribution.",
    "5": "With a perfect verifier on independent errors, greedy refills make Algorithm 1 right more often.",
    "6": "The walk of Algorithm 2 mixes fast, with a mass of order 1/H at its leaves, whose law is pi*.",
    "7": "Errors of the value grow with length under action-level rejection, and hardly under Algorithm 2.",
    "8": "Walks that are taken follow the exact law of their output rule.",
    "32": "The printed tables agree with each other, with their captions and with the text.",
}
PLACE = "Li 2025, {}"
PARTS = {
    "1": {checks.POWERS: Part("expected calls from the laws", PLACE.format("Proposition 3.1.1"), STATED)},
    "2": {
        checks.BOUND: Part("the least number of queries", PLACE.format("Theorem 3.1.1"), CORRECTED),
        checks.STUCK: Part("what a verifier of A alone is worth", PLACE.format("section 3.1.3"), OWN),
    },
    "3": {
        checks.PROGRAM: Part("the dynamic program as a verifier", PLACE.format("section 3.5.1"), OWN),
        checks.GREEDY: Part("greedy on superincreasing weights", PLACE.format("section 3.5.1"), STATED),
    },
    "4": {checks.LAW: Part("the law in closed form", PLACE.format("Proposition 3.1.2"), CORRECTED)},
    "5": {checks.COIN: Part("closed forms over all draws", PLACE.format("Algorithm 1"), OWN)},
    "6": {
        checks.LEAVES: Part("the law of leaves for any values", PLACE.format("section 3.3.1, property (3)"), STATED),
        checks.SPEED: Part("conductance and gap", PLACE.format("section 3.3.1, property (1)"), OWN),
        checks.OUTPUTS: Part("a node of the path at random", PLACE.format("Algorithm 2, line 9"), OWN),
        checks.LAZY: Part("what laziness is for", PLACE.format("section 3.3.1, footnote 12"), CORRECTED),
        checks.COUNTS: Part("the walk that counts solutions", PLACE.format("section 3.3.1, footnote 14"), STATED),
    },
    "7": {checks.POINTWISE: Part("a bound on every leaf", PLACE.format("section 3.3"), OWN)},
    "32": {
        checks.SHARED: Part("cells that two tables share", PLACE.format("section 3.2"), STATED),
        checks.SPREADS: Part("what printed spreads can be", PLACE.format("Tables 3.3, 3.5, 3.16"), CORRECTED),
        checks.ROWS: Part("rows under a wrong setting", PLACE.format("Tables 3.9, 3.10, 3.12"), CORRECTED),
        checks.WORDS: Part("what captions and text say", PLACE.format("section 3.2"), CORRECTED),
        checks.PROMPTS: Part("numbers of prompts", PLACE.format("Tables 3.1, 3.2"), OWN),
    },
}
ERRORS = 4.0  # standard errors that a simulation may be off
RATIO = 0.8  # of 2^(D - 1), claim 1
EXACT = 1e-12
MOST_CALLS = 38400.0  # section 3.2.2.1, but for block best-of-n
SLOPE = 0.05  # by which the logarithm of queries may miss 1 a bit
ASYMPTOTIC = 4  # D from which the ratio to the printed bound is near 1/2
AMPLIFIED, AT = 0.3, 10  # eps and H of claim 7
SHOWN_MORE = 3.0  # by which rejection is farther away there
SATURATED = (160, 320)  # H between which the divergence of the first leaf hardly grows
NOT_THERE = "no such size in params/verifier/experiments.yaml"
OFF = "largest distance from what is expected, in standard errors"


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 1 to 8 and 32."""
    theory = context.theory()
    for claim, parts in PARTS.items():
        yield from evidence.part_gates(theory, claim, parts)
    yield from _powers(context.table("theory_queries"))
    yield from _parity(context.table("parity_minimax"))
    yield from _knapsacks(context.table("knapsack_instances"))
    yield from _bias(context.table("trs_distribution"))
    yield from _coin(context.table("coin_backtrack"))
    yield from _chain(context.table("vgb_chain"), context.table("vgb_sj"))
    yield from _amplification(context.table("vgb_amplification"))
    yield from _simulated(context.table("vgb_sim"))
    yield from _words(theory)


def off(found: str, expected: str, error: str) -> pl.Expr:
    """Return how far a simulation is off, in standard errors, largest: 0 where it is exact, infinite where it
    is not but has no error; NaN if a number is missing."""
    apart = (pl.col(found) - pl.col(expected)).abs()
    return column_max(pl.when(apart == 0).then(0.0).otherwise(apart / pl.col(error)))


def _powers(table: pl.DataFrame) -> Iterator[Gate]:
    source = PLACE.format("Proposition 3.1.1")
    for algorithm in (REJECTION, TOKENWISE):
        found = reduced(table.filter(algorithm=algorithm), off("mean_calls", "expected_calls", "se_calls"), NOT_THERE)
        yield Gate("1", f"{algorithm}, simulated", f"mean calls: {OFF}", source, at_most(ERRORS), *found)
    pivot = table.filter(pl.col("D") >= ASYMPTOTIC).pivot("algorithm", index="D", values="mean_calls")
    if pivot.height:
        pivot = pivot.with_columns(pl.col(REJECTION) / pl.col(TOKENWISE) / 2.0 ** (pl.col("D") - 1))
    yield Gate(
        "1",
        "rejection over tokenwise",
        f"mean calls of the first over those of the second, over 2^(D - 1), smallest for D >= {ASYMPTOTIC}",
        source,
        at_least(RATIO),
        *reduced(pivot, column_min(REJECTION) if pivot.height else pl.lit(None), NOT_THERE),
    )
    scans = table.filter(algorithm=SCAN).select(pl.col("verifier_calls") / (2 * pl.col("D")))
    yield Gate(
        "1",
        "scan of the verifier",
        "strings that a scan asks the verifier of, over |Sigma| D, largest",
        PLACE.format("section 3.1.3"),
        at_most(1),
        *reduced(scans, column_max("verifier_calls"), NOT_THERE),
    )


def _parity(table: pl.DataFrame) -> Iterator[Gate]:
    source, order = PLACE.format("Theorem 3.1.1"), table.filter(searcher=RANDOM).sort("D")
    share = pl.col("mean_queries") / pl.col("printed_bound")
    apart = column_max((pl.col("mean_queries") - pl.col("closed_form")).abs())
    yield Gate(
        "2",
        "exponential",
        "log2 of the expected queries of the best searcher, for each bit of the last step of D",
        source,
        within(1, SLOPE),
        *reduced(order, _slope(), "fewer than two D in params/verifier/experiments.yaml", 2),
    )
    yield Gate(
        "2",
        "printed constant",
        "expected queries of the best searcher over 2^(D - 1), smallest",
        source,
        at_least(1),
        *reduced(order, column_min(share), NOT_THERE),
        published=Published(1.0, form=FLOOR),
    )
    yield Gate(
        "2",
        "corrected constant",
        "expected queries of the best searcher minus (N + 1)/2 - 1/N, largest difference",
        source,
        at_most(1e-9),
        *reduced(order, apart, NOT_THERE),
        kind=CORRECTED,
    )
    large = order.filter(pl.col("D") >= ASYMPTOTIC)
    for name, value in (("largest", column_max(share)), ("smallest", column_min(share))):
        yield Gate(
            "2",
            f"half of the printed constant, {name}",
            f"expected queries of the best searcher over 2^(D - 1), {name} for D >= {ASYMPTOTIC}",
            source,
            (Condition("value", ">=", 0.5), Condition("value", "<=", 0.57)),
            *reduced(large, value, NOT_THERE),
            kind=CORRECTED,
        )
    fixed = column_max(pl.col("worst_queries") / pl.col("printed_bound"))
    yield Gate(
        "2",
        "worst case of a fixed order",
        "queries for the prefix that it asks last, over 2^(D - 1), largest",
        source,
        at_most(1),
        *reduced(table.filter(searcher=FIXED), fixed, NOT_THERE),
        kind=CORRECTED,
    )
    for searcher in (SAMPLING, AWARE):
        found = reduced(table.filter(searcher=searcher), off("mean_queries", "closed_form", "se_queries"), NOT_THERE)
        yield Gate("2", searcher, f"mean calls: {OFF}", source, at_most(ERRORS), *found, kind=OWN)
    stuck = table.filter(searcher=PLAIN).with_columns(
        error=(pl.col("timeout_closed") * (1 - pl.col("timeout_closed")) / pl.col("trials")).sqrt()
    )
    yield Gate(
        "2",
        PLAIN,
        f"share of trials that never end: {OFF}, 1 - 2^-(D - 1)",
        PLACE.format("Definitions 3.1.3, 3.1.5"),
        at_most(ERRORS),
        *reduced(stuck, off("timeout_share", "timeout_closed", "error"), NOT_THERE),
        kind=OWN,
    )


def _slope() -> pl.Expr:
    """Return the change of log2 of the last two rows, for each D."""
    rise = pl.col("mean_queries").log(2).diff().last()
    return rise / pl.col("D").diff().last()


def _knapsacks(table: pl.DataFrame) -> Iterator[Gate]:
    source, solved = PLACE.format("Theorem 3.1.2"), table.filter(pl.col("n_solutions") > 0)
    yield Gate(
        "3",
        "rejection sampling",
        f"mean calls: {OFF}, D 2^D over the number of solutions",
        source,
        at_most(ERRORS),
        *reduced(solved, off("rs_mean", "rs_expected", "rs_se"), NOT_THERE),
        kind=OWN,
    )
    most = column_max((pl.col("trs_mean") - 2 * pl.col("D")) / pl.col("trs_se"))
    yield Gate(
        "3",
        "tokenwise, at most 2 D",
        "mean calls with the dynamic program as a verifier minus 2 D, largest, in standard errors",
        source,
        at_most(ERRORS),
        *reduced(solved, most, NOT_THERE),
        kind=OWN,
    )
    least = column_min(pl.col("trs_mean") / pl.col("D"))
    yield Gate(
        "3",
        "tokenwise, at least D",
        "mean calls with it over D, smallest",
        source,
        at_least(1),
        *reduced(solved, least, NOT_THERE),
        kind=OWN,
    )
    yield Gate(
        "3",
        "tokenwise, simulated",
        f"mean calls with it: {OFF}",
        source,
        at_most(ERRORS),
        *reduced(solved, off("trs_mean", "trs_expected", "trs_se"), NOT_THERE),
        kind=OWN,
    )
    ordered = table.filter("superincreasing")
    right = pl.col("greedy_ok").cast(pl.Float64)
    yield Gate(
        "3",
        "greedy",
        "share of superincreasing instances that the greedy algorithm decides rightly",
        PLACE.format("section 3.5.1"),
        at_least(1),
        *reduced(ordered, right.mean(), NOT_THERE),
    )
    scanned = pl.col("scan_ok").cast(pl.Float64).mean()
    yield Gate(
        "3",
        "scan",
        "share of instances that a scan of the verifier solves, or rightly FAILs on",
        PLACE.format("section 3.1.3, Definition 3.1.2"),
        at_least(1),
        *reduced(table, scanned, NOT_THERE),
    )


def _bias(table: pl.DataFrame) -> Iterator[Gate]:
    source = PLACE.format("Proposition 3.1.2")
    yield Gate(
        "4",
        "not the restricted distribution",
        "total variation distance of tokenwise rejection from it, smallest",
        source,
        above(0),
        *reduced(table, column_min("tv_exact"), NOT_THERE),
    )
    apart = column_max((pl.col("tv_exact") - pl.col("tv_closed")).abs())
    yield Gate(
        "4",
        "closed form",
        "that distance minus (2^D - 2)/(2^D (2^D - 1)), largest difference",
        source,
        at_most(EXACT),
        *reduced(table, apart, NOT_THERE),
        kind=OWN,
    )
    nearer = column_max(pl.col("tv_first_leaf") / pl.col("tv_exact"))
    yield Gate(
        "4",
        "first leaf of Algorithm 2",
        "distance of the first leaf with the same verifier, over that of tokenwise rejection, largest",
        PLACE.format("section 3.3.1"),
        below(1),
        *reduced(table, nearer, NOT_THERE),
        kind=OWN,
    )
    yield Gate(
        "4",
        "stationary leaves of Algorithm 2",
        "distance of its stationary leaves with the same verifier, largest",
        PLACE.format("section 3.3.1, property (3)"),
        at_most(EXACT),
        *reduced(table, column_max("tv_stationary"), NOT_THERE),
    )


def _coin(table: pl.DataFrame) -> Iterator[Gate]:
    source = PLACE.format("Algorithm 1")
    yield Gate(
        "5",
        "accuracy, simulated",
        f"share of strings without an error: {OFF}",
        source,
        at_most(ERRORS),
        *reduced(table, off("acc_sim", "acc_closed", "se_acc"), NOT_THERE),
        kind=OWN,
    )
    yield Gate(
        "5",
        "calls, simulated",
        f"mean calls: {OFF}",
        source,
        at_most(ERRORS),
        *reduced(table, off("c_sim", "c_closed", "se_c"), NOT_THERE),
        kind=OWN,
    )
    yield Gate(
        "5",
        "calls are length and erased tokens",
        "trials in which they are not",
        source,
        at_most(0),
        *reduced(table, column_max("unbalanced"), NOT_THERE),
        kind=OWN,
    )
    most = table.filter(pl.col("Q") == pl.col("Q").max(), pl.col("Q") > 0)
    shortest, longest = pl.col("B") == pl.col("B").min(), pl.col("B") == pl.col("B").max()
    short, long = (most.filter(end, refill=SAMPLE) for end in (shortest, longest))
    greedy = most.filter(longest, refill=ARGMAX)
    for name, words, better, worse in (
        ("greedy refills against sampled ones", "with greedy refills minus sampled ones, longest stride", greedy, long),
        ("short strides where refills are sampled", "shortest stride minus longest, sampled refills", short, long),
        (
            "greedy against the best sampled",
            "with greedy refills minus sampled ones of the shortest stride",
            greedy,
            short,
        ),
    ):
        both = pl.concat([better.select(first="acc_sim"), worse.select(second="acc_sim")], how="horizontal")
        yield Gate(
            "5",
            name,
            f"accuracy {words}",
            PLACE.format("section 3.2.3"),
            above(0),
            *reduced(both, column_min(pl.col("first") - pl.col("second")), NOT_THERE),
            kind=OWN,
        )


def _chain(table: pl.DataFrame, counts: pl.DataFrame) -> Iterator[Gate]:
    source = PLACE.format("section 3.3.1, {}")
    for name, column, words, kind, place in (
        ("stationary law", "stat_residual", "entry of |pi P - pi|", OWN, "Algorithm 2"),
        ("reversible", "rev_residual", "entry of |pi_i P_ij - pi_j P_ji|", OWN, "Algorithm 2"),
        (
            "law of the leaves",
            "tv_leaf",
            "total variation distance of the stationary leaves from pi*",
            STATED,
            "property (3)",
        ),
        ("first leaf as a current", "first_residual", "difference from the absorbing chain", OWN, "Algorithm 2"),
    ):
        yield Gate(
            "6",
            name,
            f"{words}, largest of all trees",
            source.format(place),
            at_most(EXACT),
            *reduced(table, column_max(column), NOT_THERE),
            kind=kind,
        )
    leaves = column_min(pl.col("leaf_mass") / pl.col("leaf_mass_bound"))
    yield Gate(
        "6",
        "mass of the leaves",
        "stationary mass of the leaves over 1/(2 (1 + (H - 1)(1 + eps))), smallest",
        source.format("property (2)"),
        at_least(1 - EXACT),
        *reduced(table, leaves, NOT_THERE),
    )
    exact = table.filter(eps=0.0)
    half = column_max((pl.col("leaf_mass") - 1 / (2 * pl.col("H"))).abs())
    yield Gate(
        "6",
        "mass of the leaves, exact values",
        "mass of the leaves minus 1/(2H), largest difference",
        source.format("property (2)"),
        at_most(EXACT),
        *reduced(exact, half, NOT_THERE),
        kind=OWN,
    )
    for name, words, value in (
        ("conductance", "over its bound, smallest", pl.col("conductance") / pl.col("conductance_bound")),
        ("spectral gap", "over its bound, smallest", pl.col("gap") / pl.col("gap_bound")),
        ("mixing time", "under its bound: bound over time, smallest", pl.col("tmix_bound") / pl.col("tmix_001")),
    ):
        rows = table.filter(pl.col("conductance").is_not_null()) if name == "conductance" else table
        yield Gate(
            "6",
            name,
            f"{name} {words}",
            source.format("property (1)"),
            at_least(1 - EXACT),
            *reduced(rows, column_min(value), NOT_THERE),
            kind=STATED if name == "mixing time" else OWN,
        )
    steps = column_max((pl.col("steps_first") / pl.col("steps_first_ref") - 1).abs())
    yield Gate(
        "6",
        "steps to the first leaf, exact values",
        "expected steps over 2 H^2 minus 1, largest difference",
        source.format("Algorithm 2"),
        at_most(1e-8),
        *reduced(exact, steps, NOT_THERE),
        kind=OWN,
    )
    yield Gate(
        "6",
        "Sinclair-Jerrum walk",
        "difference of transition probabilities on knapsacks, largest",
        source.format("footnote 14"),
        at_most(EXACT),
        *reduced(counts, column_max("max_abs_diff"), NOT_THERE),
    )


def _amplification(table: pl.DataFrame) -> Iterator[Gate]:
    source = PLACE.format("section 3.3")
    bias = table.filter(family=BIAS).sort("eps", "H")
    rise = column_min(pl.col("tv_alrs").diff().over("eps").drop_nulls())
    yield Gate(
        "7",
        "rejection, biased values",
        "change of the distance of action-level rejection from one H to the next, smallest",
        source,
        above(0),
        *reduced(bias, rise, NOT_THERE, 2),
    )
    here = bias.filter(pl.col("eps").is_close(AMPLIFIED), H=AT)
    yield Gate(
        "7",
        f"Algorithm 2 against rejection, H = {AT}",
        f"distance of action-level rejection over that of the first leaf, eps = {AMPLIFIED:g}",
        source,
        above(1),
        *reduced(here, pl.col("tv_alrs") / pl.col("tv_first"), NOT_THERE),
    )
    yield Gate(
        "7",
        f"by how much, H = {AT}",
        f"distance of action-level rejection over that of the first leaf, eps = {AMPLIFIED:g}",
        source,
        at_least(SHOWN_MORE),
        *reduced(here, pl.col("tv_alrs") / pl.col("tv_first"), NOT_THERE),
        kind=OWN,
    )
    level = pl.col("kl_alrs").diff() / pl.col("H").diff()
    up = (1 + pl.col("eps")) ** 2 / (1 + (1 + pl.col("eps")) ** 2)
    slope = -0.5 * (4 * up * (1 - up)).log()
    yield Gate(
        "7",
        "rejection grows in proportion",
        "KL(pi* || action-level rejection) for each further level minus KL(1/2 || p), largest difference",
        source,
        at_most(1e-9),
        *reduced(bias, column_max((level.over("eps") - slope).abs().drop_nulls()), NOT_THERE, 2),
        kind=OWN,
    )
    low, high = (bias.filter(pl.col("eps").is_close(AMPLIFIED), H=H) for H in SATURATED)
    more = pl.concat([low.select(low="kl_first"), high.select(high="kl_first")], how="horizontal")
    yield Gate(
        "7",
        "Algorithm 2 saturates",
        f"KL(pi* || first leaf) at H = {SATURATED[1]} minus that at {SATURATED[0]}, eps = {AMPLIFIED:g}",
        source,
        below(0.001),
        *reduced(more, pl.col("high") - pl.col("low"), NOT_THERE),
        kind=OWN,
    )
    yield Gate(
        "7",
        "stationary leaves",
        "distance of the stationary leaves of Algorithm 2 from pi*, largest",
        PLACE.format("section 3.3.1, property (3)"),
        at_most(EXACT),
        *reduced(table.filter(pl.col("tv_stat").is_not_null() | (pl.col("H") <= AT)), column_max("tv_stat"), NOT_THERE),
    )
    means = table.filter(family=IID).group_by("eps", "H").agg(pl.col("tv_first", "tv_alrs").mean())
    nearer = column_max(pl.col("tv_first") / pl.col("tv_alrs"))
    yield Gate(
        "7",
        "random signs",
        "mean distance of the first leaf over that of action-level rejection, largest of all eps and H",
        source,
        below(1),
        *reduced(means, nearer, NOT_THERE),
    )


def _simulated(table: pl.DataFrame) -> Iterator[Gate]:
    source = PLACE.format("Algorithm 2")
    for sampler in table["sampler"].to_list():
        rows = table.filter(sampler=sampler)
        yield Gate(
            "8",
            sampler,
            "distance of frequencies from the exact law over 3 sqrt(leaves/(2 pi n))",
            source,
            below(1),
            *reduced(rows, pl.col("tv_emp") / pl.col("tv_tol"), NOT_THERE),
            kind=OWN,
        )
        yield Gate(
            "8",
            f"{sampler}, chi-squared",
            "p-value of the frequencies under the exact law",
            source,
            above(0.001),
            *reduced(rows, pl.col("chi2_p"), NOT_THERE),
            kind=OWN,
        )


def _words(theory: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates on what captions and text say of printed numbers, which no model decides."""
    most = Published(MOST_CALLS, form=CEILING)
    said: dict[str, tuple[str, str, str, tuple[Condition, ...], Published | None]] = {
        "table-3-6-groups": (
            "Table 3.6, every group",
            "accuracy of Algorithm 1 minus the best other of its group, smallest",
            "caption of Table 3.6",
            above(0),
            None,
        ),
        "table-3-4-below": (
            "Table 3.4 below Table 3.2",
            "accuracy in Table 3.2 minus that without backtracking, smallest",
            "section 3.2.1.7",
            above(0),
            None,
        ),
        "table-3-2-steps": (
            "Table 3.2, larger Q and B",
            "what a larger Q or B adds to the accuracy, smallest",
            "caption of Table 3.2",
            above(0),
            None,
        ),
        "figure-3-3": (
            "Figure 3.3, per call",
            "distinct right test cases per call of Algorithm 1 in Table 3.6 minus the baseline, smallest",
            "section 3.2.2.3",
            above(0),
            None,
        ),
        "table-3-15-baseline": (
            "Table 3.15, the baseline drops",
            "its drop out of distribution over its spread, minus 1",
            "caption of Table 3.15",
            above(0),
            None,
        ),
        "all-settings": (
            "Table 3.10, every setting",
            "accuracy at threshold 0.1 minus that at 0.5 in Table 3.13, smallest",
            "caption of Table 3.10",
            above(0),
            None,
        ),
        "any-layer": (
            "Table 3.9, any layer",
            "accuracy of the worst layer minus the baseline",
            "section 3.2.2.6",
            above(0),
            None,
        ),
        "most-calls": (
            "most calls",
            "calls of Algorithm 1 in Table 3.13, most",
            "section 3.2.2.1",
            at_most(MOST_CALLS),
            most,
        ),
    }
    for check, (name, words, place, conditions, limit) in said.items():
        found = evidence.one_row(theory, "not checked", value="measured", theory=PRINTED, check=check)
        yield Gate("32", name, words, PLACE.format(place), conditions, *found, published=limit)
