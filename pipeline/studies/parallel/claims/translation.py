"""Claims 23 to 37: translation in parallel, on the stand-in SYNMT, and what the source prints of WMT."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from pipeline.kit import evidence, intervals
from pipeline.kit.conditions import Condition, above, at_least, at_most, below, within
from pipeline.kit.evidence import reduced
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.verdicts import Gate, Measured
from pipeline.studies.parallel import translation_comparisons as compared
from pipeline.studies.parallel.claims.common import CONFIDENCE, NO_ROW
from pipeline.studies.parallel.controls import NEVER
from pipeline.studies.parallel.measures import published
from pipeline.studies.parallel.names import ALPHAS, DIAL, KEPT, PADIR, SOURCE, TAUGHT
from pipeline.studies.parallel.translation_comparisons import BLEU, CROSS, DIALS, LENGTH, PASSES, SELF, STUTTER, VALID
from schemas.claims import ANALOGUE, OWN
from schemas.parallel.translation import RAW
from schemas.parallel.translation import STUTTER as STUTTERING

if TYPE_CHECKING:
    from pipeline.kit.results import Results

LONG = "long"
# Chapter section 4, EXP-8, derived from Tables 4.1 and 4.3: mean over directions of the first minus the second
MEANS = {
    "AR minus PaDIR, T = 4": ("B1", published.AR, published.FOUR, 0.848),
    "AR minus PaDIR, T = 10": ("B1", published.AR, published.TEN, 0.803),
    "T = 10 minus T = 4": ("B1", published.TEN, published.FOUR, 0.045),
    "BLEURT, AR minus PaDIR, T = 4": ("B3", published.AR, published.FOUR, 2.13),
    "BLEURT, AR minus PaDIR, T = 10": ("B3", published.AR, published.TEN, 1.53),
    "BLEURT, T = 10 minus T = 4": ("B3", published.TEN, published.FOUR, 0.598),
}
# Valid share of PaDIR in one pass, per cent, by alpha (chapter section 6, claim 25)
VALID_RANGES = {0.0: at_least(95), 0.25: at_least(75), DIAL: (*at_least(20), *at_most(65)), 1.0: at_most(15)}
SMALL = 0.2  # Cohen's d
TARGET = 11.4  # mean tokens of a target with EOS


def between(low: float, high: float) -> tuple[Condition, ...]:
    """Return the conditions that the value lies from ``low`` to ``high``."""
    return (*at_least(low), *at_most(high))


NULL = between(-0.35, 0.35)  # Cohen's d that counts as none (chapter section 6, claim 33)


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 23 to 37."""
    yield from _printed(context.table("par_published"))
    yield from _dial(context)
    yield from _training(context)
    yield from _attention(context)
    yield from _untrained(context.table("synmt_attn_summary"))
    yield from _passes(context)
    yield from _bayes(context.table("synmt_tc"))
    yield from _against_stutter(context)


def _printed(table: pl.DataFrame) -> Iterator[Gate]:
    for name, (which, first, second, expected) in MEANS.items():
        wide = table.filter(pl.col("row").is_in([first, second]), table=which).pivot("row", index="col", values="value")
        yield Gate(
            "23",
            name,
            "mean over directions of the printed scores of WMT, difference",
            SOURCE.format("Tables 4.1, 4.3"),
            within(expected, 0.005),
            *reduced(wide, (pl.col(first) - pl.col(second)).mean(), NO_ROW),
            kind=OWN,
        )


