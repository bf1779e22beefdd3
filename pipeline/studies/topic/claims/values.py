"""Claims 8 to 14 and 33: value matrices with uniform and with trained attention, and the documents."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most, below
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.topic.claims.common import SECTION, between, contrast
from pipeline.studies.topic.names import (
    DOCUMENTS,
    FROZEN_ADAM,
    FROZEN_EXACT,
    FROZEN_PUBLISHED,
    FROZEN_RELEASED,
    FROZEN_SGD_CE,
    FROZEN_SGD_SQ,
    JOINT_ADAM,
    JOINT_LONG,
    JOINT_LONG_RELEASED,
    JOINT_PUBLISHED,
    JOINT_SGD_CE,
)
from schemas.claims import OWN

FIGURE_22, FIGURE_25, FIGURE_26 = (
    SECTION.format(f"2.1.5, Figure {number}") for number in ("2.2", "2.5", "2.6")
)
OURS = "our extension"
PUBLISHED = "averaged squared loss, SGD and the published rate"
NAMES = {FROZEN_ADAM: "Adam", FROZEN_SGD_SQ: "SGD"}
PANELS = (  # how a panel is called, its run, its cell without a penalty
    ("cross-entropy, Adam", FROZEN_ADAM, "ce"), ("cross-entropy, SGD", FROZEN_SGD_CE, "ce"),
    ("squared, Adam", FROZEN_ADAM, "sq"), ("squared, SGD", FROZEN_SGD_SQ, "sq"),
)  # fmt: skip
# With squared loss and SGD attention has not moved after the steps of scale quick: values are those of uniform
# attention, which are judged above.
JOINT_PANELS = (
    ("cross-entropy, Adam", JOINT_ADAM, "ce"),
    ("cross-entropy, SGD", JOINT_SGD_CE, "ce"),
    ("squared, Adam", JOINT_ADAM, "sq"),
)
TOLERANCES = {"block_mean": 0.006, "diff_mean": 0.004, "diag_mean": 0.04, "held_loss": 0.01}
# Statistics of the blocks of a matrix, as `pipeline.studies.topic.measures.blocks` has them.
ABOVE = (
    "probability that a same-topic entry off the diagonal is above a different-topic one, lowest of the seeds"
)
LARGEST = (
    "share of a row's largest entry in its block, mean over rows, median over seeds (0.1 in an even block)"
)
COLUMNS = (
    "number of columns that hold some row's largest entry in its block, divided by the number of rows, median over "
    "seeds"
)
COMMON = "share of training documents in which two to four topics have at least a twentieth each"
CALLED = {
    "block_mean": "mean of blocks", "diff_mean": "mean outside blocks", "diag_mean": "mean of the diagonal",
    "held_loss": "loss on held-out documents",
}  # fmt: skip


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    yield from _floors(context)
    yield from _closed_form(context)
    for name, run, cell in PANELS:
        for penalty, bar, source in (("-l2", 0.95, FIGURE_22), ("", 0.9, FIGURE_25)):
            words = "with L2" if penalty else "without L2"
            measurement = contrast(context, f"auc {run} {cell}{penalty}")
            yield Gate("9", f"{name}, {words}", ABOVE, source, at_least(bar), *measurement)
    for name, run, cell in JOINT_PANELS:
        measurement = contrast(context, f"auc {run} {cell}")
        yield Gate("9", f"{name}, attention trained", ABOVE, FIGURE_26, at_least(0.9), *measurement)
    yield Gate(
        "9",
        "cross-entropy, Adam, attention trained, few columns",
        f"{COLUMNS} (0.65 where rows are independent)",
        OURS,
        below(0.5),
        *contrast(context, f"top_distinct {JOINT_ADAM} ce"),
        kind=OWN,
    )
    yield Gate(
        "9",
        "squared, Adam, attention trained, one entry in a row",
        LARGEST,
        OURS,
        above(0.5),
        *contrast(context, f"top_share {JOINT_ADAM} sq"),
        kind=OWN,
    )
    yield from _published(context)
    for end, bars, value in (
        ("smallest", at_least(0.00055), 0.00060286524),
        ("largest", at_most(0.0007), 0.0006370574),
    ):
        yield Gate(
            "11",
            f"initial weights, {end}",
            f"standard deviation of means of 1000 entries outside blocks before training, {end} of all models",
            SECTION.format("2.1.5, captions of Figures 2.5 and 2.6"),
            bars,
            *contrast(context, f"initial subset, {end}"),
            Published(value),
            kind=OWN,
        )
    yield from _diagonal(context)
    for cell, name, low, high in (("ce", "cross-entropy", -0.03, 0.05), ("sq", "squared", 0.0, 0.10)):
        yield Gate(
            "13",
            name,
            "share of the held-out loss of frozen attention that joint training saves, median over seeds",
            SECTION.format("2.1.4.2"),
            between(low, high),
            *contrast(context, f"joint gain {cell}"),
        )
    ratio = "mean of the diagonal over the size of that of the rest of blocks"
    yield Gate(
        "14",
        "masks are keys",
        f"{ratio}, lowest of the seeds",
        OURS,
        at_least(3.0),
        *contrast(context, "long thesis, least ratio"),
        kind=OWN,
    )
    yield Gate(
        "14",
        "masks are no keys",
        f"{ratio}, highest of the seeds",
        OURS,
        at_most(2.0),
        *contrast(context, "long released, largest ratio"),
        kind=OWN,
    )
    yield from _matching(context)
    yield from _documents(context)


def _floors(context: Results) -> Iterator[Gate]:
    source = "our extension: what the mixture of a document allows"
    yield Gate(
        "1",
        "floor, cross-entropy",
        "loss on held-out documents, in nats, smallest of all models with one-hot embeddings",
        source,
        at_least(2.88),
        *contrast(context, "held cross-entropy"),
        kind=OWN,
    )
    yield Gate(
        "1",
        "floor, squared loss, uniform attention",
        "loss on held-out documents, smallest of all models with uniform attention and no penalty",
        source,
        at_least(0.94),
        *contrast(context, "held squared loss, uniform attention"),
        kind=OWN,
    )


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
    for run, name in NAMES.items():
        for cell in ("sq", "sq-l2"):
            for what, bar in TOLERANCES.items():
                if run == FROZEN_SGD_SQ and what in ("diag_mean", "held_loss"):
                    continue  # the diagonal lies in directions that SGD has not reached
                yield Gate(
                    "8",
                    f"{name}, {'with' if cell == 'sq-l2' else 'without'} L2, {CALLED[what]}",
                    f"distance of the {CALLED[what]} from that of the closed form, largest of the seeds",
                    source,
                    at_most(bar),
                    *contrast(context, f"closed form {run} {cell} {what}"),
                    kind=OWN,
                )


def _published(context: Results) -> Iterator[Gate]:
    for name, run, source, value, low, high in (
        ("uniform attention", FROZEN_PUBLISHED, FIGURE_25, 0.00552563, 0.004, 0.0075),
        ("attention trained", JOINT_PUBLISHED, FIGURE_26, 0.006545205, 0.005, 0.009),
    ):
        yield Gate(
            "10",
            f"{name}, mean of blocks",
            f"mean of blocks with {PUBLISHED}, median over seeds",
            source,
            between(low, high),
            *contrast(context, f"block mean {run} sq"),
            Published(value),
            scale_needed="paper",
        )
        yield Gate(
            "10",
            f"{name}, contrast",
            f"mean of blocks less that outside them with {PUBLISHED}, in standard deviations of the mean of 1000 "
            "entries outside, median over seeds",
            source,
            at_least(5.0),
            *contrast(context, f"block in standard deviations {run} sq"),
        )


def _diagonal(context: Results) -> Iterator[Gate]:
    source = SECTION.format("2.1.5, Figures 2.2 and 2.10")
    measure = "mean of the diagonal over that of the rest of blocks"
    for gate, run, cell, conditions in (
        ("Adam, without L2", FROZEN_ADAM, "sq", above(1.4)),
        ("Adam, with L2", FROZEN_ADAM, "sq-l2", below(1.25)),
        ("Adam, masks are no keys", FROZEN_RELEASED, "sq", below(1.25)),
        ("Adam, exact topics, without L2", FROZEN_EXACT, "sq", above(1.4)),
    ):
        measurement = contrast(context, f"diagonal {run} {cell}")
        yield Gate("12", gate, f"{measure}, median over seeds", source, conditions, *measurement, kind=OWN)
    optima = context.table("closed_form")
    for gate, where, conditions in (
        ("closed form, without L2", {"masking": "thesis", "l2": 0.0}, above(1.4)),
        ("closed form, with L2", {"masking": "thesis", "l2": 0.001}, below(1.25)),
        ("closed form, masks are no keys", {"masking": "released", "l2": 0.0}, below(1.25)),
    ):
        rows = optima.filter(dataset=DOCUMENTS, intercept=True, **where)
        measurement = evidence.reduced(
            rows,
            pl.col("diag_mean").first() / pl.col("same_offdiag_mean").first(),
            "not solved at this scale",
        )
        yield Gate("12", gate, measure, OURS, conditions, *measurement, kind=OWN)


def _matching(context: Results) -> Iterator[Gate]:
    """Yield the gates on what such values are: a matching of words within topics, whether or not masks are keys."""
    for name, run in (("masks are keys", JOINT_LONG), ("masks are no keys", JOINT_LONG_RELEASED)):
        measurement = contrast(context, f"top_share {run} sq")
        yield Gate("14", f"{name}, one entry in a row", LARGEST, OURS, above(0.5), *measurement, kind=OWN)
        yield Gate(
            "14",
            f"{name}, one entry in a column",
            COLUMNS,
            OURS,
            at_least(0.9),
            *contrast(context, f"top_distinct {run} sq"),
            kind=OWN,
        )
    yield Gate(
        "14",
        "words matched with themselves",
        "share of rows whose largest entry in its block is diagonal, masks as keys less masks as no keys, median over "
        "seeds",
        OURS,
        above(0.0),
        *contrast(context, "long, words matched with themselves"),
        kind=OWN,
    )


def _documents(context: Results) -> Iterator[Gate]:
    rows = context.table("doc_moments").filter(dataset=DOCUMENTS, split="train")
    source = SECTION.format("2.1.5.1")
    mean = "mean over training documents"
    for gate, column, measure, low, high in (
        ("squared shares", "mean_sum_p2", f"sum of the squared shares of topics, {mean}", 0.540, 0.567),
        ("two to four topics", "share_2_to_4", COMMON, 0.80, 0.86),
        ("length", "mean_len", f"number of tokens, {mean}", 124.0, 126.0),
        ("entropy", "mean_entropy", f"entropy of the shares of topics, in nats, {mean}", 0.8265, 0.8665),
    ):
        measurement = evidence.reduced(rows, pl.col(column).first(), "no documents")
        yield Gate("33", gate, measure, source, between(low, high), *measurement, kind=OWN)
