"""Claims 8 to 14 and 33: value matrices with uniform and with trained attention, and the documents."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most, below
from pipeline.kit.evidence import gate
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.topic import comparisons as declared
from pipeline.studies.topic.claims.common import HALF, SECTION, between
from pipeline.studies.topic.names import (
    DOCUMENTS,
    FROZEN_ADAM,
    FROZEN_EXACT,
    FROZEN_RELEASED,
    JOINT_ADAM,
    RELEASED_EXAMPLE,
    RELEASED_JOINT,
)
from schemas.claims import OWN, STATED

FIGURE_22, FIGURE_25, FIGURE_26 = (SECTION.format(f"2.1.5, Figure {number}") for number in ("2.2", "2.5", "2.6"))
OURS = "our extension"
RELEASE = "our audit of the release, attention.txt of its example"
# Of the columns of words of the value matrix in that file (YuchenLi01/transformer_topic_model_LDA, commit 42781529):
# mean squared norm, and mean inner product of those of two words of two topics.
EXAMPLE = {"square": 16.0, "other": -0.18}
CALLED = {"square": "squared norm of columns", "other": "columns of two topics"}
EVENNESS = 0.2  # twice the share of a row's largest entry in an even block
COMMON = "share of training documents in which two to four topics have at least a twentieth each"


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    source = "our extension: what the mixture of a document allows"
    floors = {"floor, cross-entropy": "ce", "floor, squared loss, uniform attention": "sq"}
    for name, cell in floors.items():
        yield gate(context, "1", name, declared.FLOORS[cell], above(HALF), source, kind=OWN)
    yield from _closed_form(context)
    yield from _blocks(context)
    yield from _published(context)
    yield from _example(context)
    yield gate(
        context,
        "11",
        "initial weights",
        declared.INITIAL,
        between(0.00055, 0.0007),
        SECTION.format("2.1.5, captions of Figures 2.5 and 2.6"),
        published=Published(0.00060286524, high=0.0006370574),
        kind=OWN,
    )
    yield from _diagonal(context)
    for cell, name in (("ce", "cross-entropy"), ("sq", "squared")):
        bars = at_most(context.settings.slight)
        yield gate(context, "13", name, declared.FROZEN_COST[cell], bars, SECTION.format("2.1.4.2"))
    yield from _matching(context)
    yield from _documents(context)


def _closed_form(context: Results) -> Iterator[Gate]:
    source = "our extension: least squares on the same documents"
    optima = context.table("closed_form")
    measurement = evidence.largest(optima, "solver_gap", "no closed form at this scale")
    yield Gate(
        "8",
        "conjugate gradients",
        "distance of an entry from the closed form, largest over all problems",
        source,
        at_most(1e-4),
        *measurement,
        kind=OWN,
    )
    for (run, cell, what), comparison in declared.CLOSED.items():
        penalty = "with" if cell == "sq-l2" else "without"
        name = f"{declared.OPTIMISERS[run]}, {penalty} L2, {declared.CALLED[what]}"
        yield gate(context, "8", name, comparison, above(HALF), source, kind=OWN)


def _blocks(context: Results) -> Iterator[Gate]:
    """Yield what claim 9 asks for: entries of blocks that are above all others, and blocks that are even."""
    for name, key in declared.FROZEN.items():
        penalised = declared.PENALISED[name]
        yield gate(context, "9", f"{name}, with L2", declared.BLOCKS[penalised], above(HALF), FIGURE_22)
        yield gate(context, "9", f"{name}, with L2, even blocks", declared.EVEN[penalised], below(EVENNESS), FIGURE_22)
        yield gate(context, "9", f"{name}, without L2", declared.BLOCKS[key], above(HALF), FIGURE_25)
    for name, key in declared.TRAINED.items():
        both = f"{name}, attention trained"
        yield gate(context, "9", both, declared.BLOCKS[key], above(HALF), FIGURE_26)
        yield gate(context, "9", f"{both}, even blocks", declared.EVEN[key], below(EVENNESS), FIGURE_26)
    for name, comparison in (
        *((name, declared.MOVED[key]) for name, key in declared.JOINT.items()),
        ("released model, squared, SGD", declared.MOVED[RELEASED_JOINT, "sq"]),
    ):
        moved = f"{name}, attention trained, keys moved"
        yield gate(context, "9", moved, comparison, at_least(1.1), OURS, kind=OWN)
    for loss, cell in (("cross-entropy", "ce"), ("squared", "sq")):
        mild = f"{loss}, Adam, L2 is mild"
        yield gate(context, "9", mild, declared.PENALTY_COST[cell], at_most(context.settings.slight), OURS, kind=OWN)
    few = "cross-entropy, Adam, attention trained, few columns"
    yield gate(context, "9", few, declared.COLUMNS[JOINT_ADAM, "ce"], below(0.5), OURS, kind=OWN)


def _published(context: Results) -> Iterator[Gate]:
    for words, source, value, low, high in (
        ("uniform attention", FIGURE_25, 0.00552563, 0.004, 0.0075),
        ("attention trained", FIGURE_26, 0.006545205, 0.005, 0.009),
    ):
        for name, kind in ((words, STATED), (f"{words}, one-hot embeddings", OWN)):
            yield gate(
                context,
                "10",
                f"{name}, mean of blocks",
                declared.BLOCK_MEAN[name],
                between(low, high),
                source,
                published=Published(value),
                kind=kind,
            )
            yield gate(context, "10", f"{name}, contrast", declared.BLOCK_LEAD[name], at_least(5.0), source, kind=kind)


def _example(context: Results) -> Iterator[Gate]:
    """Yield the gates on the value matrix that the release holds: sizes within a factor of two, and signs, come out
    with normalised embeddings, and do not with one-hot ones."""
    half, twice = (value * EXAMPLE["square"] for value in (0.5, 2.0))
    for name, run in declared.EXAMPLES.items():
        normalised = run == RELEASED_EXAMPLE
        for what, bars in (
            ("square", between(half, twice) if normalised else above(twice)),
            ("other", at_most(0.0) if normalised else above(0.0)),
        ):
            yield gate(
                context,
                "34",
                f"{name}, {CALLED[what]}",
                declared.EXAMPLE[run, what],
                bars,
                RELEASE,
                published=Published(EXAMPLE[what]),
                kind=OWN,
            )


def _diagonal(context: Results) -> Iterator[Gate]:
    source = SECTION.format("2.1.5, Figures 2.2 and 2.10")
    heavy, gone = above(1.4), below(1.25)
    for name, key, bars in (
        ("Adam, without L2", (FROZEN_ADAM, "sq"), heavy),
        ("Adam, with L2", (FROZEN_ADAM, "sq-l2"), gone),
        ("Adam, masks are no keys", (FROZEN_RELEASED, "sq"), gone),
        ("Adam, exact topics, without L2", (FROZEN_EXACT, "sq"), heavy),
    ):
        yield gate(context, "12", name, declared.DIAGONAL[key], bars, source, kind=OWN)
    optima = context.table("closed_form")
    for name, where, bars in (
        ("closed form, without L2", {"masking": "thesis", "l2": 0.0}, heavy),
        ("closed form, with L2", {"masking": "thesis", "l2": 0.001}, gone),
        ("closed form, masks are no keys", {"masking": "released", "l2": 0.0}, gone),
    ):
        rows = optima.filter(dataset=DOCUMENTS, intercept=True, **where)
        measurement = evidence.reduced(
            rows, pl.col("diag_mean").first() / pl.col("same_offdiag_mean").first(), "not solved at this scale"
        )
        measure = "mean of the diagonal over that of the rest of blocks"
        yield Gate("12", name, measure, OURS, bars, *measurement, kind=OWN)


def _matching(context: Results) -> Iterator[Gate]:
    """Yield the gates on what such values are: a matching of words within topics, whether or not masks are keys."""
    for name, run in declared.LONG.items():
        yield gate(context, "14", name, declared.LONG_DIAGONAL[name], above(HALF), OURS, kind=OWN)
        row, column = declared.EVEN[run, "sq"], declared.COLUMNS[run, "sq"]
        yield gate(context, "14", f"{name}, one entry in a row", row, above(0.5), OURS, kind=OWN)
        yield gate(context, "14", f"{name}, one entry in a column", column, at_least(0.9), OURS, kind=OWN)
    matched = "words matched with themselves"
    yield gate(context, "14", matched, declared.SELF_MATCHED, above(0.0), OURS, kind=OWN)


def _documents(context: Results) -> Iterator[Gate]:
    rows = context.table("doc_moments").filter(dataset=DOCUMENTS, split="train")
    source = SECTION.format("2.1.5.1")
    mean = "mean over training documents"
    for name, column, measure, low, high in (
        ("squared shares", "mean_sum_p2", f"sum of the squared shares of topics, {mean}", 0.540, 0.567),
        ("two to four topics", "share_2_to_4", COMMON, 0.80, 0.86),
        ("length", "mean_len", f"number of tokens, {mean}", 124.0, 126.0),
        ("entropy", "mean_entropy", f"entropy of the shares of topics, in nats, {mean}", 0.8265, 0.8665),
    ):
        measurement = evidence.reduced(rows, pl.col(column).first(), "no documents")
        yield Gate("33", name, measure, source, between(low, high), *measurement, kind=OWN)
