"""What a study found, in the words of its page, as plain text: for README and the terminal.

A study's text (``report.md.j2``) has two blocks for it: ``finding``, the result in a sentence or two, and
``surprising``, what the source does not say. The overview shows the same blocks with links (`pipeline.report.study`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import jinja2

from pipeline.errors import SandglassError
from pipeline.kit.verdicts import UNTESTED
from pipeline.report import wording
from pipeline.report.results import Row
from schemas.claims import FAILS, HOLDS

WORDS = "report.md.j2"
FINDING, SURPRISING = BLOCKS = ("finding", "surprising")
NOT_MEASURED = "(not measured at this scale)"  # in place of a number


@dataclass(frozen=True)
class Gates:
    """The gates of a study, and the words that its text makes of them."""

    rows: dict[tuple[str, str], Row]

    @classmethod
    def of(cls, claims: Iterable[Row]) -> Gates:
        """Return the gates of a claims table."""
        return cls({(row["claim"], row["gate"]): row for row in claims})

    def value(self, claim: str, gate: str) -> str:
        """Return what was measured."""
        return wording.rounded(self._row(claim, gate)["value"]) or NOT_MEASURED

    def percent(self, claim: str, gate: str) -> str:
        """Return a measured share in percent."""
        return wording.percent(self._row(claim, gate)["value"]) or NOT_MEASURED

    def published(self, claim: str, gate: str) -> str:
        """Return the published number."""
        return wording.published(self._row(claim, gate))

    def interval(self, claim: str, gate: str) -> str:
        """Return the interval of what was measured."""
        row = self._row(claim, gate)
        return wording.interval(row["lo"], row["hi"], digits=wording.PROSE)

    def number(self, claim: str, gate: str) -> str:
        """Return what was measured, with its interval where it has one."""
        between = self.interval(claim, gate)
        return self.value(claim, gate) + (f" ({between})" if between else "")

    def models(self, claim: str, gate: str) -> str:
        """Return how many units were measured, in words: ``six``."""
        return wording.count(self._row(claim, gate)["n"])

    def says(self, claim: str, gate: str, holds: str, fails: str, open: str, untested: str = "") -> str:
        """Return the phrase that the gate's verdict chooses."""
        verdict = self._row(claim, gate)["verdict"]
        return untested or open if verdict in UNTESTED else {HOLDS: holds, FAILS: fails}.get(verdict, open)

    def _row(self, claim: str, gate: str) -> Row:
        if (claim, gate) not in self.rows:
            raise SandglassError(f"no gate {gate!r} of claim {claim}")
        return self.rows[claim, gate]


FUNCTIONS = ("value", "percent", "published", "interval", "number", "models", "says")


def plain(study: str, claims: Iterable[Row], block: str = FINDING) -> str:
    """Return a block of the study's text as one line of plain text; empty if it has none.

    Raises SandglassError naming the file and what is wrong in it.
    """
    path = Path("pipeline/studies") / study / WORDS
    gates = Gates.of(claims)
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.globals = {name: getattr(gates, name) for name in FUNCTIONS}
    try:
        template = environment.from_string(path.read_text(encoding="utf-8"))
        renderer = template.blocks.get(block)
        text = "" if renderer is None else "".join(renderer(template.new_context()))
    except (SandglassError, jinja2.TemplateError, TypeError) as error:
        raise SandglassError(f"{path}, block {block}: {error}") from None
    return re.sub(r"[ \n]+", " ", re.sub(r"\*\*.*?\*\*", "", text)).strip()  # spaces that do not break stay
