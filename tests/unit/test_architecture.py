"""The rooms of the code: no import runs in a circle, and the page that shows them is current."""

from __future__ import annotations

import re
import sys
from functools import cache
from graphlib import TopologicalSorter

from workspace import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "docs"))
import rooms

arrows = cache(rooms.arrows)  # which reads every module


def test_imports_between_rooms_never_run_in_a_circle() -> None:
    order = list(TopologicalSorter(arrows()).static_order())
    assert order.index("store") < order.index("kit") < order.index("studies")


def test_no_room_below_knows_the_rooms_of_readers() -> None:
    for name, own in arrows().items():
        if name not in ("report", "access", "audit", "steps"):
            assert not own & {"report", "access", "audit"}, name


def test_the_picture_is_one_that_mermaid_draws() -> None:
    """A name that is no word, such as ``{}``, spoils the whole picture."""
    fence, kind, *lines, _ = rooms.drawing().splitlines()
    assert (fence, kind) == ("```mermaid", "flowchart TD") and lines
    assert all(re.fullmatch(r"  \w+ (-->|-\.->) \w+", line) for line in lines)


def test_the_page_shows_the_rooms_of_today() -> None:
    """If not: python docs/rooms.py."""
    assert rooms.page() == rooms.PAGE.read_text(encoding="utf-8")
