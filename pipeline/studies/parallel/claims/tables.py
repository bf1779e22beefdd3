"""Claims that result tables decide: what is simulated beside what is exact."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import Condition, above, at_least, at_most, below, within
from pipeline.kit.evidence import reduced
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.verdicts import Gate
from pipeline.studies.parallel.comparisons import (
    APART,
    ARRIVES,
    LEAST,
    NAMES,
    ORDER,
    PUBLISHED,
    REACHES,
    STEPS,
    STRONG,
    SURER,
    TEN,
    TOGETHER,
)
from pipeline.studies.parallel.names import SIZES, SOURCE
from schemas.claims import CORRECTED, OWN
from schemas.parallel.tables import ALLMASK, DESCENT, FULL, GIBBS, INDEPENDENT, J_ONLY, REACH, SEPARATION, STUCK

if TYPE_CHECKING:
    from pipeline.kit.results import Results

NO_ROW = "no such setting in params/parallel/experiments.yaml at this scale"
TRACES = {  # chapter section 4, EXP-1/2: trace of Gamma, all parameters, k = 1 to 4
    "flat": (28.2609, 15.3355, 11.4463, 10.1116),
    "modes": (43.7325, 23.4621, 17.8210, 16.3272),
}
SEEN = 1e-3  # of a step: less could not be seen in Figure 4.3
LARGE = 4000  # samples from which asymptotics are asked for
DESIGNS = ("aligned pairs", "all pairs", "misaligned pairs", "singles")  # from the best mixing to the worst
POSITIVE = (Condition("lo", ">", 0.0), Condition("value", ">", 0.0))


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 1 to 5, 8, 12 to 17, 21, 22."""
    yield from _asymptotics(context.table("par_asymp"))
    yield from _errors(context, context.table("par_mple_cell"))
    yield from _descent(context.table("par_mple_fit"))
    yield from _hitting(context)
    yield from _propositions(context.table("par_prop_cell"))
    yield from _designs(context.table("par_asymp"))
    yield from _finite(context.table("par_finite_sample"))


