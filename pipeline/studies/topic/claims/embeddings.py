"""Claims 15 to 18: trained embeddings."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit.conditions import above, at_least
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.topic.claims.common import SECTION, between, contrast
from pipeline.studies.topic.names import (
    ALL,
    ALL_SGD_CE,
    ALL_SGD_SQ,
    ONLY_CE,
    ONLY_SGD_CE,
    ONLY_SGD_SQ,
    ONLY_SQ,
    UNIT,
)
from schemas.claims import OWN, STATED

THEOREM = SECTION.format("2.1.3, Theorem 2.1.1")
FIGURE = SECTION.format("2.1.5, Figure 2.1")
PANELS = (
    ("everything, cross-entropy, Adam", ALL, "ce"), ("everything, cross-entropy, SGD", ALL_SGD_CE, "ce"),
    ("everything, squared, Adam", ALL, "sq"), ("everything, squared, SGD", ALL_SGD_SQ, "sq"),
    ("embeddings alone, cross-entropy, Adam", ONLY_CE, "ce"),
    ("embeddings alone, cross-entropy, SGD", ONLY_SGD_CE, "ce"),
    ("embeddings alone, squared, Adam", ONLY_SQ, "sq"), ("embeddings alone, squared, SGD", ONLY_SGD_SQ, "sq"),
)  # fmt: skip

# Panels for which the source asks for no blocks off the diagonal: "a diagonal pattern is a special case" (caption).
DIAGONAL = ((ALL, "sq"), (ALL_SGD_SQ, "sq"))


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    yield Gate(
        "15",
        "same topic",
        "sum of a word's inner products with its topic, mean over words, median over seeds (1.156 in the theorem)",
        THEOREM,
        between(1.05, 1.25),
        *contrast(context, f"block_sum_same {ONLY_SQ} sq"),
        kind=OWN,
    )
    yield Gate(
        "15",
        "other topics",
        "sum of a word's inner products with another topic, mean over words, median over seeds (0 in the theorem)",
        THEOREM,
        between(-0.05, 0.05),
        *contrast(context, f"block_sum_diff {ONLY_SQ} sq"),
        kind=OWN,
    )
    for name, run, cell in PANELS:
        yield Gate(
            "16",
            f"{name}, inner products",
            "mean inner product of different words of one topic less that of words of two topics, lowest of the seeds",
            FIGURE,
            above(0.0),
            *contrast(context, f"block above rest {run} {cell}"),
        )
        yield Gate(
            "16",
            f"{name}, blocks",
            "probability that the inner product of different words of one topic is above that of words of two topics, "
            "lowest of the seeds",
            FIGURE,
            at_least(0.9),
            *contrast(context, f"gram auc {run} {cell}"),
            kind=OWN if (run, cell) in DIAGONAL else STATED,
        )
    for name, run in (("everything", ALL), ("embeddings alone", ONLY_CE)):
        yield Gate(
            "16",
            f"{name}, cross-entropy, Adam, cosines",
            "mean cosine of different words of one topic less that of words of two topics, lowest of the seeds",
            FIGURE,
            at_least(0.3),
            *contrast(context, f"cosine gap {run} ce"),
            kind=OWN,
        )
    yield Gate(
        "17",
        "cross-entropy, Adam",
        "loss on held-out documents of embeddings alone less that of everything trained, in nats, median over seeds",
        SECTION.format("2.1.3"),
        between(0.0, 0.15),
        *contrast(context, "price of embeddings alone, ce"),
    )
    source = "our extension: embeddings that start at unit size"
    yield Gate(
        "18",
        "before training",
        "mean of the diagonal over the size of that of the rest of blocks, before training, lowest of the seeds",
        source,
        at_least(50.0),
        *contrast(context, f"diagonal over rest of blocks, before {UNIT} ce"),
        kind=OWN,
    )
    for when in ("before", "after"):
        yield Gate(
            "18",
            f"{when} training, entries",
            f"smallest entry of the diagonal over the largest other, {when} training, lowest of the seeds",
            source,
            above(1.0),
            *contrast(context, f"least diagonal over largest other entry, {when} {UNIT} ce"),
            kind=OWN,
        )
