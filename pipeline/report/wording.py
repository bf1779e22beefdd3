"""How values become words of a page: numbers, cells of tables, sizes, docstrings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup

from schemas.claims import CEILING, FAILS, FLOOR, HOLDS, INSIDE, OUTSIDE

SHOWN_ITEMS = 12  # of a list in a cell
COMPARED = (INSIDE, OUTSIDE)  # where a published value lies
DECIDED = (HOLDS, FAILS)  # the reason of such a verdict names the bar

_IDS = re.compile(r"^[A-Z]+-[A-Z0-9]+(?:, [A-Z0-9-]+)*: ")  # such as "DYCK-TH2, TH3: "
_SOURCE = re.compile(r" \((?:[^()]|\([^()]*\))*\)\.?$")

# Docstrings are prose with `names`; nothing else in them means anything.
_PROSE = MarkdownIt("zero").enable("backticks")


def number(value: float | None) -> str:
    """Return a number with four significant digits; empty for None."""
    return "" if value is None else f"{value:.4g}".replace("-", "−")


def interval(lo: float | None, hi: float | None) -> str:
    """Return an interval as ``0.78 to 2.14``; empty where there is none."""
    return "" if lo is None or hi is None else f"{number(lo)} to {number(hi)}"


def published(row: Mapping[str, Any]) -> str:
    """Return the published number of a gate, or the published range or bound; empty where there is none."""
    high = row.get("published_high")
    sign = {FLOOR: "≥ ", CEILING: "≤ "}.get(row.get("published_form", ""), "")
    return sign + number(row["published"]) if high is None else interval(row["published"], high)


def cell(value: Any) -> str:
    """Return a value of a table in words: floats to four digits, lists by their first items."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list):
        more = f" … ({len(value)})" if len(value) > SHOWN_ITEMS else ""
        return " ".join(cell(item) for item in value[:SHOWN_ITEMS]) + more
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def is_number(value: Any) -> bool:
    """Return whether a cell is to be aligned and sorted as a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def as_json(value: Any) -> str:
    """Return a parameter as it is written."""
    return json.dumps(value, ensure_ascii=False)


def size(count: int) -> str:
    """Return bytes in the unit that leaves at most four digits: ``812 B``, ``17.3 kB``, ``2.1 MB``."""
    for unit, scale in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"


def prose(text: str) -> Markup:
    """Return a docstring as paragraphs, with its `names` as code."""
    return Markup(_PROSE.render(re.sub(r"`{2}([^`]+)`{2}", r"`\1`", text)))


def first_paragraph(text: str) -> str:
    """Return the first paragraph of a docstring in one line."""
    return " ".join(text.split("\n\n")[0].split())


def statement(doc: str) -> str:
    """Return what the docstring of a theory check says first, without the chapter's ids and the source in brackets.

    >>> statement("DYCK-TH2, TH3: raw tokens suffice (Corollary 1, C.3).")
    'Raw tokens suffice'
    """
    return capital(_SOURCE.sub("", _IDS.sub("", first_paragraph(doc))).rstrip("."))


def capital(text: str) -> str:
    """Return ``text`` with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def slug(text: str) -> str:
    """Return ``text`` as the id of an element: lower-case letters, digits and single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "section"