def _asymptotics(table: pl.DataFrame) -> Iterator[Gate]:
    source = SOURCE.format("Theorem 4.1.1, Figures 4.1, 4.2")
    for target, name in NAMES.items():
        rows = table.filter(dist_id=target, variant=FULL).sort("k")
        steps = rows.select(pl.col("tr_gamma") / pl.col("tr_gamma").shift(-1)).drop_nulls()
        yield Gate(
            "1",
            f"decreasing, {name}",
            "trace of Gamma^k over that of Gamma^(k+1), smallest",
            source,
            above(1.0),
            *reduced(steps, column_min("tr_gamma"), NO_ROW),
        )
        stated = pl.DataFrame({"k": range(1, 5), "stated": TRACES[target]}, schema_overrides={"k": rows.schema["k"]})
        off = rows.join(stated, on="k").with_columns(off=(pl.col("tr_gamma") - pl.col("stated")).abs())
        yield Gate(
            "1",
            f"values, {name}",
            "trace of Gamma^k minus that of the chapter's table, largest difference",
            source,
            at_most(1e-3),
            *reduced(off, column_max("off"), NO_ROW),
            kind=OWN,
        )
        for part, words in (("tr_couplings", "couplings"), ("tr_fields", "fields")):
            first = rows.select(ratio=pl.col(part) / pl.col(part).shift(-1)).head(1)
            yield Gate(
                "1",
                f"{words}, k = 1 over 2, {name}",
                f"the part of the trace that is of the {words}, k = 1 over k = 2",
                source,
                above(1.0),
                *reduced(first.drop_nulls(), column_min("ratio"), NO_ROW),
                kind=OWN,
            )
        predictions = rows.select(cost=pl.col("k") * pl.col("tr_gamma"))
        more = predictions.select(pl.col("cost") / pl.col("cost").shift(-1)).drop_nulls()
        yield Gate(
            "5",
            f"equal predictions, {name}",
            "trace of Gamma^k times k over that of k + 1, as if samples gave equal numbers of predictions, largest",
            source,
            below(1.0),
            *reduced(more, column_max("cost"), NO_ROW),
            kind=OWN,
        )
        worst = rows.select(cost=pl.col("k") * pl.col("worst_ratio"))
        yield Gate(
            "5",
            f"equal predictions, worst direction, {name}",
            "variance of the worst direction over that of maximum likelihood, times k, over that of k + 1, largest",
            source,
            below(1.0),
            *reduced(worst.select(pl.col("cost") / pl.col("cost").shift(-1)).drop_nulls(), column_max("cost"), NO_ROW),
            kind=OWN,
        )
        only = table.filter(dist_id=target, variant=J_ONLY).sort("k")
        both, apart = (
            fitted.filter(pl.col("k").is_in(SIZES[-2:])).select(off=pl.col(part).diff().abs()).drop_nulls()
            for fitted, part in ((only, "tr_gamma"), (rows, "tr_couplings"))
        )
        yield Gate(
            "4",
            f"couplings among all parameters, {name}",
            "the part of the trace that is of the couplings, Gamma^3 minus Gamma^4, all parameters fitted, h = 0",
            source,
            at_most(1e-10),
            *reduced(apart, column_max("off"), NO_ROW),
            kind=OWN,
        )
        yield Gate(
            "4",
            name,
            "trace of Gamma^3 minus that of Gamma^4 where couplings alone are fitted, h = 0",
            source,
            at_most(1e-10),
            *reduced(both, column_max("off"), NO_ROW),
            kind=CORRECTED,
        )
    averaged = table.filter(variant=ALLMASK, k=SIZES[0])
    drawn, wider = (averaged.filter(pl.col("dist_id").is_in(list(NAMES)) == own) for own in (True, False))
    for name, rows, bar in (
        ("couplings of the figures", drawn, below(1.05)),
        ("strongest coupling", wider.filter(pl.col("J") == pl.col("J").max()), above(1.05)),
    ):
        yield Gate(
            "5",
            f"all masks of each sample, worst direction, {name}",
            "largest eigenvalue of Gamma I with k = 1, largest over couplings",
            source,
            bar,
            *reduced(rows, column_max("worst_ratio"), NO_ROW),
            kind=OWN,
        )
    bounded = table.filter(pl.col("min_eig_bound").is_not_null())
    yield Gate(
        "8",
        "targets and mask sets",
        "C I^-1 - Gamma in every table, smallest eigenvalue over the largest entry",
        SOURCE.format("Theorem 4.1.2"),
        at_least(-1e-9),
        *reduced(bounded, column_min("min_eig_bound"), NO_ROW),
    )


