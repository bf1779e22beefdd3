"""Claims 16 to 27, 29: other inputs than in training, hidden labels, attention, positions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.evidence import Evidence
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, above, at_least, at_most, below, within
from pipeline.studies.automata.claims.depth import contrast
from pipeline.studies.automata.names import SHOWN
from schemas.claims import OWN, STATED

OOD, LENGTH = "Liu 2024, Figures 3.8 and 3.20", "Liu 2024, Figures 3.9 and 3.21"
HIDDEN, SEEN, HEADS = (
    "Liu 2024, Figures 3.7b and 3.19",
    "Liu 2024, Figures 3.7a and 3.18",
    "Liu 2024, Figures 3.6 and 3.17",
)
POSITIONS = "Liu 2024, Figure 3.22"
COVERAGE = "own check of a hypothesis in Liu 2024, section 3.4.3.2"
PERFECT = at_least(0.999)
CLOSED = ("dyck48-top", "grid9-boundary", "s5-first", "abab1", "abab2")


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates on robustness."""
    yield from _counting(context)
    yield from _dyck(context)
    yield from _positions_beyond(context)
    yield from _supervision(context)
    yield from _attention(context)
    yield from _codes(context)
    for variant in ("position and count", "count alone"):
        yield Gate(
            "29",
            variant,
            "correlation of predicted and learned accuracy over probabilities is above 0.8",
            COVERAGE,
            above(0.8),
            *contrast(context, f"coverage {variant}, m=1000"),
            kind=OWN,
        )


def smallest(rows: pl.DataFrame, column: str, missing: str) -> Evidence:
    """Return the smallest value over all rows, of every model: those that learned little are not left out."""
    minimum, why = evidence.reduced(rows, column_min(column), missing)
    return (minimum and replace(minimum, n=rows["replica"].n_unique())), why


def _counting(context: Results) -> Iterator[Gate]:
    for claim, arm in (("16", "lstm"), ("19", "recency")):
        for gate, name, source in (("probabilities", "ood_p", OOD), ("lengths", "length_gen", LENGTH)):
            rows = context.table(name).filter(task="c2", arm=arm)
            yield Gate(
                claim,
                gate,
                f"smallest accuracy over {gate} and models is at least 0.999",
                source,
                PERFECT,
                *smallest(rows, "accuracy", "not trained at this scale"),
            )
    yield Gate(
        "17",
        "p = 0.95",
        "mean accuracy at 0.95 ones is below that at 0.5 by more than 0.1",
        OOD,
        above(0.1),
        *contrast(context, "c2 gpt p=0.5 - p=0.95"),
    )
    worst, missing_worst = contrast(context, "c2 gpt worst p")
    p1 = context.table("ood_p")["p1"]
    ends = worst and replace(worst, value=_at_end(worst.value, p1))
    yield Gate(
        "17",
        "worst probability",
        "mean accuracy is smallest at one of both ends: 1 if so",
        OOD,
        at_least(1.0),
        ends,
        missing_worst,
    )
    yield Gate(
        "18",
        "twice the length",
        "mean accuracy at twice the training length is lower by more than 0.15",
        LENGTH,
        above(0.15),
        *contrast(context, "c2 gpt T - 2T"),
    )
    yield Gate(
        "18",
        "falling",
        "mean accuracy falls from each length to the next beyond training: largest rise",
        LENGTH,
        below(0.0),
        *contrast(context, "c2 gpt largest rise beyond T"),
    )
    yield Gate(
        "20",
        "against plain",
        "mean accuracy at twice the length is within 0.1 of a plain Transformer's",
        LENGTH,
        within(0.0, 0.1),
        *contrast(context, "c2 scratchpad - gpt at 2T"),
    )
    yield Gate(
        "20",
        "twice the length",
        "mean accuracy at twice the length is below 0.9",
        LENGTH,
        below(0.9),
        *contrast(context, "c2 scratchpad 2T"),
    )
    yield Gate(
        "23",
        "C2",
        "mean accuracy at low counts minus that at high ones is below 0",
        OOD,
        below(0.0),
        *contrast(context, "c2 gpt low - high counts"),
        scale_needed="paper",
    )
    yield Gate(
        "23",
        "outer counts",
        "mean accuracy at middle counts minus that at outer ones is above 0",
        OOD,
        above(0.0),
        *contrast(context, "c2 gpt middle - outer counts"),
    )


