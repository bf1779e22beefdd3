"""Claims 28 to 32: stand-ins for natural language, and encoders that were trained elsewhere.

A stand-in is never held against a published number. What the source says of pretrained models is tested on the encoders
that are measured, and else not tested.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import extremes
from pipeline.kit.conditions import Condition, above, at_least, below, within
from pipeline.kit.evidence import Evidence, gate
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured
from pipeline.studies.topic import comparisons as declared
from pipeline.studies.topic.claims.common import HALF, SECTION
from pipeline.studies.topic.comparisons import DEBIASED, OUTPUT, RAW, SAID, TABLE, Kin
from pipeline.studies.topic.names import (
    ENCODER,
    LAYERS,
    LAYERS_FAST,
    OVERLAPPING,
    READER_EMBEDDED,
    READER_ONE_HOT,
    THRESHOLDS,
)
from schemas.claims import OWN

TABLE_23, TABLE_24 = (SECTION.format(f"2.1.5.4, Table {n}") for n in ("2.3", "2.4"))
TABLE_25 = SECTION.format("2.1.6.2, Table 2.5")
FIGURE_23 = SECTION.format("2.1.5.4, Figure 2.3")
STANDIN = "our stand-in for section 2.1.5.4"
MISSING = "needs the extra of requirements-pretrained.txt: no encoder is named in experiments.topic-pretrained.measured"
CORPORA = {key: f"{declared.STANDINS[key[1]]}, {declared.TOPICS[key[2]]}" for key in declared.CORPORA}


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 28 to 32."""
    for threshold in THRESHOLDS:
        yield from _kinships(context, threshold)
        yield from _companions(context, threshold)
    for name, comparison in (
        ("values first", declared.ONSET[LAYERS]),
        ("negative control", declared.ONSET[LAYERS_FAST]),
        ("direction first", declared.TURNING),
    ):
        yield gate(context, "32", f"stand-in, {name}", comparison, above(HALF), STANDIN, kind=OWN)
    yield from _pretrained(context)
    yield from _published_words(context)


def _kinships(context: Results, threshold: float) -> Iterator[Gate]:
    def stand_in(
        claim: str,
        name: str,
        who: tuple[str, str],
        what: tuple[str, str],
        bars: tuple[Condition, ...],
        where: tuple[str, str] = (OVERLAPPING, "true"),
    ) -> Gate:
        comparison = declared.KINSHIP[Kin(*who, *where, threshold, *what)]
        gate_name = f"stand-in, {name}, threshold {threshold:g}"
        return gate(context, claim, gate_name, comparison, bars, STANDIN, kind=OWN)

    untrained, encoder = (ENCODER, "NLM-0"), (ENCODER, "NLM-3")
    one_hot, embedded = (READER_ONE_HOT, "NLM-1"), (READER_EMBEDDED, "NLM-2")
    for measure, bars in ((DEBIASED, within(1.0, 0.01)), (RAW, above(1.03)), (OUTPUT, within(1.0, 0.05))):
        yield stand_in("28", measure, untrained, (measure, "ratio"), bars)
    yield stand_in("29", "one layer, difference", embedded, (TABLE, "difference"), at_least(0.15))
    yield stand_in("29", "small encoder, difference", encoder, (OUTPUT, "difference"), at_least(0.15))
    yield stand_in("29", "small encoder, ratio", encoder, (OUTPUT, "ratio"), at_least(1.5))
    for name, who in (("one layer, one-hot", one_hot), ("one layer, embedded", embedded)):
        yield stand_in("30", name, who, (DEBIASED, "ratio"), above(1.1))
    for (run, *where), words in CORPORA.items():
        name, who = f"small encoder, {words}", (run, "NLM-3")
        yield stand_in("30", name, who, (DEBIASED, "ratio"), above(1.0), (where[0], where[1]))


def _companions(context: Results, threshold: float) -> Iterator[Gate]:
    called = {"top_cooccur": "companions", "top_unrelated": "companions of other topics"}
    for (run, corpus, phi), words in CORPORA.items():
        for group, name in called.items():
            comparison = declared.COMPANIONS[declared.Pairs(run, corpus, phi, threshold, group)]
            gate_name = f"stand-in, small encoder, {words}, {name}, threshold {threshold:g}"
            yield gate(context, "31", gate_name, comparison, above(0.0), STANDIN, kind=OWN)


# --- encoders that were trained elsewhere -------------------------------------------------------------------


def _pretrained(context: Results) -> Iterator[Gate]:
    """Yield what the source says of its five models, of encoders that it did not measure: own checks, no statements of
    the source; one model each, of which topics are left out in turn."""
    sources = {"one": TABLE_23, "multi": TABLE_24}
    for own, comparison in declared.QUOTIENTS.items():
        at = f"{own.encoder}, {SAID[own.measure]}, {own.assign}, threshold {own.threshold:g}"
        if own.model == declared.RANDOM:
            name, ones = f"random weights, {at}", within(1.0, 0.01)
            yield gate(context, "28", name, comparison, ones, f"{TABLE_23}, and 2.4", kind=OWN)
        else:
            claim = "30" if own.measure == DEBIASED else "29"
            yield gate(context, claim, f"pretrained, {at}", comparison, above(1.0), sources[own.assign], kind=OWN)
    for (encoder, assign, _, high), comparison in declared.FALLS.items():
        name = f"pretrained, {encoder}, falls to threshold {high:g}, {assign}"
        yield gate(context, "30", name, comparison, below(0.0), sources[assign], kind=OWN)
    for (encoder, what, threshold), comparison in declared.OVER_COMPANIONS.items():
        bars = above(0.0) if what == "cosine" else below(0.0)
        name = f"pretrained, {encoder}, {what}, threshold {threshold:g}"
        yield gate(context, "31", name, comparison, bars, TABLE_25, kind=OWN)


def _published_words(context: Results) -> Iterator[Gate]:
    table = context.table("word_map").filter(model="pretrained")
    for embedding in ("word table", "layer output"):
        rows = table.filter(pl.col("row") < pl.col("column"), embedding=embedding)
        measurement: Evidence = (None, MISSING)
        if rows.height:
            gaps = []
            for _, own in rows.group_by("run", maintain_order=True):
                values = own.with_columns(pl.col("cosine").fill_null(float("nan")))
                within, across = (values.filter(same_topic=same)["cosine"] for same in (True, False))
                gaps.append(extremes.smallest(within) - extremes.largest(across))
            measurement = Measured(extremes.smallest(gaps)), ""
        yield Gate(
            "29",
            f"pretrained, published words, {embedding}",
            f"least {SAID[f'cosine, {embedding}']} within the three groups of words less the largest between them",
            FIGURE_23,
            above(0.0),
            *measurement,
            kind=OWN,
        )