def _dial(context: Results) -> Iterator[Gate]:
    source = SOURCE.format("section 4.2.3, on the stand-in")
    for alpha in ALPHAS:
        name = f"alpha = {alpha:g}"
        for what, comparison, bar in (
            ("valid", compared.WORD_VALID[alpha], at_least(95)),
            ("stutter", compared.WORD_STUTTER[alpha], at_most(0.1)),
        ):
            yield evidence.gate(context, "24", f"{what}, {name}", comparison, bar, source, kind=OWN)
        yield evidence.gate(context, "25", name, compared.PARALLEL_VALID[alpha], VALID_RANGES[alpha], source, kind=OWN)
    yield evidence.gate(context, "26", "alpha = 0", compared.GAP[0.0, 4], below(5), source, kind=OWN)
    yield evidence.gate(context, "26", "alpha = 1", compared.GAP[1.0, 4], above(70), source, kind=OWN)
    for (low, high), comparison in compared.RISE.items():
        name = f"the gap rises from alpha = {low:g} to {high:g}"
        yield evidence.gate(context, "26", name, comparison, above(0), source, kind=OWN)
    dependence = context.table("synmt_tc").filter(T=1).sort("alpha")
    step = dependence.with_columns(step=pl.col("tc_nats").diff()).drop_nulls("step")
    yield Gate(
        "26",
        "total correlation rises",
        "a check of the corpus: exact total correlation at an alpha minus that at the one before, nats, smallest",
        source,
        above(0),
        *reduced(step, column_min("step"), NO_ROW),
        kind=OWN,
    )
    refined = {(1, 2): above(5), (4, 10): (*above(-2), *below(2))}
    for (few, many), comparison in compared.REFINED.items():
        name = f"valid, T = {few} to {many}"
        yield evidence.gate(context, "27", name, comparison, refined[few, many], source, kind=OWN)
    yield evidence.gate(context, "27", "stutter, T = 4 over T = 1", compared.CALMED, below(0.8), source, kind=OWN)
    for (alpha, T), comparison in compared.TWICE.items():
        name = f"twice the stutter, alpha = {alpha:g}, T = {T}"
        yield evidence.gate(context, "28", name, comparison, above(0), source, kind=ANALOGUE)
    for T, comparison in compared.FULL_STUTTER.items():
        yield evidence.gate(context, "28", f"amount, alpha = 1, T = {T}", comparison, between(8, 18), source, kind=OWN)


def _training(context: Results) -> Iterator[Gate]:
    source = SOURCE.format("section 4.2.3, on the stand-in")
    # The text says which is better; how much better is asked for by the bars of the chapter's trial.
    for name, comparison, bar in (
        ("one translation of each source", compared.DISTILLED, above(50)),
        ("translations of a model", compared.TAUGHT_BY, above(30)),
    ):
        needed = LONG if comparison is compared.TAUGHT_BY else "quick"
        yield evidence.gate(context, "29", name, comparison, above(0), source, kind=ANALOGUE, scale_needed=needed)
        yield evidence.gate(context, "29", f"{name}, size", comparison, bar, source, kind=OWN, scale_needed=needed)
    for measure, name in ((VALID, "valid"), (BLEU, "BLEU")):
        for T in PASSES:
            comparison = compared.MASKED[measure, T]
            kind = OWN if (measure, T) == (BLEU, 4) else ANALOGUE
            yield evidence.gate(context, "30", f"{name}, T = {T}", comparison, above(0), source, kind=kind)
            if T == 1:
                yield evidence.gate(context, "30", f"{name}, T = {T}, size", comparison, above(5), source, kind=OWN)
    for T in PASSES:  # of which the text says nothing
        yield evidence.gate(context, "30", f"stutter, T = {T}", compared.MASKED[STUTTER, T], below(0), source, kind=OWN)
    yield evidence.gate(
        context, "31", "valid, T = 4", compared.POSITIONAL, above(0), source, kind=ANALOGUE, scale_needed=LONG
    )
    for T, comparison in compared.STAGES.items():
        name = f"valid, T = {T}"
        yield evidence.gate(context, "32", name, comparison, above(0), source, kind=OWN, scale_needed=LONG)


def _attention(context: Results) -> Iterator[Gate]:
    source = SOURCE.format("section 4.2.4, on the stand-in")
    for alpha in DIALS:
        name = f"alpha = {alpha:g}"
        # "even on average, stuttering positions do not have larger decoder self-attention"
        for what, effects in (("", compared.D), ("T = 4, ", compared.LATER)):
            no_larger = f"no larger, {what}{name}"
            yield evidence.gate(context, "33", no_larger, effects[SELF, alpha], at_most(0), source, kind=ANALOGUE)
        yield evidence.gate(context, "33", name, compared.D[SELF, alpha], NULL, source, kind=OWN)
        # The source says both of what several passes wrote.
        yield evidence.gate(context, "33", f"T = 4, {name}", compared.LATER[SELF, alpha], NULL, source, kind=OWN)
        for T in PASSES:
            told = f"less than cross-attention, T = {T}, {name}"
            yield evidence.gate(context, "33", told, compared.TELLS[alpha, T], above(0), source, kind=OWN)
        # The text says which are nearer; a small effect in Cohen's sense is asked for apart. At alpha = 1 a trial of
        # one model found none, so that there, after one pass, the size alone is asked for.
        distance, size = f"distance, {name}", at_most(-SMALL)
        if alpha < 1:
            yield evidence.gate(context, "34", distance, compared.D[CROSS, alpha], below(0), source, kind=ANALOGUE)
            yield evidence.gate(
                context, "34", f"overlap, {name}", compared.OVERLAP[alpha], above(0), source, kind=ANALOGUE
            )
            distance += ", size"
        yield evidence.gate(context, "34", distance, compared.D[CROSS, alpha], size, source, kind=OWN)
        later = f"distance, T = 4, {name}"
        yield evidence.gate(context, "34", later, compared.LATER[CROSS, alpha], below(0), source, kind=ANALOGUE)
        yield evidence.gate(context, "35", name, compared.WITHIN_WORD[alpha], at_most(-0.5), source, kind=OWN)
    # Both tokens of one word attend alike by construction, and count among the others.
    yield evidence.gate(
        context,
        "34",
        "distance, no words of two tokens",
        compared.SINGLE_WORDS,
        at_most(-SMALL),
        source,
        kind=OWN,
        scale_needed=LONG,
    )
    # Where a trial of one model had found a large effect
    yield evidence.gate(context, "33", "T = 4, u = 0.6", compared.EXCEPTION, NULL, source, kind=OWN)


