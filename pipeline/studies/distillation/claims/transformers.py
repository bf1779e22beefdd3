"""Claims 16 and 17: Transformers on sparse parity."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit.conditions import at_least, at_most
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.distillation.claims.common import SECTION, contrast
from schemas.claims import OWN

START, APPENDIX = SECTION.format("4.2.2, Figure 4.4"), SECTION.format("4.2.7.2, Figures 4.15 and 4.16")


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    for arm, targets in (("ce", "labels"), ("os", "the last checkpoint")):
        yield Gate(
            "16",
            f"students of {targets}",
            "median final accuracy",
            START,
            at_most(0.55),
            *contrast(context, f"attending {arm}"),
            Published(0.5),
        )
    yield Gate(
        "16",
        "largest correlation",
        "of students that learn from the checkpoint with the largest SEP of degree 1 first, then from the last one, "
        "the share that reaches an accuracy of 0.95",
        APPENDIX,
        at_least(0.5),
        *contrast(context, "attending peak, learned"),
    )
    yield Gate(
        "16",
        "between the peaks",
        "median final accuracy of students that learn from a checkpoint between the peaks "
        "of SEP first, then from the last one",
        APPENDIX,
        at_most(0.55),
        *contrast(context, "attending between"),
    )
    yield Gate(
        "16",
        "SEP between the peaks",
        "median SEP of degree 1 of the checkpoints between the peaks",
        APPENDIX,
        at_most(1.5),
        *contrast(context, "separation between"),
        kind=OWN,
    )
    yield Gate(
        "16",
        "progressive students",
        "steps to an accuracy of 0.9, progressive students over their teachers, median",
        START,
        at_most(1.15),
        *contrast(context, "attending delay"),
        scale_needed="paper",
    )
    yield Gate(
        "17",
        "largest",
        "largest SEP of degree 1, median over teachers that learned",
        APPENDIX,
        at_least(5.0),
        *contrast(context, "attention peak"),
    )
    yield Gate(
        "17",
        "at the end",
        "SEP of degree 1 at the last step, median over teachers that learned",
        APPENDIX,
        at_most(2.0),
        *contrast(context, "attention final"),
    )
