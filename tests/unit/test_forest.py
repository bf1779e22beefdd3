"""Where a published number lies beside the interval of what was measured, and that no mark hides another."""

from __future__ import annotations

import math
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.report import forest
from schemas.claims import CEILING, FLOOR, INSIDE, NUMBER, OUTSIDE


def row(published: float, lo: float, hi: float, form: str = NUMBER, high: float | None = None, **more: Any) -> Any:
    low = -math.inf if form == CEILING else published
    top = math.inf if form == FLOOR else published if high is None else high
    where = {"published": published, "published_high": high, "published_form": form, "lo": lo, "hi": hi}
    about = {"value": (lo + hi) / 2, "size": INSIDE if low <= hi and lo <= top else OUTSIDE, "scale": "quick"}
    return where | about | {"claim": "1", "gate": "g", "row": 0, "n": 6, "references": []} | more


@pytest.mark.parametrize(
    ("gate", "at"),
    [
        (row(1.5, 1, 2), 0.0),
        (row(2.0, 1, 2), 1.0),
        (row(0.0, 1, 2), -3.0),
        (row(0.0, 1, 2, FLOOR), 0.0),  # "at least 0": met
        (row(3.0, 1, 2, FLOOR), 3.0),
        (row(3.0, 1, 2, CEILING), 0.0),
        (row(0.0, 1, 2, CEILING), -3.0),
        (row(1.0, 1, 2, high=2.0), 0.0),  # a printed range around the middle
        (row(3.0, 1, 2, high=4.0), 3.0),
        (row(1.0, 2, 2), None),
        (row(1.0, 1, 2) | {"hi": None}, None),
        (row(1.0, 1, 2) | {"published": None}, None),
    ],
)
def test_a_number_lies_in_half_widths_from_the_middle(gate: dict[str, Any], at: float | None) -> None:
    assert forest.place(gate) == at


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=40))
def test_marks_lie_beside_each_other_and_inside_is_within_one(numbers: list[float]) -> None:
    study: Any = SimpleNamespace(id="s", page="study/s.html", claims=[row(each, -1, 1) for each in numbers])
    empty: Any = SimpleNamespace(id="t", page="study/t.html", claims=[])
    drawn = forest.draw([study, empty])
    assert [strip.study.id for strip in drawn.strips] == ["s"] and len(drawn.marks) == len(numbers)
    for a, b in combinations(drawn.marks, 2):
        assert abs(a.x - b.x) >= forest.STEP - 1e-9 or abs(a.y - b.y) >= forest.STEP - 1e-9
    assert sum(mark.inside for mark in drawn.marks) == sum(-1 <= each <= 1 for each in numbers)
    edges = (forest.LEFT, forest.WIDTH - forest.RIGHT)
    assert sum(mark.x in edges for mark in drawn.marks) == sum(abs(each) >= forest.SPAN for each in numbers)
    for mark in drawn.marks:
        assert forest.LEFT <= mark.x <= forest.WIDTH - forest.RIGHT and 0 < mark.y < drawn.height - forest.BOTTOM + 1


@pytest.mark.parametrize(
    ("scales", "page", "larger"),
    [
        (("quick", "paper", 6), "reference/s.html#row-4", True),
        (("paper", "long", 6), "artifact/claims-s.html#row-0", False),
        (("quick", "quick", 2), "artifact/claims-s.html#row-0", False),
        (("quick", "quick", 24), "reference/s.html#row-4", False),  # of as large a scale the one with most models
    ],
)
def test_a_number_has_one_mark_by_the_largest_scale_that_measured_it(
    scales: tuple[str, str, int], page: str, larger: bool
) -> None:
    here, there, n = scales
    reference: Any = SimpleNamespace(page="reference/s.html")
    other = row(9.0, 1, 2, scale=there, same=True, n=n) | {"row": 4}
    unlike = other | {"same": False, "scale": "paper", "n": 99}
    both = row(1.5, 1, 2, scale=here, references=[(reference, other), (reference, unlike)])
    study: Any = SimpleNamespace(id="s", page="study/s.html", claims=[both])
    (mark,) = forest.draw([study]).marks
    assert (mark.page, mark.larger) == (page, larger)
    published, scale = (9, there) if "reference" in page else (1.5, here)
    assert mark.inside == (published == 1.5)
    assert f"published {published}, here 1.5 (1 to 2), scale {scale}" in mark.words
