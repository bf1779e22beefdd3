"""Claims 1 to 7, 14 to 16 and 24, who errs, where, and how differently; one bound of claim 22."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most, below, defined
from pipeline.kit.evidence import Evidence
from pipeline.kit.extremes import column_max
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured, Published
from pipeline.studies.flipflop.claims.common import SECTION, contrast
from pipeline.studies.flipflop.names import BASE, LSTM, LSTM_LONG
from schemas.claims import OWN

R1, R2 = SECTION.format("3.5.2, R1"), SECTION.format("3.5.2, R2")


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    yield from _recurrent(context)
    yield Gate(
        "2", "canonical model", "share of models with an error of at most 0.001 on the training language", R1,
        at_least(0.8), *contrast(context, "fitted base"),
    )  # fmt: skip
    yield Gate(
        "3", "canonical model", "of the models that learned, share with an error on the sparse or dense set", R1,
        at_least(0.9), *contrast(context, "glitches base"),
    )  # fmt: skip
    for name in ("dense", "sparse"):
        measure = f"median error on the {name} set of models that learned"
        median = contrast(context, f"{name} median base")
        yield Gate("4", name, measure, SECTION.format("3.5.3"), above(0.0), *median)
    yield Gate(
        "5", "dense", "median error of Transformers that learned less the largest of LSTMs", R2, above(0.0),
        *_gap(context),
    )  # fmt: skip
    bar = 10.0 if context.scale == "paper" else 3.0  # of hundreds of models, and of a few
    for name in ("dense", "sparse"):
        measure = "largest error of models that learned over their smallest that is not 0"
        yield Gate("6", name, measure, R1, at_least(bar), *_tail(context, name), kind=OWN)
    yield Gate(
        "7", "canonical model", "of the models that learned, share whose error rises again by two standard errors",
        SECTION.format("3.5.6.2"), at_least(0.5), *contrast(context, "unsteady base"),
    )  # fmt: skip
    yield Gate(
        "14", "configurations", "configurations without rare sequences of which no model errs",
        SECTION.format("3.5.4"), at_most(0.0), *contrast(context, "configurations without error"),
    )  # fmt: skip
    yield from _seeds(context)
    yield from _generative(context)
    yield from _ngrams(context)


def _recurrent(context: Results) -> Iterator[Gate]:
    final = context.table("final").filter(run=LSTM)
    lengths = sorted(set(final["length"].to_list()))
    for length in lengths[:1]:
        rows = final.filter(length=length)
        for name in ("val", "sparse", "dense"):
            own = rows.filter(set=name)
            reads = int(own["n_reads"].sum())
            errors, missing = evidence.enough(
                Measured(float(own["n_err"].sum()), n=own.height), "", context.settings.fewest
            )
            measure = f"wrong answers of all models, of {reads} reads"
            yield Gate("1", f"{name} set", measure, R2, at_most(0.0), errors, missing)
    yield Gate(
        "1", "models without error", "share of models that make no error on any set", R2,
        above(0.5), *contrast(context, "lstm without error"), Published(1.0, derivation="100 of 100 models"),
    )  # fmt: skip
    rows = context.table("final").filter(run=LSTM_LONG)
    measure = (
        "wrong answers on all sets of models trained at 512 tokens and a rate of 0.0003, where others train on shorter "
        f"strings, of {int(rows['n_reads'].sum())} reads"
    )
    yield Gate("1", "published length and rate", measure, R2, at_most(0.0), *_wrong(context, rows))
    for length in lengths[1:]:
        rows = final.filter(length=length)
        errors, missing = _wrong(context, rows)
        measure = f"wrong answers of all models on all sets at {length} tokens, of {int(rows['n_reads'].sum())} reads"
        yield Gate("1", "longer strings", measure, "our extension", at_most(0.0), errors, missing, kind=OWN)


def _wrong(context: Results, rows: pl.DataFrame) -> Evidence:
    """Return the number of wrong answers in rows of ``final``."""
    if not rows.height:
        return None, "not trained at this scale"
    errors = Measured(float(rows["n_err"].sum()), n=rows["replica"].n_unique())
    return evidence.enough(errors, "", context.settings.fewest)


def _gap(context: Results) -> Evidence:
    median, missing = contrast(context, "dense median base")
    rows = context.table("final").filter(run=LSTM, set="dense")
    rows = rows.filter(pl.col("length") == pl.col("length").min())
    if median is None or not rows.height or median.value is None:
        return None, missing or "no LSTM is trained at this scale"
    most = float(rows.select(column_max("error")).item())
    lo, hi = (None if end is None else end - most for end in (median.lo, median.hi))
    return Measured(median.value - most, lo, hi, median.n, median.excluded, median.excluded_reason), ""


def _tail(context: Results, name: str) -> Evidence:
    """Return the evidence on the spread of errors; where fewer than two models err there is no quotient."""
    measured, missing = contrast(context, f"{name} tail base")
    errors = context.table("final").filter(run=BASE, set=name)["error"].fill_null(float("nan"))
    if measured and not defined(measured.value) and errors.len() and errors.is_finite().all():
        return None, f"fewer than two models that learned err on the {name} set"
    return measured, missing


def _seeds(context: Results) -> Iterator[Gate]:
    source = SECTION.format("3.5.6.2, Figure 3.28")
    for seed in ("data", "model"):
        yield Gate(
            "15", f"{seed} seeds, range", f"range of the mean log errors of {seed} seeds on the dense set, in decades",
            source, at_least(0.2), *contrast(context, f"dense {seed} seeds, decades"), kind=OWN,
        )  # fmt: skip
        rows = context.table("seed_variance").filter(set="dense", part=f"{seed} seed")
        ratio = evidence.one_row(rows, "the factorial is not trained at this scale", value="ratio")
        yield Gate(
            "15", f"{seed} seeds, variance",
            f"unbiased variance component of {seed} seeds over that of the rest, log errors on the dense set", source,
            above(0.0), *ratio,
        )  # fmt: skip


def _generative(context: Results) -> Iterator[Gate]:
    source = SECTION.format("3.5.6.2, Figure 3.28")
    measure = (
        "cross-entropy on held-out strings of models of all next tokens, less its least possible value, "
        "in standard errors, least of all models"
    )
    excess = contrast(context, "generative, errors above the floor")
    yield Gate("22", "floor, trained models", measure, source, at_least(-3.0), *excess, kind=OWN)
    measure = "cross-entropy on held-out strings less its least possible value, as a share of that, mean over models"
    excess = contrast(context, "generative excess")
    yield Gate("16", "near the floor", measure, source, at_most(0.01), *excess, kind=OWN)
    measure = "median error on the training language"
    yield Gate(
        "16", "training language", measure, source, at_most(0.01), *contrast(context, "generative val")
    )
    measure = "of the models that learned, share with an error on the sparse or dense set"
    yield Gate("16", "glitches", measure, source, at_least(0.8), *contrast(context, "generative glitches"))


def _ngrams(context: Results) -> Iterator[Gate]:
    table = context.table("ngram")
    for name, n, sign in (("dense", 11, 1), ("sparse", 21, -1)):
        error = float(table.filter(set=name, n=n)["error"].item())
        median, missing = contrast(context, f"{name} median base")
        measure = f"median error on the {name} set of models that learned, held against that of the {n}-gram"
        bar = above(error) if sign > 0 else below(error)
        yield Gate("24", name, measure, SECTION.format("3.5.3"), bar, median, missing)
