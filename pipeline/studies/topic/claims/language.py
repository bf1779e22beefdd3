"""Claims 28 to 32: stand-ins for natural language, and encoders that were trained elsewhere.

A stand-in is never held against a published number. What the chapter asks to report without a gate has none: tables
show it. What the source says of pretrained models is tested on the encoders that are measured, and else not tested.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import extremes
from pipeline.kit.conditions import above, at_least, at_most, below, within
from pipeline.kit.evidence import Evidence
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured
from pipeline.studies.topic.claims.common import SECTION, contrast
from pipeline.studies.topic.names import ENCODER, LAYERS, OVERLAPPING, READER_EMBEDDED, READER_ONE_HOT
from schemas.claims import OWN

TABLE_23, TABLE_24 = (SECTION.format(f"2.1.5.4, Table {n}") for n in ("2.3", "2.4"))
TABLE_25 = SECTION.format("2.1.6.2, Table 2.5")
FIGURE_23 = SECTION.format("2.1.5.4, Figure 2.3")
STANDIN = "our stand-in for section 2.1.5.4"
MISSING = "needs the extra of requirements-pretrained.txt: no encoder is named in experiments.topic-pretrained.measured"
TABLES = {"one": TABLE_23, "multi": TABLE_24}
CALLED = {  # a measure, in the words of a sentence
    "attention, debiased": "debiased attention",
    "attention, raw": "raw attention",
    "cosine, layer output": "cosine of embedding outputs",
    "cosine, word table": "cosine of word vectors",
}
ASSIGN = {"one": "one topic per word", "multi": "several topics per word"}


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 28 to 32."""
    yield from _untrained(context)
    yield from _embeddings(context)
    yield from _attention(context)
    yield from _companions(context)
    yield from _stages(context)
    yield from _pretrained(context)


def _name(run: str, model: str, threshold: float, measure: str, what: str) -> str:
    """Return the name of a comparison with the true topics, where a word belongs to one."""
    return f"{run} {model} {OVERLAPPING} true one {threshold:g} {measure} {what}"


def _thresholds(context: Results) -> list[float]:
    return sorted(context.table("kinship").filter(corpus=OVERLAPPING)["threshold"].unique().to_list())


def _untrained(context: Results) -> Iterator[Gate]:
    for threshold in _thresholds(context):
        for measure, conditions in (
            ("attention, debiased", within(1.0, 0.01)),
            ("attention, raw", above(1.03)),
            ("cosine, layer output", within(1.0, 0.05)),
        ):
            yield Gate(
                "28",
                f"stand-in, {measure}, threshold {threshold:g}",
                f"same-topic over different-topic {CALLED[measure]} of untrained encoders, median over seeds",
                STANDIN,
                conditions,
                *contrast(context, _name(ENCODER, "NLM-0", threshold, measure, "ratio")),
                kind=OWN,
            )


def _embeddings(context: Results) -> Iterator[Gate]:
    for threshold in _thresholds(context):
        for run, model, measure, label in (
            (READER_EMBEDDED, "NLM-2", "cosine, word table", "one layer"),
            (ENCODER, "NLM-3", "cosine, layer output", "small encoder"),
        ):
            yield Gate(
                "29",
                f"stand-in, {label}, difference, threshold {threshold:g}",
                f"{CALLED[measure]} of same-topic pairs less that of different-topic pairs, median over seeds",
                STANDIN,
                at_least(0.15),
                *contrast(context, _name(run, model, threshold, measure, "difference")),
                kind=OWN,
            )
        yield Gate(
            "29",
            f"stand-in, small encoder, ratio, threshold {threshold:g}",
            f"same-topic over different-topic {CALLED['cosine, layer output']}, median over seeds",
            STANDIN,
            at_least(1.5),
            *contrast(context, _name(ENCODER, "NLM-3", threshold, "cosine, layer output", "ratio")),
            kind=OWN,
        )


def _attention(context: Results) -> Iterator[Gate]:
    for run, model, label in (
        (READER_ONE_HOT, "NLM-1", "one layer, one-hot"),
        (READER_EMBEDDED, "NLM-2", "one layer, embedded"),
    ):
        for threshold in _thresholds(context):
            yield Gate(
                "30",
                f"stand-in, {label}, threshold {threshold:g}",
                "same-topic over different-topic debiased attention, median over seeds",
                STANDIN,
                above(1.1),
                *contrast(context, _name(run, model, threshold, "attention, debiased", "ratio")),
                kind=OWN,
            )


def _companions(context: Results) -> Iterator[Gate]:
    for threshold in _thresholds(context):
        name = f"{ENCODER} NLM-3 {OVERLAPPING} true {threshold:g} same_topic - all mean_cosine"
        yield Gate(
            "31",
            f"stand-in, small encoder, threshold {threshold:g}",
            "mean cosine of same-topic pairs less that of all pairs of words, median over seeds",
            STANDIN,
            above(0.0),
            *contrast(context, name),
            kind=OWN,
        )


