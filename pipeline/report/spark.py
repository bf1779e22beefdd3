"""The small pictures in the sentences of the overview: where a share and its interval lie between 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.report import wording
from pipeline.report.findings import Told
from schemas.claims import CEILING, FLOOR

WIDTH, MARGIN = 64, 4  # pixels of a picture, and beside its axis


@dataclass(frozen=True)
class Spark:
    """A share in words, and the pixels of its interval, its value and the published number, if there is one."""

    words: str
    lo: float
    hi: float
    value: float
    published: float | None


def draw(told: Told) -> Spark | None:
    """Return the picture of what is told of a gate; None where that is no share, or has no interval."""
    row = told.row
    if any(row[name] is None or not 0 <= row[name] <= 1 for name in ("lo", "value", "hi")):
        return None
    # A bound says where a number must not lie, which a tick would not.
    is_number = row["published"] is not None and row["published_form"] not in (FLOOR, CEILING)
    published = row["published"] if is_number and 0 <= row["published"] <= 1 else None
    words = f"{wording.rounded(row['value'])}, {wording.interval(row['lo'], row['hi'], wording.PROSE)}"
    if published is not None:
        words += f"; published {wording.rounded(published)}"
    return Spark(
        words, _at(row["lo"]), _at(row["hi"]), _at(row["value"]), None if published is None else _at(published)
    )


def _at(share: float) -> float:
    return MARGIN + share * (WIDTH - 2 * MARGIN)