def _errors(context: Results, table: pl.DataFrame) -> Iterator[Gate]:
    source = SOURCE.format("Figures 4.1, 4.2")
    for target, name in NAMES.items():
        for k, more in STEPS:
            yield evidence.gate(context, "2", f"k = {k} and {more}, {name}", ORDER[target, k], POSITIVE, source)
        measured = table.filter(pl.col("n") >= LEAST, dist_id=target, variant=FULL)
        for k, more in STEPS:
            both = measured.filter(k=k).join(measured.filter(k=more), on="n")
            ratio = both.select(ratio=pl.col("mse") / pl.col("mse_right"))
            yield Gate(
                "2",
                f"k = {k} over {more}, {name}",
                f"mean squared error, median over n of {LEAST} and more",
                source,
                above(1.0),
                *reduced(ratio, pl.col("ratio").median(), NO_ROW),
            )
        for k, more in STEPS[:2]:
            yield evidence.gate(
                context,
                "2",
                f"ten repetitions of each n, k = {k} and {more}, {name}",
                PUBLISHED[target, k],
                POSITIVE,
                source,
            )
        (k, more) = STEPS[-1]
        for which, bar in ((APART, below(0.9)), (TOGETHER, above(0.5))):
            name_ = f"ten repetitions, k = {k} and {more}, {which}, {name}"
            yield evidence.gate(context, "2", name_, TEN[target, k, which], bar, source, kind=OWN)
        name_ = f"ten repetitions, k = {k} and {more}, surer with the same samples, {name}"
        yield evidence.gate(context, "2", name_, SURER[target], POSITIVE, source, kind=OWN)
    far = table.filter((pl.col("n") >= LARGE) & (pl.col("variant") != ALLMASK))
    yield Gate(
        "3",
        "n times the error over the trace",
        "distance from 1, largest, one mask for each sample",
        SOURCE.format("Lemma 4.1.1"),
        at_most(0.1),
        *reduced(far, column_max((pl.col("n_mse_ratio") - 1).abs()), "no n of 4000 or more at this scale"),
    )
    yield Gate(
        "3",
        "whitened errors",
        "mean of n e' Gamma^-1 e over d, distance from 1, largest",
        SOURCE.format("Lemma 4.1.1"),
        at_most(0.05),
        *reduced(
            far.filter((pl.col("n") == pl.col("n").max()) & (pl.col("variant") == FULL)),
            column_max((pl.col("whitened") - 1).abs()),
            "no n of 4000 or more at this scale",
        ),
        kind=OWN,
    )
    for target, name in NAMES.items():
        rows = table.filter(pl.col("n") >= LARGE, dist_id=target).pivot("k", index=["variant", "n"], values="mse")
        missing = "no n of 4000 or more at this scale"
        first, last = pl.col(str(SIZES[0])), pl.col(str(SIZES[-1]))
        yield Gate(
            "5",
            f"all masks of each sample, {name}",
            f"mean squared error with k = 1 over that with k = 4, minus 1, largest for n >= {LARGE}",
            source,
            below(0.05),
            *reduced(rows.filter(variant=ALLMASK), column_max(first / last - 1), missing),
            kind=OWN,
        )
        yield Gate(
            "5",
            f"one mask of each sample, {name}",
            f"mean squared error with k = 1 over that with k = 4, smallest for n >= {LARGE}",
            source,
            above(2.4),
            *reduced(rows.filter(variant=FULL), column_min(first / last), missing),
            kind=OWN,
        )


def _descent(table: pl.DataFrame) -> Iterator[Gate]:
    rows = table.filter(optimiser=DESCENT)
    yield Gate(
        "2",
        "gradient descent",
        "parameters that the trainer found minus Newton's on the same samples, largest",
        SOURCE.format("Figures 4.1, 4.2"),
        at_most(1e-4),
        *reduced(rows, column_max("apart"), NO_ROW),
        kind=OWN,
    )


