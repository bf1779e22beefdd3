"""The contents of a page: its headings that can be linked to, as a list that stays in sight."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import NamedTuple

MARK = "<!-- contents -->"  # where a template wants them
LEVELS = {"h2": 2, "h3": 3}
HEADING = re.compile(r"<(h[23])\b.*?</\1>", re.DOTALL)  # to read all else takes a fifth of the time of a report
QUIET = {"badge", "permalink"}  # classes of what a heading holds beside its words


class Heading(NamedTuple):
    """One line of the contents."""

    level: int
    id: str
    text: str


def headings(html: str) -> list[Heading]:
    """Return the headings of the second and third level of a page that have an id, without badges and permalinks."""
    reader = _Reader()
    reader.feed("".join(match.group() for match in HEADING.finditer(html)))
    return reader.found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Heading] = []
        self._heading: tuple[int, str] | None = None
        self._words: list[str] = []
        self._quiet = 0  # elements that are open inside one that is left out, itself counted

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        if tag in LEVELS and (anchor := named.get("id")):
            self._heading, self._words, self._quiet = (LEVELS[tag], anchor), [], 0
        elif self._heading and (self._quiet or QUIET & {*(named.get("class") or "").split()}):
            self._quiet += 1

    def handle_endtag(self, tag: str) -> None:
        if self._heading and tag in LEVELS:
            words = " ".join("".join(self._words).split()).rstrip(":— ")
            self.found.append(Heading(*self._heading, words))
            self._heading = None
        elif self._quiet:
            self._quiet -= 1

    def handle_data(self, data: str) -> None:
        if self._heading and not self._quiet:
            self._words.append(data)
