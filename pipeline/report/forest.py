"""The picture of the overview: every published number beside the interval of what was measured here.

Quantities have units of all kinds, so each interval is drawn from −1 to 1 and the published number where it lies then.
A number between −1 and 1 is one that this reproduction agrees with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.kit.verdicts import Published
from pipeline.report import wording
from pipeline.report.results import Row, Study
from schemas.claims import INSIDE, OUTSIDE, SCALES

SPAN = 5.0  # half-widths of the interval that are drawn on each side; what lies farther stands at the edge
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 880, 110, 16, 30, 46  # pixels
RADIUS, STEP = 4.0, 9.5  # of a mark, and between two that would lie upon each other
LEAST = 26.0  # pixels of a study's row


@dataclass(frozen=True)
class Mark:
    """One published number: where it lies, whether the interval holds it, the scale that measured it, the page to read
    more on, and all of it in words."""

    x: float
    y: float
    inside: bool
    larger: bool  # measured by a reference set at a scale above that of this build
    page: str
    words: str


@dataclass(frozen=True)
class Strip:
    """The marks of one study, and the middle of its row."""

    study: Study
    y: float
    marks: list[Mark]


@dataclass(frozen=True)
class Forest:
    """All strips, and how high the picture is."""

    strips: list[Strip]
    height: float

    @property
    def marks(self) -> list[Mark]:
        """Return the marks of all studies."""
        return [mark for strip in self.strips for mark in strip.marks]


def place(row: Row) -> float | None:
    """Return where the published number lies, in half-widths of the interval from its middle.

    Of a published range or bound the nearest number counts. None where there is no published number, or no interval.

    >>> place({"published": 3.0, "published_high": None, "published_form": "", "lo": 1.0, "hi": 2.0})
    3.0
    """
    lo, hi, value = row["lo"], row["hi"], row["published"]
    if None in (lo, hi, value) or not hi > lo:
        return None
    low, high = Published(value, row["published_high"], row["published_form"]).ends
    middle = (lo + hi) / 2
    return (min(max(middle, low), high) - middle) / ((hi - lo) / 2)


def draw(studies: Iterable[Study]) -> Forest:
    """Return the picture of these studies; those without a published number in it have no row."""
    strips, top = [], float(TOP)
    for study in studies:
        found = sorted(_numbers(study), key=lambda each: abs(each[0]))
        if not found:
            continue
        lanes: list[list[float]] = []  # the places of the marks of each lane, from the middle outwards
        placed = []
        for at, row, page, larger in found:
            x = LEFT + (min(max(at, -SPAN), SPAN) + SPAN) / (2 * SPAN) * (WIDTH - LEFT - RIGHT)
            lane = next(
                (i for i, taken in enumerate(lanes) if all(abs(x - other) >= STEP for other in taken)), len(lanes)
            )
            if lane == len(lanes):
                lanes.append([])
            lanes[lane].append(x)
            placed.append((x, lane, row, page, larger))
        height = max(LEAST, STEP * len(lanes) + 8)
        middle = top + height / 2
        marks = [
            Mark(x, middle + _offset(lane), row["size"] == INSIDE, larger, page, _words(study, row))
            for x, lane, row, page, larger in placed
        ]
        strips.append(Strip(study, middle, marks))
        top += height
    return Forest(strips, top + BOTTOM)


def _offset(lane: int) -> float:
    """Return the distance of a lane from the middle of its row: 0, then one up, one down, two up."""
    return STEP * ((lane + 1) // 2) * (-1 if lane % 2 else 1)


def _numbers(study: Study) -> Iterable[tuple[float, Row, str, bool]]:
    """Yield the place of each published number, the row that says it, its page, and whether its scale is larger.

    Where several builds measured a number, that at the largest scale counts, and of these the one with most models.
    """
    for row in study.claims:
        measured = [(row, f"artifact/claims-{study.id}.html#row-{row['row']}")]
        measured += [(found, f"{kept.page}#row-{found['row']}") for kept, found in row["references"] if found["same"]]
        compared = [
            (at, found, page)
            for found, page in measured
            if (at := place(found)) is not None and found["size"] in (INSIDE, OUTSIDE)
        ]
        if compared:
            at, found, page = max(compared, key=lambda each: (SCALES.index(each[1]["scale"]), each[1]["n"] or 0))
            larger = SCALES.index(found["scale"]) > SCALES.index(row["scale"])
            yield at, found | {"claim": row["claim"], "gate": row["gate"]}, page, larger


def _words(study: Study, row: Row) -> str:
    between = wording.interval(row["lo"], row["hi"], digits=wording.PROSE)
    return (
        f"{study.id}, claim {row['claim']}, {row['gate']}: published {wording.published(row)}, "
        f"here {wording.rounded(row['value'])} ({between}), scale {row['scale']}"
    )
