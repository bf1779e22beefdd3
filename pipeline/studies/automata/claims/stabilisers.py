"""Claims 28 and 30: dropout, and moving averages of weights."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit.conditions import Condition, above, below
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.automata.claims.depth import contrast

SOURCE = "Liu 2024, section 3.4.5.1.1"
AVERAGED = {"dyck42": "Dyck (4, 2)", "grid9": "Grid 9", "d8": "D8", "q8": "Q8"}  # of the chapter's EXP-STAB


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates on stabilisers."""
    for task, label, sign in (
        ("d8", "D8", 1),
        ("q8", "Q8", 1),
        ("dyck42", "Dyck (4, 2)", -1),
        ("grid9", "Grid 9", -1),
    ):
        yield Gate(
            "28",
            f"{label}, dropout 0.1",
            "mean accuracy with dropout minus that without",
            SOURCE,
            above(0.0) if sign > 0 else below(0.0),
            *contrast(context, f"{task} dropout 0.1 - none"),
        )
    for task, label in AVERAGED.items():
        yield Gate(
            "30",
            f"{label}, decay 0.9",
            "mean accuracy of moving averages of weights minus that of the weights",
            SOURCE,
            above(0.0),
            *contrast(context, f"{task} average 0.9 - none"),
        )
    for task, label in AVERAGED.items():
        yield Gate(
            "30",
            f"{label}, decay 0.95 against 0.85",
            "mean accuracy with the one decay minus that with the other (the bar is ours: the source says insensitive)",
            SOURCE,
            (Condition("value", ">", -0.01), Condition("value", "<", 0.01)),
            *contrast(context, f"{task} average 0.95 - average 0.85"),
        )
