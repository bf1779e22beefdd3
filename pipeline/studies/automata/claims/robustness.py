"""Claims 16 to 27, 29: other inputs than in training, hidden labels, attention, positions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most, below, within
from pipeline.kit.evidence import Evidence
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
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
ON_BOUNDARY, EVEN = 1.5, 0.9  # from which a head looks at a boundary, and spreads evenly
LIFT = "weight on a boundary over the uniform one"
EVENNESS = "entropy of a head over that of uniform attention"
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
            "correlation of predicted and learned accuracy over probabilities",
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
                f"accuracy, smallest of all {gate} and models",
                source,
                PERFECT,
                *smallest(rows, "accuracy", "not trained at this scale"),
            )
    yield Gate(
        "17",
        "p = 0.95",
        "mean accuracy where half of the symbols are ones minus that where 0.95 are",
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
        "whether mean accuracy is smallest at the lowest or the highest probability (1 if it is, else 0)",
        OOD,
        at_least(1.0),
        ends,
        missing_worst,
    )
    yield Gate(
        "18",
        "twice the length",
        "mean accuracy at the training length minus that at twice the length",
        LENGTH,
        above(0.15),
        *contrast(context, "c2 gpt T - 2T"),
    )
    yield Gate(
        "18",
        "falling",
        "change of mean accuracy from each length to the next beyond training, largest",
        LENGTH,
        below(0.0),
        *contrast(context, "c2 gpt largest rise beyond T"),
    )
    yield Gate(
        "20",
        "against plain",
        "mean accuracy at twice the length minus that of a plain Transformer",
        LENGTH,
        within(0.0, 0.1),
        *contrast(context, "c2 scratchpad - gpt at 2T"),
    )
    yield Gate(
        "20",
        "twice the length",
        "mean accuracy at twice the length",
        LENGTH,
        below(0.9),
        *contrast(context, "c2 scratchpad 2T"),
    )
    yield Gate(
        "23",
        "C2",
        "mean accuracy at low counts minus that at high ones",
        OOD,
        below(0.0),
        *contrast(context, "c2 gpt low - high counts"),
    )
    yield Gate(
        "23",
        "outer counts",
        "mean accuracy at middle counts minus that at outer ones",
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
        "mean accuracy at the training length minus that at twice the length",
        LENGTH,
        above(0.1),
        *contrast(context, "dyck42 gpt T - 2T"),
    )
    yield Gate(
        "21",
        "LSTM",
        "accuracy at twice the length, smallest of the models",
        LENGTH,
        at_least(0.995),
        *smallest(twice, "accuracy", "not trained at this scale"),
    )


def _positions_beyond(context: Results) -> Iterator[Gate]:
    for arm, label in (("shift", "shifted positions"), ("none", "no positions")):
        yield Gate(
            "22",
            label,
            "mean accuracy at twice the length minus that of a plain Transformer",
            LENGTH,
            above(0.0),
            *contrast(context, f"c2 {arm} - gpt at 2T"),
        )


def _supervision(context: Results) -> Iterator[Gate]:
    for task, label in (("s3", "S3"), ("s5", "S5")):
        kind = OWN if task == "s3" else STATED
        shares = context.table("incomplete").filter(task=task, arm="lstm")
        yield Gate(
            "24",
            f"{label}, LSTM",
            "accuracy of an LSTM, smallest of all shares of labels and models",
            HIDDEN,
            at_least(0.99),
            *smallest(shares, "accuracy", "not trained at this scale"),
            kind=kind,
        )
        yield Gate(
            "24",
            f"{label}, Transformer",
            "mean accuracy with all labels minus that with a tenth",
            HIDDEN,
            above(0.1),
            *contrast(context, f"{task} GPT, all labels - a tenth"),
            kind=kind,
        )
    yield Gate(
        "24",
        "C2, Transformer",
        "mean accuracy with all labels minus that with a tenth",
        HIDDEN,
        within(0.0, 0.05),
        *contrast(context, "c2 GPT, all labels - a tenth"),
    )
    for task, label in SHOWN.items():
        bound = 0.5 if task in CLOSED else 0.0
        base = "the best label for all positions" if task == "abab1" else "the best label at each position"
        yield Gate(
            "25",
            f"{label}, Transformer",
            f"share that is closed of the gap between {base} and perfect accuracy",
            SEEN,
            above(bound),
            *contrast(context, f"{task} gpt, gap closed"),
            kind=OWN,
        )
        yield Gate(
            "25",
            f"{label}, LSTM",
            "mean accuracy of the LSTM minus the Transformer's",
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
        "percentage points by which the best models are below the published ones, largest of all tasks",
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
        f"{LIFT}, largest of the heads in a model's last layer, smallest of the models",
        HEADS,
        above(ON_BOUNDARY),
        *each(last, "lift"),
    )
    yield Gate(
        "26",
        "uniform head",
        f"{EVENNESS}, largest of a model's heads, smallest of the models",
        HEADS,
        above(EVEN),
        *each(heads, "uniformity"),
        kind=OWN,
    )
    yield Gate(
        "26",
        "boundary, untrained",
        f"{LIFT}, largest of the heads in the last layers of untrained models",
        HEADS,
        at_most(ON_BOUNDARY),
        *evidence.reduced(untrained.filter("last_layer"), column_max("lift"), missing),
        kind=OWN,
    )
    yield Gate(
        "26",
        "uniform head, untrained",
        f"{EVENNESS}, largest of the heads of untrained models",
        HEADS,
        at_most(EVEN),
        *evidence.reduced(untrained, column_max("uniformity"), missing),
        kind=OWN,
    )
    yield Gate(
        "26",
        "uniform head, first layer",
        f"{EVENNESS}, largest of the heads in a model's first layer, smallest of the models",
        HEADS,
        above(EVEN),
        *each(heads.filter(layer=1), "uniformity"),
    )
    # A model without such a head has no value, which makes the largest of them NaN; so does a lift that is none.
    share = (pl.col("pre_reset_mass") / pl.col("pre_reset_uniform")).fill_null(math.nan)
    share = pl.when(pl.col("lift").is_nan()).then(math.nan).when(pl.col("lift") > ON_BOUNDARY).then(share)
    per_model = last.group_by("replica").agg(share.nan_min().alias("share"))
    maximum, why = evidence.reduced(per_model, column_max("share"), missing)
    yield Gate(
        "26",
        "before the boundary",
        "weight before the last visit to a boundary over that of uniform attention, smallest of a model's boundary "
        "heads, largest of the models",
        HEADS,
        below(0.5),
        maximum and replace(maximum, n=count),
        why,
    )


def _codes(context: Results) -> Iterator[Gate]:
    yield Gate(
        "27",
        "Grid 9, twice the length",
        "mean accuracy at twice the length, with sinusoidal positions minus that with linear ones",
        POSITIONS,
        below(0.0),
        *contrast(context, "grid9 sinusoidal - linear at 2T"),
    )
    yield Gate(
        "27",
        "Grid 9, loss beyond training",
        "accuracy that is lost at twice the length, with sinusoidal positions minus that with linear ones",
        POSITIONS,
        above(0.0),
        *contrast(context, "grid9 gap sinusoidal - gap linear"),
        kind=OWN,
    )
    yield Gate(
        "27",
        "abab (2)",
        "mean accuracy at the training length, with sinusoidal positions minus that with linear ones",
        POSITIONS,
        above(0.0),
        *contrast(context, "abab2 sinusoidal - linear at T"),
    )
    yield Gate(
        "27",
        "abab (2), advantage beyond training",
        "accuracy that is lost at twice the length, with sinusoidal positions minus that with linear ones",
        POSITIONS,
        above(0.0),
        *contrast(context, "abab2 gap sinusoidal - gap linear"),
    )