def _stages(context: Results) -> Iterator[Gate]:
    yield Gate(
        "32",
        "stand-in, values first",
        "share of their growth that values have behind them where keys have a tenth of theirs, lowest of all layers "
        "and seeds",
        STANDIN,
        at_least(0.35),
        *contrast(context, f"{LAYERS} values at the onset of keys"),
        kind=OWN,
    )
    yield Gate(
        "32",
        "stand-in, direction first",
        "cosine distance that values turn in the ten steps before step 40 less that before step 200, lowest of all "
        "layers and seeds",
        STANDIN,
        above(0.0),
        *contrast(context, f"{LAYERS} turning early - late"),
        kind=OWN,
    )


# --- encoders that were trained elsewhere -------------------------------------------------------------------


def _pretrained(context: Results) -> Iterator[Gate]:
    """Yield what the source says of its five models, of encoders that it did not measure: own checks, no statements of
    the source; one model each, no seeds."""
    table = context.table("kinship").filter(model="pretrained", phi="lda")
    for assign, label in ASSIGN.items():
        rows, source = table.filter(assign=assign), TABLES[assign]
        for claim, measure in (
            ("29", "cosine, word table"),
            ("29", "cosine, layer output"),
            ("30", "attention, debiased"),
        ):
            if assign == "multi" and claim == "29":
                continue  # Table 2.4 has cosine ratios on both sides of 1
            yield Gate(
                claim,
                f"pretrained, {measure}, {assign}",
                f"same-topic over different-topic {CALLED[measure]}, {label}, least over thresholds and encoders (none "
                "is the source's)",
                source,
                above(1.0),
                *_least(rows.filter(measure=measure), "ratio"),
                kind=OWN,
            )
        yield Gate(
            "30",
            f"pretrained, falls with the threshold, {assign}",
            f"ratio of debiased attention less that at the next smaller threshold, {label}, largest of all",
            source,
            below(0.0),
            *_steps(rows.filter(measure="attention, debiased")),
            kind=OWN,
        )
    random = context.table("kinship").filter(model="pretrained, before training", phi="lda")
    for measure in ("cosine, layer output", "attention, debiased"):
        yield Gate(
            "28",
            f"random weights, {measure}",
            f"distance from 1 of same-topic over different-topic {CALLED[measure]} of encoders with random weights, "
            "largest of all",
            f"{TABLE_23}, and 2.4",
            at_most(0.01),
            *_furthest(random.filter(measure=measure)),
            kind=OWN,
        )
    for what, conditions, end in (("cosine", above(0.0), "least"), ("attention", below(0.0), "largest")):
        yield Gate(
            "31",
            f"pretrained, {what}",
            f"{what} of same-topic pairs less that of as many frequent companions, {end} of all",
            TABLE_25,
            conditions,
            *_gaps(context, f"mean_{what}", smallest=what == "cosine"),
            kind=OWN,
        )
    yield from _published_words(context)


def _least(rows: pl.DataFrame, column: str) -> Evidence:
    """Return the least value of a column; a ratio that is not defined makes it so."""
    if not rows.height:
        return None, MISSING
    return Measured(extremes.smallest(rows[column].fill_null(float("nan")))), ""


def _furthest(rows: pl.DataFrame) -> Evidence:
    """Return how far the ratio is from 1 that is furthest from it."""
    if not rows.height:
        return None, MISSING
    return Measured(extremes.largest((rows["ratio"].fill_null(float("nan")) - 1).abs())), ""


def _steps(rows: pl.DataFrame) -> Evidence:
    """Return the largest change of a ratio from one threshold to the next, over encoders."""
    known = rows.sort("run", "threshold").with_columns(pl.col("ratio").fill_null(float("nan")))
    changes = known.select(pl.col("ratio").diff().over("run"))["ratio"].drop_nulls()
    return (Measured(extremes.largest(changes)), "") if len(changes) else (None, MISSING)


def _gaps(context: Results, column: str, smallest: bool) -> Evidence:
    """Return the smallest or largest gap between same-topic pairs and frequent companions, over encoders and
    thresholds."""
    pairs = context.table("word_pairs").filter(model="pretrained", phi="lda")
    if not pairs.height:
        return None, MISSING
    wide = pairs.pivot("group", index=["run", "threshold"], values=column)
    gaps = (wide["same_topic"] - wide["top_cooccur"]).fill_null(float("nan"))
    return Measured(extremes.smallest(gaps) if smallest else extremes.largest(gaps)), ""


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
            f"least {CALLED[f'cosine, {embedding}']} within the three groups of words less the largest between them",
            FIGURE_23,
            above(0.0),
            *measurement,
            kind=OWN,
        )