def _untrained(table: pl.DataFrame) -> Iterator[Gate]:
    """Yield the control of claim 34: translators that were never trained, of the same shape, on the same sentences."""
    effects = table.filter(cls=STUTTERING, metric=CROSS).drop_nulls("cohen_d_vs_other")
    for T in PASSES:
        trained, untrained = (
            effects.filter(T=T, run=run).sort("replica")["cohen_d_vs_other"].to_numpy() for run in (PADIR[DIAL], NEVER)
        )
        both = len(trained) and len(untrained)
        apart = intervals.mean_difference(trained, untrained, CONFIDENCE, paired=False) if both else None
        yield Gate(
            "34",
            f"more than without training, T = {T}",
            f"{compared.EFFECTS[CROSS]}, T = {T}, alpha = {DIAL:g}, mean difference: trained minus never trained",
            SOURCE.format("section 4.2.4, on the stand-in"),
            below(0),
            Measured.of(apart, CONFIDENCE) if apart else None,
            NO_ROW,
            kind=OWN,
        )


def _against_stutter(context: Results) -> Iterator[Gate]:
    """Yield the gates of our claim 41. That sentences get shorter is the chapter's pitfall 19."""
    source = SOURCE.format("section 4.2.3, on the stand-in")
    bars = {VALID: ("valid", above(0)), LENGTH: ("length", below(0)), BLEU: ("BLEU", above(0))}
    for (run, post, measure), comparison in compared.WITHOUT_STUTTER.items():
        name, bar = bars[measure]
        name = f"{compared.WAYS[post]}, {name}"
        if run == TAUGHT:
            name = f"a model's targets, {name}"
        needed = LONG if run == TAUGHT else "quick"
        yield evidence.gate(context, "41", name, comparison, bar, source, kind=OWN, scale_needed=needed)


def _passes(context: Results) -> Iterator[Gate]:
    source = SOURCE.format("section 4.2.3, on the stand-in")
    for alpha in ALPHAS:
        name = f"alpha = {alpha:g}"
        for what, comparison, bar in (
            ("word by word", compared.WORD_PASSES[alpha], within(TARGET, 0.3)),
            ("quotient", compared.FEWER_PASSES[alpha], at_least(3)),
        ):
            yield evidence.gate(context, "36", f"{what}, {name}", comparison, bar, source, kind=OWN)
    rows = context.table("synmt_metric").filter(
        pl.col("run").is_in([*PADIR.values(), *KEPT.values()]), T=4, B_l=1, post=RAW
    )
    yield Gate(
        "36",
        "in parallel",
        "a check of the code, which stops there: passes of the slowest sentence with T = 4",
        source,
        at_most(4),
        *reduced(rows, column_max("passes_max"), NO_ROW),
        kind=OWN,
    )


def _bayes(table: pl.DataFrame) -> Iterator[Gate]:
    source = SOURCE.format("section 4.2.3, on the stand-in")
    rows = table.filter(T=1)
    half, full = rows.filter(pl.col("alpha") <= DIAL), rows.filter(alpha=1.0)
    what = "where each position takes the token of its largest exact marginal"
    gates = (
        ("valid, alpha <= 0.5", f"valid share {what}, smallest", at_least(1), half, column_min("bayes_valid")),
        (
            "stutter, alpha <= 0.5",
            f"stutter per 100 tokens {what}, largest",
            at_most(0),
            half,
            column_max("bayes_stutter"),
        ),
        ("valid, alpha = 1", f"valid share {what}", at_most(0), full, column_max("bayes_valid")),
        ("stutter, alpha = 1", f"stutter per 100 tokens {what}", within(11.85, 0.7), full, column_max("bayes_stutter")),
    )
    for name, measure, bar, found, value in gates:
        yield Gate("37", name, measure, source, bar, *reduced(found, value, NO_ROW), kind=OWN)
