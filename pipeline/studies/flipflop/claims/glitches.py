"""Claims 1 to 7, 14 to 16 and 24, who errs, where, and how differently; one bound of claim 22."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.evidence import Evidence
from pipeline.kit.extremes import column_max
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Condition, Gate, Measured, Published, above, at_least, at_most
from pipeline.studies.flipflop.claims.common import SECTION, contrast
from pipeline.studies.flipflop.names import LSTM, LSTM_LONG
from schemas.claims import OWN

R1, R2 = SECTION.format("3.5.2, R1"), SECTION.format("3.5.2, R2")


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    yield from _recurrent(context)
    yield Gate(
        "2", "canonical model", "share of models with an error of at most 0.001 in distribution is at least 0.8",
        R1, at_least(0.8), *contrast(context, "fitted base"),
    )  # fmt: skip
    yield Gate(
        "3", "canonical model", "share of trained models with an error on the sparse or dense set is at least 0.9", R1,
        at_least(0.9), *contrast(context, "glitches base"),
    )  # fmt: skip
    for name in ("dense", "sparse"):
        predicate = f"median error of trained models on the {name} set is above 0"
        scale = "quick" if name == "dense" else "paper"
        median = contrast(context, f"{name} median base")
        yield Gate("4", name, predicate, SECTION.format("3.5.3"), above(0.0), *median, scale_needed=scale)
    yield Gate(
        "5", "dense", "median error of trained Transformers minus the largest of LSTMs is above 0", R2, above(0.0),
        *_gap(context),
    )  # fmt: skip
    for name in ("dense", "sparse"):
        bar = 10.0 if context.scale == "paper" else 3.0
        yield Gate(
            "6", name, f"largest error of trained models over their smallest above 0 is at least {bar:g}", R1,
            at_least(bar), *contrast(context, f"{name} tail base"),
            scale_needed="quick" if name == "dense" else "paper", kind=OWN,
        )  # fmt: skip
    yield Gate(
        "7", "canonical model", "share of trained models whose error rises by two standard errors is at least 0.5",
        SECTION.format("3.5.6.2"), at_least(0.5), *contrast(context, "unsteady base"),
    )  # fmt: skip
    yield Gate(
        "14", "configurations", "configurations without rare sequences of which no model errs: number",
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
            predicate = f"wrong answers of all models, of {reads} reads"
            yield Gate("1", f"{name} set", predicate, R2, at_most(0.0), errors, missing)
    yield Gate(
        "1", "models without error", "share of models that make no error on any set is above one half", R2,
        above(0.5), *contrast(context, "lstm without error"), Published(1.0, derivation="100 of 100 models"),
    )  # fmt: skip
    rows = context.table("final").filter(run=LSTM_LONG)
    predicate = (
        "wrong answers on all sets of models trained at 512 tokens and a rate of 0.0003, where others train on shorter "
        f"strings, of {int(rows['n_reads'].sum())} reads"
    )
    yield Gate("1", "published length and rate", predicate, R2, at_most(0.0), *_wrong(context, rows))
    for length in lengths[1:]:
        rows = final.filter(length=length)
        errors, missing = _wrong(context, rows)
        predicate = f"wrong answers of all models on all sets at {length} tokens, of {int(rows['n_reads'].sum())} reads"
        yield Gate("1", "longer strings", predicate, "our extension", at_most(0.0), errors, missing, kind=OWN)


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


def _seeds(context: Results) -> Iterator[Gate]:
    source = SECTION.format("3.5.6.2, Figure 3.28")
    for seed in ("data", "model"):
        yield Gate(
            "15", f"{seed} seeds, range", f"mean log errors of {seed} seeds on the dense set span at least 0.2 decades",
            source, at_least(0.2), *contrast(context, f"dense {seed} seeds, decades"), kind=OWN,
        )  # fmt: skip
        rows = context.table("seed_variance").filter(set="dense", part=f"{seed} seed")
        ratio = evidence.one_row(rows, "the factorial is not trained at this scale", value="ratio")
        yield Gate(
            "15", f"{seed} seeds, variance",
            f"unbiased variance component of {seed} seeds over that of the rest is above 0", source,
            above(0.0), *ratio, scale_needed="paper",
        )  # fmt: skip


def _generative(context: Results) -> Iterator[Gate]:
    source = SECTION.format("3.5.6.2, Figure 3.28")
    predicate = (
        "cross-entropy on held-out strings of models of all next tokens, less its least possible value, "
        "in standard errors: least of all models"
    )
    excess = contrast(context, "generative, errors above the floor")
    yield Gate("22", "floor, trained models", predicate, source, at_least(-3.0), *excess, kind=OWN)
    predicate = "cross-entropy on held-out strings exceeds its least possible value by at most 1 %"
    yield Gate(
        "16",
        "near the floor",
        predicate,
        source,
        at_most(0.01),
        *contrast(context, "generative excess"),
        kind=OWN,
    )
    predicate = "median error on the training language is at most 0.01"
    yield Gate(
        "16", "training language", predicate, source, at_most(0.01), *contrast(context, "generative val")
    )
    predicate = "share of trained models with an error on the sparse or dense set is at least 0.8"
    yield Gate("16", "glitches", predicate, source, at_least(0.8), *contrast(context, "generative glitches"))


def _ngrams(context: Results) -> Iterator[Gate]:
    table = context.table("ngram")
    for name, n, sign in (("dense", 11, 1), ("sparse", 21, -1)):
        error = float(table.filter(set=name, n=n)["error"].item())
        median, missing = contrast(context, f"{name} median base")
        side = "above" if sign > 0 else "below"
        predicate = f"median error of trained models is {side} that of the {n}-gram, {error:.4g}"
        condition = Condition("value", ">" if sign > 0 else "<", error)
        yield Gate("24", name, predicate, SECTION.format("3.5.3"), (condition,), median, missing)
