"""Claims 28 to 32: stand-ins for natural language, and encoders that were trained elsewhere.

A stand-in is never held against a published number. What the chapter asks to report without a gate has none: tables show
it. What the source says of pretrained models is tested on the encoders that are measured, and else not tested.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit.evidence import Evidence
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured, above, at_least, below
from pipeline.studies.topic.claims.common import SECTION, between, contrast
from pipeline.studies.topic.names import ENCODER, LAYERS, OVERLAPPING, READER_EMBEDDED, READER_ONE_HOT
from schemas.claims import OWN

TABLE_23, TABLE_25 = (SECTION.format(f"2.1.5.4, Table {n}") for n in ("2.3", "2.5"))
FIGURE_23 = SECTION.format("2.1.5.4, Figure 2.3")
STANDIN = "our stand-in for section 2.1.5.4"
MISSING = "needs the extra of requirements-pretrained.txt: no encoder is named in experiments.topic-pretrained.measured"
ASSIGN = {"one": "one topic per word", "multi": "several topics per word"}


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 28 to 32."""
    yield from _untrained(context)
    yield from _embeddings(context)
    yield from _attention(context)
    yield from _companions(context)
    yield from _stages(context)
    yield from _pretrained(context)


def _name(
    run: str, model: str, phi: str, assign: str, threshold: float | str, measure: str, what: str
) -> str:
    told = threshold if isinstance(threshold, str) else f"{threshold:g}"
    return f"{run} {model} {OVERLAPPING} {phi} {assign} {told} {measure} {what}"


def _thresholds(context: Results) -> list[float]:
    return sorted(context.table("kinship").filter(corpus=OVERLAPPING)["threshold"].unique().to_list())


def _untrained(context: Results) -> Iterator[Gate]:
    for threshold in _thresholds(context):
        for measure, conditions, words in (
            ("attention, debiased", between(0.99, 1.01), "from 0.99 to 1.01"),
            ("attention, raw", above(1.03), "above 1.03"),
            ("cosine, layer output", between(0.95, 1.05), "from 0.95 to 1.05"),
        ):
            yield Gate(
                "28", f"stand-in, {measure}, threshold {threshold:g}",
                f"same-topic over different-topic {measure} of untrained encoders, median over seeds, is {words}",
                STANDIN, conditions,
                *contrast(context, _name(ENCODER, "NLM-0", "true", "one", threshold, measure, "ratio")), kind=OWN,
            )  # fmt: skip


def _embeddings(context: Results) -> Iterator[Gate]:
    for run, model, measure, label in (
        (READER_EMBEDDED, "NLM-2", "cosine, word table", "one layer"),
        (ENCODER, "NLM-3", "cosine, layer output", "small encoder"),
    ):
        yield Gate(
            "29", f"stand-in, {label}, difference",
            "mean cosine of same-topic pairs less that of different-topic pairs, median over seeds, is at least 0.15 "
            "at every threshold", STANDIN, at_least(0.15),
            *contrast(context, _name(run, model, "true", "one", "least", measure, "difference")), kind=OWN,
        )  # fmt: skip
    yield Gate(
        "29", "stand-in, small encoder, ratio",
        "same-topic over different-topic cosine, median over seeds, is at least 1.5 at every threshold", STANDIN,
        at_least(1.5),
        *contrast(context, _name(ENCODER, "NLM-3", "true", "one", "least", "cosine, layer output", "ratio")), kind=OWN,
    )  # fmt: skip


def _attention(context: Results) -> Iterator[Gate]:
    for run, model, label in (
        (READER_ONE_HOT, "NLM-1", "one layer, one-hot"),
        (READER_EMBEDDED, "NLM-2", "one layer, embedded"),
    ):
        yield Gate(
            "30", f"stand-in, {label}",
            "same-topic over different-topic attention, debiased, median over seeds, is above 1.1 at every threshold",
            STANDIN, above(1.1),
            *contrast(context, _name(run, model, "true", "one", "least", "attention, debiased", "ratio")), kind=OWN,
        )  # fmt: skip


def _companions(context: Results) -> Iterator[Gate]:
    for threshold in _thresholds(context):
        name = f"{ENCODER} NLM-3 {OVERLAPPING} true {threshold:g} same_topic - all mean_cosine"
        yield Gate(
            "31", f"stand-in, small encoder, threshold {threshold:g}",
            "mean cosine of same-topic pairs less that of all pairs of words, median over seeds, is above 0", STANDIN,
            above(0.0), *contrast(context, name), kind=OWN,
        )  # fmt: skip


