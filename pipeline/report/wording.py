"""How values become words of a page: numbers, cells of tables, sizes, docstrings."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from pipeline.kit import verdicts
from schemas.claims import CEILING, FAILS, FLOOR, HOLDS, INSIDE, OUTSIDE

SHOWN_ITEMS = 12  # of a list in a cell
PROSE = 3  # significant digits of a number in a sentence
_COUNTS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
COMPARED = (INSIDE, OUTSIDE)  # where a published value lies
SEVERAL = verdicts.SEVERAL  # kinds of gates, in the plural
DECIDED = (HOLDS, FAILS)  # the reason of such a verdict names the bar

_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{5})")
_IDS = re.compile(r"^[A-Z]+-[A-Z0-9]+(?:, [A-Z0-9-]+)*: ")  # such as "DYCK-TH2, TH3: "
_SOURCE = re.compile(r" \((?:[^()]|\([^()]*\))*\)\.?$")

# Docstrings are prose with `names`; nothing else in them means anything.
_PROSE = MarkdownIt("zero").enable("backticks")


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with so many significant digits; empty for None."""
    return "" if value is None else f"{value:.{digits}g}".replace("-", "−")


def rounded(value: float | None) -> str:
    """Return a number as sentences have it, with three significant digits; empty for None."""
    return number(value, PROSE)


def percent(share: float | None) -> str:
    """Return a share as sentences have it: ``29 %``; empty for None.

    >>> percent(0.2951), percent(0.00012), percent(0.99996)
    ('29.5\\xa0%', '0.012\\xa0%', '99.996\\xa0%')
    """
    if share is None:
        return ""
    text = f"{100 * share:.{PROSE}g}"
    if float(text) == 100 and share < 1:  # "100 %" is said of all alone
        text = f"{100 * share:.5g}"
    return f"{text}\N{NO-BREAK SPACE}%".replace("-", "−")


def count(number: int | None) -> str:
    """Return how many there are, in words up to twelve; empty for None.

    >>> count(6), count(40)
    ('six', '40')
    """
    if number is None:
        return ""
    return _COUNTS[number] if number < len(_COUNTS) else str(number)


def interval(lo: float | None, hi: float | None, digits: int = 4) -> str:
    """Return an interval as ``0.78 to 2.14``; empty where there is none."""
    return "" if lo is None or hi is None else f"{number(lo, digits)} to {number(hi, digits)}"


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


def as_json(value: Any) -> Markup:
    """Return a parameter as it is written, escaped for the text of a page: quotes need not be there."""
    return Markup(html.escape(json.dumps(value, ensure_ascii=False), quote=False))


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


def cited(source: str) -> Markup:
    """Return a reference with its number on arXiv as a link.

    >>> cited("Li 2023, arXiv:2303.04245 (v2)")
    Markup('Li 2023, <a href="https://arxiv.org/abs/2303.04245">arXiv:2303.04245</a> (v2)')
    """
    link = r'<a href="https://arxiv.org/abs/\1">arXiv:\1</a>'
    return Markup(_ARXIV.sub(link, str(escape(source))))


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
