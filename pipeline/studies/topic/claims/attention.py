"""Claims 19 to 25 and 35: average attention."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_most, below, within
from pipeline.kit.evidence import gate
from pipeline.kit.extremes import largest, smallest
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured, Published
from pipeline.studies.topic import comparisons as declared
from pipeline.studies.topic.claims.common import HALF, SECTION, between
from pipeline.studies.topic.names import (
    ATTENTION,
    ATTENTION_RELEASED,
    ATTENTION_SGD,
    BLOCK_SQ,
    RELEASED_ADAM,
    RELEASED_SGD,
)
from schemas.claims import CORRECTED, OWN, STATED

TABLE_21, TABLE_22 = SECTION.format("2.1.5, Table 2.1"), SECTION.format("2.1.5, Table 2.2")
AUDIT = "our audit of Table 2.1"
EXCEPTED = RELEASED_ADAM, 0.03  # of which the caption says that its attention to the topic is larger
WORDS = {"same_word": "same word", "same_topic_diff_word": "same topic", "diff_topic": "other topics"}
SPREADS, LEAST = 2.0, 0.1  # what is accepted of a median: printed standard deviations, and share of the mean, at least
SIZES = {  # of Table 2.2: what is accepted, and what is printed at a rate of 0.003
    "same_word": (0.05, 0.14, 0.0916),
    "same_topic_diff_word": (0.0, 0.003, 0.00185),
    "diff_topic": (0.0, 0.005, 0.00256),
}
# Pairs in the first 500 held-out documents of the release (YuchenLi01/transformer_topic_model_LDA, commit 42781529), as
# its statistics file counts them: START and 99 words of each document.
DOCUMENTS, TOKENS = 500, 100
RELEASED = {"same_word": 319_724, "same_topic_diff_word": 1_214_976, "diff_topic": 3_132_390, "unlabelled": 332_910}
# The same pairs, counted again in the released documents with the topic of each word. What has no label then are the
# pairs of START and a word, in both orders.
RIGHT = {"same_word": 319_724, "same_topic_diff_word": 2_432_394, "diff_topic": 2_148_882, "unlabelled": 99_000}
# Sum of N over sum of N squared over these documents with all of their words: the mean weight of raw attention. The law
# of lengths, uniform from 100 to 150, gives 0.00789.
RAW_MEAN = 0.00797
PRINTED = {"same_word": "same_word", "same_topic_diff_word": "same_topic", "diff_topic": "diff_topic"}  # columns
PAIRS = {
    "same_word": "pairs of equal words",
    "same_topic_diff_word": "pairs of different words of one topic",
    "diff_topic": "pairs of words of two topics",
    "unlabelled": "pairs without a label",
}


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    for rate in declared.RATES:
        comparison = declared.TOPIC_FIRST[RELEASED_ADAM, rate]
        yield gate(context, "19", f"released model, Adam, rate {rate:g}", comparison, above(HALF), TABLE_21)
    for name, run in (("Adam, rate 0.01", ATTENTION_RELEASED), ("Adam, rate 0.01, masks are keys", ATTENTION)):
        comparison = declared.TOPIC_FIRST[run, declared.TEXT_RATE]
        yield gate(context, "19", f"one-hot embeddings, {name}", comparison, above(HALF), TABLE_21)
    for name, (run, rate) in declared.CAPTIONED.items():
        # The caption is of trained models of the release.
        kind = STATED if run in (RELEASED_ADAM, RELEASED_SGD) else OWN
        source = f"{TABLE_21}, caption"
        bar = below(0.0) if (run, rate) == EXCEPTED else above(0.0)
        yield gate(context, "35", f"caption, {name}", declared.CAPTION[name], bar, source, kind=kind)
    yield from _sgd(context)
    yield from _magnitudes(context)
    yield from _audit(context)
    yield from _diagonal(context)
    blocks = declared.TOPIC_FIRST[BLOCK_SQ, declared.FROZEN_RATE]
    yield gate(context, "25", "squared loss", blocks, above(HALF), SECTION.format("2.1.4, Theorem 2.1.3"))


def _sgd(context: Results) -> Iterator[Gate]:
    """Yield the gates on SGD. At a rate of 0.01 one printed run of three had learned, so that nothing is stated."""
    learned, some, long = (
        declared.TOPIC_FIRST[key] for key in ((RELEASED_SGD, 0.03), (RELEASED_SGD, 0.01), (ATTENTION_SGD, 20.0))
    )
    yield gate(context, "20", "released model, rate 0.03", learned, above(HALF), TABLE_21)
    yield gate(context, "20", "released model, rate 0.003", declared.FAILED, above(HALF), f"{TABLE_21}, caption")
    yield gate(context, "20", "released model, rate 0.01", some, above(HALF), TABLE_21, kind=OWN)
    yield gate(context, "20", "one-hot embeddings, rate times steps of 50000", long, above(HALF), AUDIT, kind=OWN)
    yield gate(context, "20", "one-hot embeddings, rate 0.03, few steps", declared.SHORT, above(HALF), AUDIT, kind=OWN)


def _magnitudes(context: Results) -> Iterator[Gate]:
    """Yield the gates on printed averages: the median of models lies within two printed standard deviations, or within
    a tenth of what is printed where these are less."""
    printed = {(row["run"], row["lr"]): row for row in context.table("averages").iter_rows(named=True)}
    for row, (run, rate, optimiser) in declared.ROWS.items():
        row_printed = printed.get((f"Table 2.1, {optimiser}", rate))
        if row_printed is None:  # the experiment that copies the table has been taken out of the study
            continue
        kind = OWN if run == ATTENTION_RELEASED else CORRECTED
        for category, name in WORDS.items():
            value, spread = (row_printed[f"{PRINTED[category]}{end}"] for end in ("", "_sd"))
            off = max(SPREADS * spread, LEAST * value)
            yield gate(
                context,
                "21",
                f"{name}, shifted labels, {row}",
                declared.SHIFTED[category, row],
                between(value - off, value + off),
                AUDIT,
                published=Published(value),
                kind=kind,
            )
        yield gate(
            context,
            "21",
            f"other topics, right labels, {row}",
            declared.RIGHT[row],
            at_most(0.005),
            AUDIT,
            published=Published(row_printed["diff_topic"]),
            kind=OWN,
        )


def _audit(context: Results) -> Iterator[Gate]:
    every, start = DOCUMENTS * TOKENS**2, 2 * DOCUMENTS * (TOKENS - 1)
    for name, measure, value, bars in (
        (
            "all pairs",
            f"pairs in the released counts, less the {every} of 500 documents of START and 99 words",
            sum(RELEASED.values()) - every,
            within(0.0, 0.0),
        ),
        (
            "right labels, all pairs",
            "pairs with right labels, less those in the released counts",
            sum(RIGHT.values()) - sum(RELEASED.values()),
            within(0.0, 0.0),
        ),
        (
            "right labels, pairs without a label",
            "pairs without a label with right labels, less those of START",
            RIGHT["unlabelled"] - start,
            within(0.0, 0.0),
        ),
        (
            "released counts, pairs without a label",
            f"pairs without a label in the released counts, less the {start} of START",
            RELEASED["unlabelled"] - start,
            above(0.0),
        ),
    ):
        yield Gate("22", name, measure, AUDIT, bars, Measured(float(value)), kind=OWN)
    table = context.table("pair_shares")
    for offset, counts, labels in ((4, RELEASED, "labels four ids too far"), (0, RIGHT, "right labels")):
        for category, count in counts.items():
            if (offset, category) in ((0, "same_word"), (0, "unlabelled")):
                continue  # there are as many pairs of equal words with either labels, and START has none
            share = Published(count / every, derivation=f"{count} of {every} pairs in the released documents")
            measurement = evidence.one_row(
                table, "no documents", value="pair_share", label_offset=offset, category=category
            )
            yield Gate(
                "22",
                f"{category.replace('_', ' ')}, {labels}",
                f"share of {PAIRS[category]} among pairs of START and 99 words of our documents, with {labels}",
                AUDIT,
                within(share.value, 0.01),
                *measurement,
                published=share,
                kind=OWN,
            )
    rows = context.table("averages").filter(source="Li 2025, Table 2.1").select(*PRINTED.values()).rows()
    for counts, labels, end, bars in (
        (
            (RELEASED, "labels four ids too far", largest, at_most(0.0003)),
            (RIGHT, "right labels", smallest, above(0.0003)),
        )
        if rows
        else ()
    ):
        known = [counts[kind] for kind in PRINTED]
        means = [sum(n * x for n, x in zip(known, row, strict=True)) / sum(known) for row in rows]
        gap = end(abs(mean - RAW_MEAN) for mean in means)
        yield Gate(
            "22",
            f"printed averages, {labels}",
            f"distance of a row's mean over pairs with a label, by the counts of {labels}, from {RAW_MEAN:g}, the mean "
            f"over all pairs, which lengths fix, {end.__name__} of the rows",
            AUDIT,
            bars,
            Measured(gap),
            kind=OWN,
        )
    for norm, comparison in declared.POOLED.items():
        yield gate(context, "23", norm, comparison, above(HALF), AUDIT, kind=OWN)


def _diagonal(context: Results) -> Iterator[Gate]:
    for name, run in declared.DIAGONALS.items():
        for order in declared.ORDERS:
            comparison = declared.ORDER[order, run, declared.FROZEN_RATE]
            yield gate(context, "24", f"{name}, {order}", comparison, above(HALF), TABLE_22)
        for kind, (low, high, value) in SIZES.items():
            yield gate(
                context,
                "24",
                f"{name}, size, {WORDS[kind]}",
                declared.SIZES[kind, run],
                between(low, high),
                TABLE_22,
                published=Published(value),
                kind=OWN,
            )
    for name, (run, rate) in declared.VISIBLE.items():
        for order in declared.ORDERS:  # Table 2.2 is of cross-entropy
            comparison = declared.ORDER[order, run, rate]
            yield gate(context, "24", f"{name}, {order}", comparison, above(HALF), TABLE_22, kind=OWN)