def _stages(context: Results) -> Iterator[Gate]:
    yield Gate(
        "32", "stand-in, values first",
        "in every layer and seed values have at least 0.35 of their growth behind them when keys have 0.1 of theirs",
        STANDIN, at_least(0.35), *contrast(context, f"{LAYERS} values at the onset of keys"), kind=OWN,
    )  # fmt: skip
    yield Gate(
        "32", "stand-in, direction first",
        "in every layer and seed values turn more in the ten steps before step 40 than in those before step 200",
        STANDIN, above(0.0), *contrast(context, f"{LAYERS} turning early - late"), kind=OWN,
    )  # fmt: skip


# --- encoders that were trained elsewhere -------------------------------------------------------------------


def _pretrained(context: Results) -> Iterator[Gate]:
    """Yield what the source says of its five models, of encoders that it did not measure; one model each, no seeds."""
    table = context.table("kinship").filter(model="pretrained", phi="lda")
    for assign, label in ASSIGN.items():
        rows = table.filter(assign=assign)
        for claim, measure, name in (
            ("29", "cosine, word table", "cosine of word vectors"),
            ("29", "cosine, layer output", "cosine of outputs of the embedding layer"),
            ("30", "attention, debiased", "attention, debiased"),
        ):
            yield Gate(
                claim, f"pretrained, {measure}, {assign}",
                f"same-topic over different-topic {name}, {label}: least over encoders and thresholds, is above 1",
                TABLE_23 if assign == "one" else SECTION.format("2.1.5.4, Table 2.4"), above(1.0),
                *_least(rows.filter(measure=measure), "ratio"), scale_needed="quick",
            )  # fmt: skip
        falls = rows.filter(measure="attention, debiased").sort("run", "threshold")
        steps = (
            falls.select(pl.col("ratio").diff().over("run").drop_nulls())
            if falls.height > 1
            else falls.clear()
        )
        found: Evidence = (Measured(float(steps.to_series().max())), "") if steps.height else (None, MISSING)  # type: ignore[arg-type]
        yield Gate(
            "30", f"pretrained, falls with the threshold, {assign}",
            f"ratio of debiased attention at a threshold less that at the next smaller one, {label}: largest is below 0",
            TABLE_23 if assign == "one" else SECTION.format("2.1.5.4, Table 2.4"), below(0.0), *found,
            scale_needed="quick",
        )  # fmt: skip
    pairs = context.table("word_pairs").filter(model="pretrained", phi="lda")
    for column, conditions, words in (
        ("mean_cosine", above(0.0), "cosine of same-topic pairs less that of as many frequent companions: least is above 0"),
        ("mean_attention", below(0.0), "attention within same-topic pairs less that of as many frequent companions: largest is below 0"),
    ):  # fmt: skip
        wide = pairs.pivot("group", index=["run", "threshold"], values=column) if pairs.height else pairs
        gap = wide["same_topic"] - wide["top_cooccur"] if pairs.height else pl.Series([], dtype=pl.Float64)
        value = gap.min() if conditions[0].comparison == ">" else gap.max()
        measured: Evidence = (None, MISSING) if value is None else (Measured(float(value)), "")  # type: ignore[arg-type]
        yield Gate(
            "31", f"pretrained, {column.removeprefix('mean_')}", f"{words}, over encoders and thresholds", TABLE_25,
            conditions, *measured, scale_needed="quick",
        )  # fmt: skip
    yield from _published_words(context)


def _least(rows: pl.DataFrame, column: str) -> Evidence:
    """Return the least value of a column; a ratio that is not defined makes it so."""
    if not rows.height:
        return None, MISSING
    values = rows[column]
    return Measured(float("nan") if values.null_count() else float(values.min())), ""  # type: ignore[arg-type]


def _published_words(context: Results) -> Iterator[Gate]:
    table = context.table("word_map").filter(model="pretrained")
    for embedding in ("word table", "layer output"):
        rows = table.filter(pl.col("row") < pl.col("column"), embedding=embedding)
        found: Evidence = (None, MISSING)
        if rows.height:
            same = rows.filter("same_topic").group_by("run").agg(pl.col("cosine").min().alias("same"))
            other = (
                rows.filter(~pl.col("same_topic")).group_by("run").agg(pl.col("cosine").max().alias("other"))
            )
            gap = same.join(other, on="run").select((pl.col("same") - pl.col("other")).min())
            found = Measured(float(gap.item())), ""
        yield Gate(
            "29", f"pretrained, published words, {embedding}",
            "least cosine within the three groups of words less the largest between them is above 0", FIGURE_23,
            above(0.0), *found, scale_needed="quick",
        )  # fmt: skip