def _at_end(worst: float | None, p1: pl.Series) -> float:
    """Return whether a probability is the smallest or the largest of those tested; NaN if it is not known."""
    if worst is None or math.isnan(worst):
        return math.nan
    return float(min(abs(worst - end) for end in (p1.min(), p1.max())) < 1e-6)  # type: ignore[operator]


def _dyck(context: Results) -> Iterator[Gate]:
    lengths = context.table("length_gen").filter(task="dyck42", arm="lstm")
    twice = lengths.filter(pl.col("length") == 2 * pl.col("trained"))
    yield Gate(
        "21",
        "Transformer",
        "mean accuracy at twice the length is lower by more than 0.1",
        LENGTH,
        above(0.1),
        *contrast(context, "dyck42 gpt T - 2T"),
    )
    yield Gate(
        "21",
        "LSTM",
        "smallest accuracy of a model at twice the length is at least 0.995",
        LENGTH,
        at_least(0.995),
        *smallest(twice, "accuracy", "not trained at this scale"),
    )


def _positions_beyond(context: Results) -> Iterator[Gate]:
    for arm, label in (("shift", "shifted positions"), ("none", "no positions")):
        yield Gate(
            "22",
            label,
            "mean accuracy at twice the length is above a plain Transformer's",
            LENGTH,
            above(0.0),
            *contrast(context, f"c2 {arm} - gpt at 2T"),
            scale_needed="paper",
        )


def _supervision(context: Results) -> Iterator[Gate]:
    for task, label in (("s3", "S3"), ("s5", "S5")):
        scale = "quick" if task == "s3" else "paper"
        kind = OWN if task == "s3" else STATED
        shares = context.table("incomplete").filter(task=task, arm="lstm")
        yield Gate(
            "24",
            f"{label}, LSTM",
            "smallest accuracy of an LSTM over shares of labels is at least 0.99",
            HIDDEN,
            at_least(0.99),
            *smallest(shares, "accuracy", "not trained at this scale"),
            scale_needed=scale,
            kind=kind,
        )
        yield Gate(
            "24",
            f"{label}, Transformer",
            "mean accuracy with all labels is above that with a tenth by more than 0.1",
            HIDDEN,
            above(0.1),
            *contrast(context, f"{task} GPT, all labels - a tenth"),
            scale_needed=scale,
            kind=kind,
        )
    yield Gate(
        "24",
        "C2, Transformer",
        "mean accuracies with all labels and with a tenth are within 0.05 of each other",
        HIDDEN,
        within(0.0, 0.05),
        *contrast(context, "c2 GPT, all labels - a tenth"),
        scale_needed="paper",
    )
    for task, label in SHOWN.items():
        bound = 0.5 if task in CLOSED else 0.0
        base = "the best label for all positions" if task == "abab1" else "the best label at each position"
        yield Gate(
            "25",
            f"{label}, Transformer",
            f"share that is closed of the gap between {base} and perfect accuracy is above {bound:g}",
            SEEN,
            above(bound),
            *contrast(context, f"{task} gpt, gap closed"),
            kind=OWN,
        )
        yield Gate(
            "25",
            f"{label}, LSTM",
            "mean accuracy of the LSTM is at least the Transformer's",
            SEEN,
            at_least(0.0),
            *contrast(context, f"{task} LSTM - GPT"),
            kind=OWN,
        )
    best = (
        context.table("indirect")
        .filter(arm="gpt")
        .with_columns(short=pl.col("published") - 100 * pl.col("acc_max"))
    )
    yield Gate(
        "25",
        "published",
        "best models are at most one point below the published: largest shortfall",
        SEEN,
        at_most(1.0),
        *evidence.reduced(
            best, column_max("short"), f"{best.height} of {len(SHOWN)} tasks are trained", len(SHOWN)
        ),
        scale_needed="paper",
    )


