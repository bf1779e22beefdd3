"""The small pictures of the overview lie where the numbers are."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.report import sketch
from pipeline.report.findings import Told
from schemas.claims import FLOOR

LEFT, RIGHT = sketch.MARGIN, sketch.WIDTH - sketch.MARGIN


def told(gate: str, lo: float | None, value: float, hi: float | None, **more: Any) -> Told:
    row = {"claim": "1", "gate": gate, "lo": lo, "value": value, "hi": hi, "published": None, "published_form": ""}
    row |= {"predicate": f"share of {gate}: LSTM: above 0.5", "scale": "quick", "references": []} | more
    return Told(row, None, row)


@pytest.mark.parametrize(
    ("quantity", "ends", "at"),
    [
        (told("a", 0.25, 0.5, 0.75), ("0", "1"), (0.25, 0.5, 0.75)),  # a share: from 0 to 1
        (told("a", 2.0, 3.0, 4.0), ("0", "4"), (0.5, 0.75, 1.0)),  # larger: from 0
        (told("a", -1.0, 0.0, 0.5), ("−1", "1"), (0.0, 0.5, 0.75)),  # of both signs: 0 in the middle
        (told("a", -4.0, -2.0, -1.0), ("−4", "4"), (0.0, 0.25, 0.375)),
    ],
)
def test_an_axis_holds_its_quantity(quantity: Told, ends: tuple[str, str], at: tuple[float, ...]) -> None:
    (line,) = sketch.draw([quantity])
    places = [(pixel - LEFT) / (RIGHT - LEFT) for pixel in (line.lo, line.value, line.hi)]
    assert places == pytest.approx(at) and line.ends == ends
    assert line.label == "share of a: LSTM" and line.published is None
    assert (line.zero is None) == (ends[0] == "0")


def test_a_published_number_is_marked_and_widens_the_axis() -> None:
    (line,) = sketch.draw([told("a", 0.2, 0.3, 0.4, published=2.0)])
    assert line.published == pytest.approx(RIGHT) and line.ends == ("0", "2")
    assert line.words == "a: 0.3 (0.2 to 0.4), published 2"
    (line,) = sketch.draw([told("a", 0.2, 0.3, 0.4, published=0.2, published_form=FLOOR)])
    assert line.published is None


def test_each_gate_is_drawn_once_and_those_without_an_interval_are_not() -> None:
    drawn = sketch.draw([told("a", 0, 1, 2), told("b", None, 1, None), told("a", 0, 1, 2), told("c", 0, 1, 2)])
    assert [line.label for line in drawn] == ["share of a: LSTM", "share of c: LSTM"]
    assert sketch.draw([told("b", None, 1, None)]) == []