def _hitting(context: Results) -> Iterator[Gate]:
    source = SOURCE.format("Figure 4.3")
    exact, cells = context.table("par_hit_exact"), context.table("par_hit_cell")
    gibbs = exact.filter(sampler=GIBBS)
    by_k = gibbs.sort("J", "k").with_columns(step=pl.col("mean_censored").diff().over("J")).drop_nulls("step")
    yield Gate(
        "13",
        "larger k is faster",
        "steps with k + 1 minus those with k, largest over k and J",
        source,
        at_most(1e-9),
        *reduced(by_k, column_max("step"), NO_ROW),
    )
    yield Gate(
        "13",
        "simulated",
        "distance of mean steps from the exact ones over max(4 standard errors, 1 step), largest",
        source,
        at_most(1.0),
        *reduced(cells, column_max("off"), NO_ROW),
        kind=OWN,
    )
    by_J = exact.sort("sampler", "k", "J").with_columns(step=pl.col("mean_censored").diff().over("sampler", "k"))
    rises = by_J.drop_nulls("step")
    falls = "steps at a coupling minus those at the one before, smallest over samplers"
    yield Gate("14", "larger J is slower", falls, source, at_least(-SEEN), *reduced(rises, column_min("step"), NO_ROW))
    # With all or nearly all positions masked a step is nearly an exact sample, and R_1 gets likelier with the coupling.
    yield Gate(
        "14", "not strictly", falls, source, below(0.0), *reduced(rises, column_min("step"), NO_ROW), kind=CORRECTED
    )
    for J, comparison in ARRIVES.items():
        if J >= 5:  # chapter claim 15
            yield evidence.gate(context, "15", f"J = {J:g}", comparison, at_most(0.001), source)
        elif J == 4:
            yield evidence.gate(context, "15", f"J = {J:g}", comparison, at_most(0.01), source)
        elif J == 3:  # between both: some runs arrive, and some do not
            some = (*above(0.01), *below(0.99))
            yield evidence.gate(context, "15", f"J = {J:g}", comparison, some, source, kind=CORRECTED)
        else:  # where the field outweighs the coupling, "never" is wrong
            yield evidence.gate(context, "15", f"J = {J:g}", comparison, at_least(0.99), source, kind=OWN)
    came = cells.filter(pl.col("J") >= 5, sampler=INDEPENDENT)
    yield Gate(
        "15",
        "arrivals",
        "runs that reach R_1 within the budget, largest number for J >= 5",
        source,
        at_most(0.0),
        *reduced(came, column_max("reached"), NO_ROW),
    )
    miss = exact.filter(sampler=INDEPENDENT).filter(pl.col("J") >= 4)
    yield Gate(
        "15",
        "exact",
        "probability to reach R_1 within the budget, largest for J >= 4",
        source,
        at_most(0.01),
        *reduced(miss, column_max(1 - pl.col("miss_prob")), NO_ROW),
    )
    for masks, comparison in REACHES.items():
        bar = at_most(0.01) if masks in ("k = 1", "k = 2") else at_least(0.98)
        yield evidence.gate(context, "16", f"k-Gibbs, {masks}", comparison, bar, source, kind=OWN)
    # Runs of several cells are counted together above; these are the worst of the cells.
    strong = exact.filter(pl.col("J") >= STRONG, pl.col("budget") >= 1000, sampler=GIBBS)
    arrives = 1 - pl.col("miss_prob")
    for name, rows, worst, bar, which in (
        ("k at most 2, worst cell", strong.filter(pl.col("k") <= 2), column_max(arrives), at_most(0.01), "largest"),
        (
            "k = 3 from J = 8 on, worst cell",
            strong.filter((pl.col("k") == 3) & (pl.col("J") >= 8)),
            column_max(arrives),
            at_most(0.01),
            "largest",
        ),
        ("k at least 4, worst cell", strong.filter(pl.col("k") >= 4), column_min(arrives), at_least(0.98), "smallest"),
    ):
        measure = f"probability to reach R_1 within the budget, {which} of these couplings from {STRONG:g} on"
        yield Gate("16", name, measure, source, bar, *reduced(rows, worst, NO_ROW), kind=OWN)
    between = exact.filter(sampler=GIBBS, k=3, J=6.0, budget=1000)
    yield Gate(
        "16",
        "k-Gibbs, k = 3, J = 6",
        "probability to reach R_1 within the budget",
        source,
        within(0.08, 0.01),
        *reduced(between, column_max(1 - pl.col("miss_prob")), NO_ROW),
        kind=OWN,
    )
    strongest = gibbs.filter((pl.col("J") == pl.col("J").max()) & pl.col("large_J_limit").is_not_null())
    uncensored = strongest.filter(pl.col("budget") >= 4 * pl.col("large_J_limit"))
    yield Gate(
        "17",
        "limit of strong coupling",
        "mean steps over C(N,k) / C(N-c,k-c), minus 1, largest for k >= c",
        source,
        at_most(0.01),
        *reduced(uncensored, column_max((pl.col("mean_censored") / pl.col("large_J_limit") - 1).abs()), NO_ROW),
        kind=OWN,
    )