def _attention(context: Results) -> Iterator[Gate]:
    known = pl.col("lift_0").fill_null(math.nan) + pl.col("lift_S").fill_null(math.nan)  # NaN if one is
    larger = pl.max_horizontal("lift_0", "lift_S")
    measured = context.table("attn_metrics").with_columns(
        lift=pl.when(known.is_nan()).then(known).otherwise(larger)
    )
    heads, untrained = measured.filter("trained"), measured.filter(~pl.col("trained"))
    count = heads["replica"].n_unique()
    last = heads.filter("last_layer")
    missing = "no gridworld model is trained"

    def each(rows: pl.DataFrame, column: str) -> Evidence:
        """Return the largest value of a model's heads, of the model where it is smallest."""
        best = rows.group_by("replica").agg(column_max(column))
        minimum, why = evidence.reduced(best, column_min(column), missing)
        return (minimum and replace(minimum, n=count)), why

    yield Gate(
        "26",
        "boundary",
        "every model has a head in its last layer with over 1.5 times the uniform weight on a boundary",
        HEADS,
        above(1.5),
        *each(last, "lift"),
    )
    yield Gate(
        "26",
        "uniform head",
        "every model has a head in any layer whose entropy is above 0.9 of a uniform one's",
        HEADS,
        above(0.9),
        *each(heads, "uniformity"),
        kind=OWN,
    )
    yield Gate(
        "26",
        "boundary, untrained",
        "no head in the last layer of an untrained model has over 1.5 times the uniform weight on a boundary",
        HEADS,
        at_most(1.5),
        *evidence.reduced(untrained.filter("last_layer"), column_max("lift"), missing),
        kind=OWN,
    )
    yield Gate(
        "26",
        "uniform head, untrained",
        "training makes them: no head of an untrained model has an entropy above 0.9 of a uniform one's",
        HEADS,
        at_most(0.9),
        *evidence.reduced(untrained, column_max("uniformity"), missing),
        kind=OWN,
    )
    yield Gate(
        "26",
        "uniform head, first layer",
        "every model has such a head in its first layer",
        HEADS,
        above(0.9),
        *each(heads.filter(layer=1), "uniformity"),
        scale_needed="paper",
    )
    # A model without such a head has no value, which makes the largest of them NaN; so does a lift that is none.
    share = (pl.col("pre_reset_mass") / pl.col("pre_reset_uniform")).fill_null(math.nan)
    share = pl.when(pl.col("lift").is_nan()).then(math.nan).when(pl.col("lift") > 1.5).then(share)
    per_model = last.group_by("replica").agg(share.nan_min().alias("share"))
    maximum, why = evidence.reduced(per_model, column_max("share"), missing)
    yield Gate(
        "26",
        "before the boundary",
        "in every model some boundary head's weight before the last visit is below half that of uniform attention",
        HEADS,
        below(0.5),
        maximum and replace(maximum, n=count),
        why,
        scale_needed="paper",
    )


def _codes(context: Results) -> Iterator[Gate]:
    yield Gate(
        "27",
        "Grid 9, twice the length",
        "mean accuracy with sinusoidal positions is lower",
        POSITIONS,
        below(0.0),
        *contrast(context, "grid9 sinusoidal - linear at 2T"),
        scale_needed="paper",
    )
    yield Gate(
        "27",
        "Grid 9, loss beyond training",
        "sinusoidal positions lose more at twice the length than linear ones",
        POSITIONS,
        above(0.0),
        *contrast(context, "grid9 gap sinusoidal - gap linear"),
        kind=OWN,
    )
    yield Gate(
        "27",
        "abab (2)",
        "mean accuracy with sinusoidal positions is higher",
        POSITIONS,
        above(0.0),
        *contrast(context, "abab2 sinusoidal - linear at T"),
    )
    yield Gate(
        "27",
        "abab (2), advantage beyond training",
        "sinusoidal positions lose more at twice the length than linear ones",
        POSITIONS,
        above(0.0),
        *contrast(context, "abab2 gap sinusoidal - gap linear"),
    )
