"""The small pictures of the overview lie where the numbers are."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.report import spark
from pipeline.report.findings import Told
from schemas.claims import FLOOR

LEFT, RIGHT = spark.MARGIN, spark.WIDTH - spark.MARGIN


def told(lo: float | None, value: float, hi: float | None, **more: Any) -> Told:
    row = {"lo": lo, "value": value, "hi": hi, "published": None, "published_form": ""} | more
    return Told(row, None, row)


def test_a_share_lies_between_0_and_1() -> None:
    drawn = spark.draw(told(0.25, 0.5, 1.0))
    assert drawn is not None and drawn.published is None and drawn.words == "0.5, 0.25 to 1"
    places = [(pixel - LEFT) / (RIGHT - LEFT) for pixel in (drawn.lo, drawn.value, drawn.hi)]
    assert places == pytest.approx([0.25, 0.5, 1.0])


@pytest.mark.parametrize("quantity", [(None, 0.5, None), (-0.1, 0.2, 0.5), (0.5, 0.9, 1.2), (2.0, 3.0, 4.0)])
def test_what_is_no_share_or_has_no_interval_is_not_drawn(quantity: tuple[float | None, float, float | None]) -> None:
    assert spark.draw(told(*quantity)) is None


@pytest.mark.parametrize(
    ("published", "form", "place"), [(0.0, "", LEFT), (1.0, "", RIGHT), (3.0, "", None), (0.5, FLOOR, None)]
)
def test_a_published_share_is_marked_and_a_bound_is_not(published: float, form: str, place: float | None) -> None:
    drawn = spark.draw(told(0.2, 0.3, 0.4, published=published, published_form=form))
    assert drawn is not None and drawn.published == place
