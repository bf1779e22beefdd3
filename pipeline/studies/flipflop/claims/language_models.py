"""Claim 25: language models and the light switch. Stand-ins are never held against published accuracies."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import at_least, at_most
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.flipflop.names import STANDINS
from schemas.claims import OWN, STATED

SOURCE = "Liu 2024, section {}"
LIGHT, CHAT = SOURCE.format("3.5.6.2.1, Figure 3.24"), SOURCE.format("3.5.6.2.1, Figure 3.29")
FAR = 4.5  # standard errors that a rule may be off its law


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 25."""
    table, contrasts = context.table("lm_eval"), context.table("contrasts")
    yield Gate(
        "25", "oracle", "least accuracy of the oracle, at all lengths", LIGHT, at_least(1.0),
        *evidence.reduced(table.filter(kind="oracle"), column_min("accuracy"), "the oracle was not asked"), kind=OWN,
    )  # fmt: skip
    rules = table.filter(pl.col("kind").is_in(["ngram", "heuristic"]), pl.col("expected") < 1)
    p = pl.col("expected")
    off = rules.with_columns(z=(pl.col("accuracy") - p).abs() / (p * (1 - p) / pl.col("n")).sqrt())
    yield Gate(
        "25", "n-grams", "standard errors between the accuracy of a rule and the law of its strings, most of all rules",
        LIGHT, at_most(FAR), *evidence.reduced(off, column_max("z"), "no rule was asked"), kind=OWN,
    )  # fmt: skip
    names = list(STANDINS)
    for run, label in STANDINS.items():
        yield Gate(
            "25", f"stand-in, {label}, length", "accuracy at the longest strings less that at the shortest", LIGHT,
            at_most(0.0),
            *evidence.one_row(
                contrasts, f"{run} has no models", contrast=f"standin {run}, longest - shortest"
            ),
            kind=OWN,
        )  # fmt: skip
    for small, large in itertools.pairwise(names):
        yield Gate(
            "25", f"stand-in, {STANDINS[large]}, size", f"accuracy over all lengths less that of {STANDINS[small]}",
            LIGHT, at_least(0.0),
            *evidence.one_row(contrasts, f"{large} has no models", contrast=f"standin {large} - {small}"), kind=OWN,
        )  # fmt: skip
    yield from _pretrained(contrasts)
    yield Gate(
        "25", "ChatGPT", "tokens up to which a chat model that was told the rules answers right (the text: about 400)",
        CHAT, (), None,
        "a chat model as of May 2023 cannot be asked again", kind=STATED,
    )  # fmt: skip


def _pretrained(contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield that longer strings are harder for pretrained models, and larger models better."""
    missing = "needs-external: no folder of models is named (experiments.flipflop-language-models.pretrained)"
    known = contrasts.filter(pl.col("contrast").str.starts_with("pretrained "))
    longer = known.filter(pl.col("contrast").str.ends_with("longest - shortest"))
    larger = known.filter(~pl.col("contrast").str.ends_with("longest - shortest"))
    yield Gate(
        "25", "pretrained, length", "accuracy at the longest strings less that at the shortest, largest of all models",
        LIGHT, at_most(0.0), *evidence.reduced(longer, column_max("value"), missing),
    )  # fmt: skip
    yield Gate(
        "25", "pretrained, size", "accuracy less that of the next smaller model, least of all pairs", LIGHT,
        at_least(0.0), *evidence.reduced(larger, column_min("value"), missing),
    )  # fmt: skip
