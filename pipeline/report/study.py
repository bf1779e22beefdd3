"""The page of a study: its own words (``report.md.j2``), with figures, claims and numbers by functions."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from pipeline.errors import SandglassError
from pipeline.params.scales import resolve
from pipeline.report import figures, index, wording
from pipeline.report.markdown import Heading, Mark, Text
from pipeline.report.results import Row, Study

if TYPE_CHECKING:
    from pipeline.report.site import Site

WORDS = "report.md.j2"
DEFAULT = Path(__file__).parent / "study.md.j2"
ROWS = 20  # of a table, unless the text says how many

Draw = Callable[[list[str]], Markup]


class StudyText:
    """The functions that a study's text may call; each returns a mark (`markdown.Mark`) to be replaced later."""

    def __init__(self, site: Site, study: Study) -> None:
        path = Path("pipeline/studies") / study.id / WORDS
        self.path = path if path.is_file() else DEFAULT
        self.site, self.study = site, study
        self.text = Text(str(path))
        self.blocks = site.blocks(study.page)
        self.shown: set[tuple[str, str]] = set()  # (kind, id) of what the text has shown

    def render(self) -> tuple[Markup, list[Heading]]:
        """The text, then what it does not show, as HTML, and its headings.

        Raises SandglassError naming the template and what is wrong in it.
        """
        environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True)
        environment.globals = {name: self._named(name) for name in FUNCTIONS}
        environment.globals["study"] = self.study
        try:
            words = environment.from_string(self.path.read_text(encoding="utf-8")).render()
        except (jinja2.TemplateError, TypeError) as error:
            line = f" line {error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
            raise SandglassError(f"{self.text.where}:{line} {error}") from None
        taken = {f"claim-{claim}" for claim in self.study.verdicts} | {"main", "top"}
        taken |= {f"figure-{name}" for name in self.study.entry.figures}
        taken |= {f"theory-{check}" for check in self.study.theory}
        return self.text.html(words + self._rest(), taken)

    def _rest(self) -> str:
        """Figures, claims and theory checks that the text does not show: nothing is lost."""
        left = [self.figure(name) for name in self._missing("figure", self.study.entry.figures)]
        left += [self.claims(claim) for claim in self._missing("claim", self.study.verdicts)]
        left += [self.theory(check) for check in self._missing("theory", self.study.theory)]
        return "\n\n".join(["", "## Also measured", *left]) if left else ""

    def _missing(self, kind: str, names: Iterable[str]) -> list[str]:
        return [name for name in names if (kind, name) not in self.shown]

    def _named(self, name: str) -> Callable[..., str]:
        """The function ``name``, its errors with the place and the call."""
        function = getattr(self, name)

        @wraps(function)
        def call(*given: Any, **named: Any) -> str:
            try:
                made: str = function(*given, **named)
            except SandglassError as error:
                words = [repr(value) for value in given] + [
                    f"{key}={value!r}" for key, value in named.items()
                ]
                raise SandglassError(f"{self.text.where}: {name}({', '.join(words)}): {error}") from None
            return made

        return call

    def _block(self, call: str, draw: Draw, claims: tuple[str, ...] = ()) -> str:
        # Blank lines around it: two blocks in neighbouring lines are two paragraphs.
        return "\n\n" + self.text.mark(Mark(call, True, draw, claims)) + "\n\n"

    def _inline(self, call: str, content: Markup, claims: tuple[str, ...] = ()) -> str:
        return self.text.mark(Mark(call, False, lambda _: content, claims))

    # --- what a text may call ---------------------------------------------------------------------

    def figure(self, name: str) -> str:
        """A figure with caption, downloads, md5 and the command that rebuilds it."""
        _known("figure", name, self.study.entry.figures)
        shown = figures.load(self.study, name)
        first = self._first("figure", name)
        artifact = self.site.artifact("figure", self.study.id, name)

        def draw(claims: list[str]) -> Markup:
            return Markup(self.blocks.figure(shown, artifact, shown.alt(claims), first))

        return self._block(f'figure("{name}")', draw)

    def claims(self, *names: str) -> str:
        """The gates of claims, as a table."""
        for name in names:
            _known("claim", name, self.study.verdicts)
        rows = [row for name in names for row in self.study.claims if row["claim"] == name]
        anchors = {name for name in names if self._first("claim", name)}
        drawn = Markup(self.blocks.claims(self.study, rows, names, anchors))
        return self._block(f"claims{names}", lambda _: drawn, names)

    def verdict(self, claim: str) -> str:
        """The verdict of a whole claim."""
        _known("claim", claim, self.study.verdicts)
        badge = Markup(self.blocks.badge(self.study.verdicts[claim]))
        return self._inline(f'verdict("{claim}")', badge, (claim,))

    def value(self, claim: str, gate: str) -> str:
        """What was measured."""
        row = self.study.gate(claim, gate)
        return self._traced("value", row, wording.number(row["value"]))

    def published(self, claim: str, gate: str) -> str:
        """The published number."""
        row = self.study.gate(claim, gate)
        return self._traced("published", row, wording.number(row["published"]))

    def interval(self, claim: str, gate: str) -> str:
        """The interval of what was measured."""
        row = self.study.gate(claim, gate)
        return self._traced("interval", row, wording.interval(row["lo"], row["hi"]))

    def _traced(self, column: str, row: Row, text: str) -> str:
        drawn = Markup(self.blocks.traced(self.study.id, row, column, text or "not measured"))
        return self._inline(f"{column}({row['claim']!r}, {row['gate']!r})", drawn)

    def table(
        self,
        name: str,
        columns: list[str] | None = None,
        rows: int = ROWS,
        where: dict[str, Any] | None = None,
    ) -> str:
        """The first rows of a result table, of those that have the values ``where``."""
        _known("table", name, self.study.entry.tables)
        artifact = self.site.artifact("table", self.study.id, name)
        frame, _ = self.site.table(self.study.id, name)
        for column in [*(columns or []), *(where or {})]:
            _known("column", column, frame.columns)
        frame = frame.filter(**where) if where else frame
        shown = frame.select(columns) if columns else frame
        drawn = Markup(self.blocks.table(artifact, shown.head(rows), frame.height))
        return self._block(f'table("{name}")', lambda _: drawn)

    def theory(self, check: str) -> str:
        """The rows of a theory entry."""
        _known("theory entry", check, self.study.theory)
        artifact = self.site.artifact("theory", self.study.id, check)
        first = self._first("theory", check)
        drawn = Markup(self.blocks.theory(artifact, self.study.theory[check], first, fold=True))
        return self._block(f'theory("{check}")', lambda _: drawn)

    def param(self, path: str) -> str:
        """A value of params.yaml, at the scale."""
        value: Any = self.site.params.raw
        for i, key in enumerate(path.split(".")):
            value = resolve(value, self.site.params.scale)
            if not isinstance(value, dict):
                raise SandglassError(f"{'.'.join(path.split('.')[:i])} is a value, {value!r}")
            _known("key", key, value)
            value = value[key]
        resolved = resolve(value, self.site.params.scale)
        shown = resolved if isinstance(resolved, str) else wording.as_json(resolved)
        return self._inline(f'param("{path}")', Markup(self.blocks.param(path, shown)))

    def artifact(self, path: str, text: str) -> str:
        """A link to the page of the file at ``path``."""
        known = {str(each): artifact for artifact in self.site.artifacts for each in artifact.paths}
        _known("artifact", path, known)
        return self._inline(f'artifact("{path}")', Markup(self.blocks.to(known[path].page, text)))

    def index(self) -> str:
        """Every item of the study's index (``index.yaml``): id, what it is, its artifacts and its code."""
        drawn = Markup(self.blocks.index(index.load(self.study.id, self.site.artifacts)))
        return self._block("index()", lambda _: drawn)

    def _first(self, kind: str, name: str) -> bool:
        """Whether this is the first time, so that an id stands once in a page."""
        first = (kind, name) not in self.shown
        self.shown.add((kind, name))
        return first


FUNCTIONS = (
    "figure", "claims", "verdict", "value", "published", "interval", "table", "theory", "param", "artifact",
    "index",
)  # fmt: skip


def _known(kind: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        close = difflib.get_close_matches(str(name), names, n=1) if len(names) > 30 else names
        hint = f"did you mean {close[0]}?" if len(names) > 30 and close else f"known: {', '.join(names[:30])}"
        raise SandglassError(f"no {kind} {name!r}; {hint}")
