"""The small pictures of the overview: the shares and differences that a study's finding tells, with their intervals.

Shares lie on one axis from 0 to 1; a quantity that leaves it lies on one of its own, from 0 or around it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.report import wording
from pipeline.report.findings import Told
from schemas.claims import CEILING, FLOOR

WIDTH, MARGIN = 240, 5  # pixels of an axis with its margins, and of a margin
MOST = 2  # quantities of a picture: those that are told first


@dataclass(frozen=True)
class Line:
    """One quantity: its name, all of it in words, and the pixels of its interval, value and published number.

    ``zero`` is where 0 lies if that is inside the axis, and ``ends`` are the numbers at the ends of the axis.
    """

    label: str
    words: str
    lo: float
    hi: float
    value: float
    published: float | None
    zero: float | None
    ends: tuple[str, str]


def draw(told: Iterable[Told]) -> list[Line]:
    """Return the lines of the picture of what is told, each gate once, those without an interval left out."""
    gates = {(each.row["claim"], each.row["gate"]): each for each in told}
    shown = [each for each in gates.values() if None not in (each.row["lo"], each.row["value"], each.row["hi"])]
    return [_line(each) for each in shown[:MOST]]


def _line(told: Told) -> Line:
    row = told.row
    # A bound says where a number must not lie, which a tick would not.
    published = None if row["published_form"] in (FLOOR, CEILING) else row["published"]
    numbers = [row["lo"], row["value"], row["hi"], *([] if published is None else [published])]
    low, high = min(0.0, *numbers), max(0.0, *numbers)
    if low < 0:
        low, high = min(low, -high), max(high, -low)  # 0 in the middle
    elif high <= 1:
        high = 1.0

    def at(value: float) -> float:
        return MARGIN + (value - low) / (high - low) * (WIDTH - 2 * MARGIN)

    words = f"{row['gate']}: {wording.rounded(row['value'])} ({wording.interval(row['lo'], row['hi'], wording.PROSE)})"
    if published is not None:
        words += f", published {wording.rounded(published)}"
    return Line(
        told.own["predicate"].rpartition(": ")[0] or row["gate"],  # what was measured, without the bar
        " ".join(filter(None, [words, told.scale])),
        at(row["lo"]),
        at(row["hi"]),
        at(row["value"]),
        None if published is None else at(published),
        at(0.0) if low < 0 else None,
        (wording.rounded(low), wording.rounded(high)),
    )
