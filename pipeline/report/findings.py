"""What a study found, in the words of its page, as plain text: for README and the terminal.

A study's text (``report.md.j2``) has two blocks for it: ``finding``, the result in a sentence or two, and
``surprising``, what the source does not say. The overview shows the same blocks with links (`pipeline.report.study`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jinja2

from pipeline.errors import SandglassError
from pipeline.kit.verdicts import UNTESTED
from pipeline.references import standing
from pipeline.references.reading import Reference, Row
from pipeline.report import wording
from schemas.claims import FAILS, HOLDS

WORDS = "report.md.j2"
FINDING, SURPRISING = BLOCKS = ("finding", "surprising")
NOT_MEASURED = "(not measured at this scale)"  # in place of a number


# What a text may say of a gate in one word or number: the column that it is from, and how it is said.
LARGER = {"long": "longer run", "paper": "published size"}  # scales, as readers know them who have read nothing else
SAID: dict[str, tuple[str, Callable[[Row], str]]] = {
    "value": ("value", lambda row: wording.rounded(row["value"])),
    "percent": ("value", lambda row: wording.percent(row["value"])),
    "models": ("n", lambda row: wording.count(row["n"])),
    "published": ("published", wording.published),
    "interval": ("interval", lambda row: wording.interval(row["lo"], row["hi"], digits=wording.PROSE)),
}


@dataclass(frozen=True)
class Told:
    """What is told of a gate: its strongest evidence, the reference set that it is from (None if it is of this build),
    and the row of this build."""

    row: Row
    reference: Reference | None
    own: Row

    @classmethod
    def of(cls, row: Row) -> Told:
        """Return what is told of a gate of this build, which has what the sets say as ``references``."""
        return cls(*standing.strongest(row), row)

    @classmethod
    def at(cls, row: Row, scale: str) -> Told | None:
        """Return what was measured at a scale, None if nothing was: of what asked the gate's question that with most
        models, else of what was held against another bar."""
        found = standing.measured_at(row, scale)
        return None if found is None else cls(*found, row)

    @property
    def scale(self) -> str:
        """Return what tells its scale if that is not the scale of this build, ``longer run``; else nothing."""
        scale: str = self.row["scale"]
        return "" if scale == self.own["scale"] else LARGER.get(scale, f"at {scale}")

    def number(self, value: str, interval: str) -> str:
        """Return a number with its interval and scale, in brackets behind it, where it has them."""
        more = "; ".join(filter(None, [interval, self.scale]))
        return value + (f" ({more})" if more else "")

    def says(self, holds: str, fails: str, open: str, untested: str) -> str:
        """Return the phrase that the verdict chooses; ``untested`` where there is none."""
        if self.row["verdict"] in UNTESTED:
            return untested
        return {HOLDS: holds, FAILS: fails}.get(self.row["verdict"], open)


class Gates:
    """The gates of a study, and the words that its text makes of them, as plain text."""

    def __init__(self, claims: Iterable[Row]) -> None:
        """Take a claims table whose rows have what the reference sets say (`pipeline.references.standing.rows`)."""
        self.rows = {(row["claim"], row["gate"]): row for row in claims}

    def functions(self) -> dict[str, Callable[..., str]]:
        """Return what a text may call, by name."""
        own: dict[str, Callable[..., str]] = {"number": self.number, "says": self.says}
        return own | {name: partial(self.said, name) for name in SAID}

    def said(self, name: str, claim: str, gate: str) -> str:
        """Return what `SAID` says of a gate, or that it was not measured."""
        return self._said(name, self._told(claim, gate)) or NOT_MEASURED

    def number(self, claim: str, gate: str) -> str:
        """Return what was measured, with its interval where it has one, and its scale where that is a larger one."""
        told = self._told(claim, gate)
        if told.row["value"] is None:
            return NOT_MEASURED
        return told.number(self._said("value", told), self._said("interval", told))

    def says(self, claim: str, gate: str, holds: str, fails: str, open: str, untested: str = "") -> str:
        """Return the phrase that the gate's verdict chooses."""
        return self._told(claim, gate).says(holds, fails, open, untested or open)

    def _said(self, name: str, told: Told) -> str:
        return SAID[name][1](told.row)

    def _told(self, claim: str, gate: str) -> Told:
        if (claim, gate) not in self.rows:
            raise SandglassError(f"no gate {gate!r} of claim {claim}")
        return Told.of(self.rows[claim, gate])


def plain(study: str, claims: Iterable[Row], block: str = FINDING) -> str:
    """Return a block of the study's text as one line of plain text; empty if it has none.

    ``claims`` are the rows of the study's claims table with what the reference sets say of each
    (`pipeline.references.standing.rows`).

    Raises SandglassError naming the file and what is wrong in it.
    """
    path = Path("pipeline/studies") / study / WORDS
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.globals = dict(Gates(claims).functions())
    try:
        template = environment.from_string(path.read_text(encoding="utf-8"))
        renderer = template.blocks.get(block)
        text = "" if renderer is None else "".join(renderer(template.new_context()))
    except (SandglassError, jinja2.TemplateError, TypeError) as error:
        raise SandglassError(f"{path}, block {block}: {error}") from None
    return re.sub(r"[ \n]+", " ", re.sub(r"\*\*.*?\*\*", "", text)).strip()  # spaces that do not break stay
