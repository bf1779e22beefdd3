"""Claims 8 to 15 and 18: MLPs on sparse parity."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most, below, within
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.distillation.claims.common import SECTION, contrast
from pipeline.studies.distillation.names import CANDIDATES, TEACHER
from schemas.claims import OWN

R1, APPENDIX = SECTION.format("4.2.2.1, Figure 4.5"), SECTION.format("4.2.7.1")
START = SECTION.format("4.2.2, Figure 4.4")


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    for size in ("narrow", "wide"):
        yield Gate(
            "8",
            f"{size} students",
            "steps to an accuracy of 0.9, progressive students over their teachers, median",
            START,
            at_most(1.6),
            *contrast(context, f"{size} delay"),
            Published(1.0) if size == "narrow" else None,
            size_needed="paper",
        )
        for other, base in (("ce", "labels"), ("one-shot", "the last checkpoint")):
            yield Gate(
                "9",
                f"{size} students, against {base}",
                f"mean accuracy of progressive students minus that of students of {base} when the teacher has 0.99",
                START,
                above(0.0),
                *contrast(context, f"{size} prog - {other}"),
            )
    for arm, base in (("ce", "labels"), ("one-shot", "the last checkpoint")):
        yield Gate(
            "9",
            f"narrow students of {base}",
            "mean accuracy when the teacher has 0.99",
            START,
            at_most(0.6),
            *contrast(context, f"narrow {arm}"),
            Published(0.5),
        )
    for size in ("narrow", "wide"):
        yield from _checkpoints(context, size)
    yield from _curriculum(context)
    yield Gate(
        "15",
        "width",
        "rank correlation of width with the steps to an accuracy of 0.9",
        SECTION.format("4.2.7.1, Figure 4.10"),
        at_most(-0.8),
        *contrast(context, "width and t90"),
    )
    for group, heads in (("heads", "heads of one width"), ("hidden", "heads that share a width"),
                         ("averaged", "averaged heads")):  # fmt: skip
        yield Gate(
            "15",
            f"Transformers, {heads}",
            "rank correlation of the number of heads with the steps to an accuracy of 0.9",
            SECTION.format("4.2.7.2, Figures 4.10 and 4.13"),
            below(0.0),
            *contrast(context, f"{group} and t90"),
        )
    yield Gate(
        "15",
        "BERTs",
        "rank correlation of the number of heads with the steps to 80 % of the last accuracy, of models "
        "that learn masked tokens from labels for as many steps",
        SECTION.format("4.2.8.6, Figure 4.26"),
        below(0.0),
        *contrast(context, "heads and t80"),
    )
    for size in ("narrow", "wide"):
        for arm, tau in (("cool", "0.0001"), ("mild", "0.01")):
            yield Gate(
                "18",
                f"{size} students, temperature {tau}",
                "median final accuracy minus that of students of top classes",
                SECTION.format("4.2.1"),
                within(0.0, 0.03),
                *contrast(context, f"{size} {arm} - middle"),
            )
        yield Gate(
            "18",
            f"{size} students, temperature 1",
            "mean accuracy at the switch minus that of students of top classes",
            SECTION.format("4.2.7.2, Figure 4.17"),
            below(0.0),
            *contrast(context, f"{size} hot - middle at the switch"),
            kind=OWN,
        )


def _mean_correlation(context: Results, arm: str, *, inside: bool) -> evidence.Evidence:
    """Return the mean correlation of single signs, those that matter or the others, of each teacher at the checkpoint
    that its students of ``arm`` learned from first."""
    if context.scale != "paper":
        return None, "needs scale paper: the text's rate and dimensions"
    chosen = context.table("chosen").filter(dataset=CANDIDATES, arm=arm, order=0)
    rows = context.table("correlations").filter(run=TEACHER).join(
        chosen.select(model="teacher", step="teacher_step").unique(), on=["model", "step"]
    )  # fmt: skip
    matters = pl.col("feature") != "rest"
    return evidence.reduced(
        rows.filter(matters if inside else ~matters), pl.col("correlation").mean(), "no teacher"
    )


def _checkpoints(context: Results, size: str) -> Iterator[Gate]:
    yield Gate(
        "10",
        f"{size} students, in the transition",
        "median final accuracy",
        R1,
        at_least(0.9),
        *contrast(context, f"{size} middle"),
        Published(1.0) if size == "narrow" else None,
        size_needed="paper",
    )
    yield Gate(
        "10",
        f"{size} students, behind it",
        "median final accuracy",
        R1,
        at_most(0.65),
        *contrast(context, f"{size} behind"),
        Published(0.5) if size == "narrow" else None,
    )
    yield Gate(
        "10",
        f"{size} students, difference",
        "median final accuracy of students of a checkpoint in the transition minus that of students of one behind it",
        R1,
        above(0.0),
        *contrast(context, f"{size} middle - behind"),
    )
    yield Gate(
        "10",
        f"{size} students, before it",
        "median final accuracy",
        R1,
        at_most(0.55),
        *contrast(context, f"{size} before"),
        Published(0.5) if size == "narrow" else None,
    )
    yield Gate(
        "11",
        f"{size} students, before the switch",
        "distance of accuracy from the checkpoint's, mean",
        R1,
        at_most(0.07),
        *contrast(context, f"{size} distance at the switch"),
        Published(0.01, derivation="|0.74 - 0.75|") if size == "narrow" else None,
    )
    yield Gate(
        "11",
        f"{size} students, behind the switch",
        "rise of accuracy above the checkpoint's, mean",
        R1,
        at_least(0.1),
        *contrast(context, f"{size} rise after the switch"),
        Published(0.25, derivation="1.00 - 0.75") if size == "narrow" else None,
    )


def _curriculum(context: Results) -> Iterator[Gate]:
    yield Gate(
        "12",
        "in the transition",
        "largest SEP in the transition, median over teachers",
        R1,
        at_least(3.0),
        *contrast(context, "teacher peak"),
    )
    yield Gate(
        "12",
        "at the end",
        "SEP at the last step, median over teachers",
        R1,
        at_most(1.5),
        *contrast(context, "teacher final"),
    )
    yield Gate(
        "12",
        "place of the peak",
        "share of teachers whose largest SEP lies in the transition",
        R1,
        above(0.5),
        *contrast(context, "teacher inside"),
        kind=OWN,
    )
    for gate, arm, inside, which, bars, printed in (
        ("single signs at checkpoint 2", "middle", True, "signs that matter",
         within(0.095, 0.025), Published(0.095)),
        ("other signs at checkpoint 2", "middle", False, "other signs", at_most(0.01), None),
        ("single signs at checkpoint 3", "behind", True, "signs that matter", at_most(0.015), None),
    ):  # fmt: skip
        measurement = _mean_correlation(context, arm, inside=inside)
        yield Gate(
            "13", gate, f"mean correlation of {which}", R1, bars, *measurement, printed, scale_needed="paper"
        )
    warm = SECTION.format("4.2.7.1, Figure 4.12")
    yield Gate(
        "14",
        "degree of the largest SEP",
        "share of teachers at the higher rate whose largest SEP is of degree 2 or 3",
        warm,
        above(0.5),
        *contrast(context, "warm teacher degree"),
    )
    for size in ("narrow", "wide"):
        for where in ("before", "behind"):
            yield Gate(
                "14",
                f"{size} students, {where} the transition",
                "median final accuracy of students that learn from a "
                "checkpoint in the transition of a teacher at the higher rate first minus that of students of one "
                f"{where} it",
                warm,
                above(0.0),
                *contrast(context, f"warm {size} middle - {where}"),
            )
