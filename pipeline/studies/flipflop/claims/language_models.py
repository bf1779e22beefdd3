"""Claim 25: language models and the light switch. Stand-ins are never held against published accuracies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.flipflop import comparisons
from pipeline.studies.flipflop.claims.common import SECTION
from pipeline.studies.flipflop.names import STANDINS
from schemas.claims import ANALOGUE, EXTERNAL, OWN, STATED

LIGHT, CHAT = SECTION.format("3.5.6.2.1, Figure 3.24"), SECTION.format("3.5.6.2.1, Figure 3.29")
ABSENT = f"{EXTERNAL}: no folder of models is named (experiments.flipflop-language-models.pretrained)"


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 25."""
    table, gate = context.table("lm_eval"), partial(evidence.gate, context)
    yield Gate(
        "25",
        "oracle",
        "least accuracy of the oracle, at all lengths",
        LIGHT,
        at_least(1.0),
        *evidence.reduced(table.filter(kind="oracle"), column_min("accuracy"), "the oracle was not asked"),
        kind=OWN,
    )
    rules = table.filter(pl.col("kind").is_in(["ngram", "heuristic"]), pl.col("expected") < 1)
    p = pl.col("expected")
    off = rules.with_columns(z=(pl.col("accuracy") - p).abs() / (p * (1 - p) / pl.col("n")).sqrt())
    yield Gate(
        "25",
        "n-grams",
        "standard errors between the accuracy of a rule and the law of its strings, most of all rules",
        LIGHT,
        at_most(context.settings.far),
        *evidence.reduced(off, column_max("z"), "no rule was asked"),
        kind=OWN,
    )
    for run, comparison in comparisons.STORY_LENGTH.items():
        yield gate("25", f"stand-in, {STANDINS[run]}, length", comparison, at_most(0.0), LIGHT, kind=ANALOGUE)
    for (_, large), comparison in comparisons.STORY_SIZE.items():
        yield gate("25", f"stand-in, {STANDINS[large]}, size", comparison, at_least(0.0), LIGHT, kind=ANALOGUE)
    for name, comparison in (("length", comparisons.PRETRAINED_LENGTH), ("size", comparisons.PRETRAINED_SIZE)):
        asked = gate("25", f"pretrained, {name}", comparison, above(0.5), LIGHT)
        yield asked if asked.measured else replace(asked, missing=ABSENT)
    yield Gate(
        "25",
        "ChatGPT",
        "tokens up to which a chat model that was told the rules answers right (the text: about 400)",
        CHAT,
        (),
        None,
        f"{EXTERNAL}: a chat model as of May 2023 cannot be asked again",
        kind=STATED,
    )