def _propositions(table: pl.DataFrame) -> Iterator[Gate]:
    places = {REACH: "Proposition 4.1.4", STUCK: "Proposition 4.1.5", SEPARATION: "Corollary 4.1.1"}
    said = {
        REACH: "probability to reach R_1 within T steps",
        STUCK: "probability to stay at a sum of at most -2 for T steps",
        SEPARATION: "smaller probability of two: one step of k-Gibbs is in R_1, M steps of the other avoid it",
    }
    for check, place in places.items():
        rows = table.filter(check_id=check, applicable=True)
        yield Gate(
            "12",
            check,
            f"{said[check]}, minus what is stated, smallest of {'all' if check != STUCK else 'applicable'} cells",
            SOURCE.format(place),
            at_least(-1e-12),
            *reduced(rows, column_min("margin"), NO_ROW),
            kind=CORRECTED if check == STUCK else "published statement",
        )
    run = table.filter(pl.col("mc_prob").is_not_null())
    error = (pl.col("exact_prob") * (1 - pl.col("exact_prob")) / pl.col("mc_runs")).sqrt() + 1 / pl.col("mc_runs")
    yield Gate(
        "12",
        "runs of k-Gibbs",
        "share that reached R_1 minus its exact probability, in standard errors, largest",
        SOURCE.format("Proposition 4.1.4"),
        at_most(4.0),
        *reduced(run, column_max((pl.col("mc_prob") - pl.col("exact_prob")).abs() / error), NO_ROW),
        kind=OWN,
    )


def _designs(table: pl.DataFrame) -> Iterator[Gate]:
    rows = table.filter(pl.col("dist_id").str.starts_with("pairs-"))
    source = SOURCE.format("section 4.1.2.2")
    yield Gate(
        "21",
        "bound",
        "largest eigenvalue of Gamma I over C, largest",
        source,
        at_most(1 + 1e-9),
        *reduced(rows, column_max("tightness"), NO_ROW),
    )
    wide = rows.pivot("scheme_id", index="dist_id", values=["worst_ratio", "tr_gamma"])
    for first, second in pairwise(DESIGNS):
        ratio = pl.col(f"worst_ratio_{second}") / pl.col(f"worst_ratio_{first}")
        yield Gate(
            "21",
            f"{first} before {second}",
            "largest eigenvalue of Gamma I, the second over the first, smallest over J",
            source,
            above(1.0),
            *reduced(wide, column_min(ratio), NO_ROW),
            kind=OWN,
        )
    trace = pl.col(f"tr_gamma_{DESIGNS[0]}") / pl.col(f"tr_gamma_{DESIGNS[1]}")
    yield Gate(
        "21",
        "traces have another order",
        "trace of Gamma, aligned pairs over all pairs, smallest over J",
        source,
        above(1.0),
        *reduced(wide, column_min(trace), NO_ROW),
        kind=OWN,
    )


def _finite(table: pl.DataFrame) -> Iterator[Gate]:
    source = SOURCE.format("Theorem 4.1.4")
    share = table.group_by("family", "n", "m").agg(pl.col("violated").mean())
    yield Gate(
        "22",
        "violations",
        "share of fits that are farther from the truth than the bound, largest cell",
        source,
        at_most(0.1),
        *reduced(share, column_max("violated"), NO_ROW),
    )
    # Where the bound is above 1 no fit can violate it.
    said = table.with_columns(bound=pl.min_horizontal("bound_nll", "bound_kl")).filter(pl.col("bound") < 1)
    informative = said.group_by("family", "n", "m").agg(pl.col("violated").mean())
    yield Gate(
        "22",
        "violations where the bound is below 1",
        "share of fits that are farther from the truth than the bound, largest cell",
        source,
        at_most(0.1),
        *reduced(informative, column_max("violated"), "no bound is below 1 at this scale"),
    )
    seen = table.filter(n=100000, m=100000000, family="coupled")
    for form, expected in (("kl", 0.494), ("nll", 0.971)):
        yield Gate(
            "22",
            f"bound, {form} form",
            "mean bound at n = 100,000 and m = 100,000,000",
            source,
            within(expected, 0.002),
            *reduced(seen, pl.col(f"bound_{form}").mean(), "no such n at this scale"),
            kind=OWN,
        )
