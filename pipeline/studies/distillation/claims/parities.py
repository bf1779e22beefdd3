"""Claims 8 to 15 and 18: MLPs on sparse parity."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Published, above, at_least, at_most, below, within
from pipeline.studies.distillation.claims.common import SECTION, contrast
from pipeline.studies.distillation.names import WARMER
from schemas.claims import OWN

R1, APPENDIX = SECTION.format("4.2.2.1, Figure 4.5"), SECTION.format("4.2.7.1")
START = SECTION.format("4.2.2, Figure 4.4")


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    paper = context.scale == "paper"
    for size in ("narrow", "wide"):
        near = within(1.05, 0.15) if paper else at_most(1.6)
        yield Gate(
            "8", f"{size} students", "steps to an accuracy of 0.9, progressive students over teachers, medians: "
            + ("0.9 to 1.2" if paper else "at most 1.6"),
            START, near, *contrast(context, f"{size} delay"), Published(1.0) if size == "narrow" else None,
        )  # fmt: skip
        for other, base in (("ce", "labels"), ("os", "the last checkpoint")):
            yield Gate(
                "9", f"{size} students, against {base}",
                f"accuracy of progressive students minus that of students of {base} when the teacher has 0.99: above 0",
                START, above(0.0), *contrast(context, f"{size} prog - {other}"),
            )  # fmt: skip
    for arm, base in (("ce", "labels"), ("os", "the last checkpoint")):
        yield Gate(
            "9", f"narrow students of {base}", "mean accuracy when the teacher has 0.99 is at most 0.6", START,
            at_most(0.6), *contrast(context, f"narrow {arm}"), Published(0.5),
        )  # fmt: skip
    for size in ("narrow", "wide"):
        yield from _checkpoints(context, size)
    yield from _curriculum(context)
    yield Gate(
        "15", "width", "rank correlation of width with the steps to an accuracy of 0.9 is at most -0.8",
        SECTION.format("4.2.7.1, Figure 4.10"), at_most(-0.8), *contrast(context, "width and t90"),
    )  # fmt: skip
    for size in ("narrow", "wide"):
        for arm, tau in (("cool", "0.0001"), ("mild", "0.01")):
            yield Gate(
                "18", f"{size} students, temperature {tau}",
                "median final accuracy is within 0.03 of that of top classes", SECTION.format("4.2.1"),
                within(0.0, 0.03), *contrast(context, f"{size} {arm} - middle"),
            )  # fmt: skip
        yield Gate(
            "18", f"{size} students, temperature 1", "accuracy at the switch minus that of top classes is below 0",
            SECTION.format("4.2.7.2, Figure 4.17"), below(0.0),
            *contrast(context, f"{size} hot - middle at the switch"), kind=OWN,
        )  # fmt: skip


def _checkpoints(context: Results, size: str) -> Iterator[Gate]:
    yield Gate(
        "10", f"{size} students, in the transition", "median final accuracy is at least 0.9", R1, at_least(0.9),
        *contrast(context, f"{size} middle"), Published(1.0) if size == "narrow" else None,
    )  # fmt: skip
    yield Gate(
        "10", f"{size} students, behind it", "median final accuracy is at most 0.65", R1, at_most(0.65),
        *contrast(context, f"{size} behind"), Published(0.5) if size == "narrow" else None,
    )  # fmt: skip
    yield Gate(
        "10", f"{size} students, difference", "median final accuracy in minus behind the transition is above 0", R1,
        above(0.0), *contrast(context, f"{size} middle - behind"),
    )  # fmt: skip
    yield Gate(
        "10", f"{size} students, before it", "median final accuracy is at most 0.55", R1, at_most(0.55),
        *contrast(context, f"{size} before"), Published(0.5) if size == "narrow" else None, scale_needed="paper",
    )  # fmt: skip
    yield Gate(
        "11", f"{size} students, before the switch", "mean distance of accuracy from the checkpoint's is at most 0.07",
        R1, at_most(0.07), *contrast(context, f"{size} distance at the switch"),
        Published(0.01, derivation="|0.74 - 0.75|") if size == "narrow" else None,
    )  # fmt: skip
    yield Gate(
        "11", f"{size} students, behind the switch", "mean rise above the checkpoint's accuracy is at least 0.1", R1,
        at_least(0.1), *contrast(context, f"{size} rise after the switch"),
        Published(0.25, derivation="1.00 - 0.75") if size == "narrow" else None,
    )  # fmt: skip


def _curriculum(context: Results) -> Iterator[Gate]:
    yield Gate(
        "12", "in the transition", "median over teachers of the largest SEP is at least 3", R1, at_least(3.0),
        *contrast(context, "teacher peak"),
    )  # fmt: skip
    yield Gate(
        "12", "at the end", "median SEP is at most 1.5", R1, at_most(1.5), *contrast(context, "teacher final"),
    )  # fmt: skip
    yield Gate(
        "12", "place of the peak", "share of teachers whose largest SEP lies in the transition is above one half", R1,
        above(0.5), *contrast(context, "teacher inside"), kind=OWN,
    )  # fmt: skip
    chosen, missing = None, "needs scale paper: the text's rate and dimensions"
    if context.scale == "paper":
        rows = context.table("correlations").join(
            context.table("chosen").filter(arm="middle", order=0).select("teacher", "teacher_step").unique(),
            left_on=["model", "step"], right_on=["teacher", "teacher_step"],
        )  # fmt: skip
        chosen, missing = evidence.reduced(
            rows.filter(pl.col("feature") != "rest"), pl.col("correlation").mean(), "no teacher"
        )
    yield Gate(
        "13", "single signs at checkpoint 2", "mean correlation of signs that matter lies between 0.07 and 0.12", R1,
        within(0.095, 0.025), chosen, missing, Published(0.095), scale_needed="paper",
    )  # fmt: skip
    name = WARMER[0] if context.scale == "paper" else "teacher"
    yield Gate(
        "14", "degree of the largest SEP", "share of teachers for which it is 2 or 3 is above one half",
        SECTION.format("4.2.7.1, Figure 4.12"), above(0.5), *contrast(context, f"{name} degree"),
    )  # fmt: skip
