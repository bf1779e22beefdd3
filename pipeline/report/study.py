"""The page of a study: its own words (``report.md.j2``), with figures, claims and numbers by functions."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
from markupsafe import Markup

from pipeline.errors import SandglassError
from pipeline.params import FILE, SECTIONS, WITH_VARIANTS, study_file
from pipeline.params.scales import resolve
from pipeline.report import figures, index, spark
from pipeline.report.catalogue import Artifact
from pipeline.report.findings import FINDING, NOT_MEASURED, SAID, WORDS, Told
from pipeline.report.markdown import EVIDENCE, Mark, Text
from pipeline.report.results import Study
from pipeline.report.shared import Site
from schemas.claims import CONTRADICTED, HOLDS, IN_PART

DEFAULT = Path(__file__).parent / "study.md.j2"
INDEX = "Every item of the study: what it is, where its result lies, and the code that makes it."
ROWS = 20  # of a table, unless the text says how many
NOT_TOLD = "(not told at this scale)"  # in place of a phrase, where a gate has no verdict
UNDECIDED_HERE = "(undecided at this scale)"

Draw = Callable[[list[str]], Markup]


class StudyText:
    """The functions that a study's text may call; each returns a mark (`markdown.Mark`) to be replaced later.

    Links are right on the study's page, or on ``page`` if one is given.
    """

    def __init__(self, site: Site, study: Study, page: str | None = None) -> None:
        path = Path("pipeline/studies") / study.id / WORDS
        self.path = path if path.is_file() else DEFAULT
        self.site, self.study = site, study
        self.text = Text(str(path))
        self.blocks = site.blocks(page or study.page)
        self.shown: set[tuple[str, str]] = set()  # (kind, id) of what the text has shown
        self.is_brief = page is not None  # away from the study's page, shares are drawn beside their numbers

    def render(self) -> Markup:
        """Return the text, then what it does not show, errata and the index, as HTML.

        Raises SandglassError naming the template and what is wrong in it.
        """
        words = self._filled(None)
        taken = {f"claim-{claim}" for claim in self.study.lines} | {"main", "top"}
        taken |= {f"figure-{name}" for name in self.study.figures}
        taken |= {f"theory-{check}" for check in self.study.theory}
        return self.text.html(words + self._rest(words), taken)

    def finding(self, block: str = FINDING) -> Markup:
        """Return what the study found in short, as HTML: a block of its text; empty if it has none."""
        return self.text.html(self._filled(block))

    def _filled(self, block: str | None) -> str:
        """Return the text with its functions' marks, or one block of it."""
        environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True)
        environment.globals = {name: self._named(name) for name in FUNCTIONS}
        environment.globals["study"] = self.study
        try:
            template = environment.from_string(self.path.read_text(encoding="utf-8"))
            if block is None:
                return template.render()
            renderer = template.blocks.get(block)
            return "" if renderer is None else "".join(renderer(template.new_context()))
        except (jinja2.TemplateError, TypeError) as error:
            line = f" line {error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
            raise SandglassError(f"{self.text.where}:{line} {error}") from None

    def _rest(self, words: str) -> str:
        """Return what closes the page of every study, as evidence: figures, claims and theory checks that ``words`` do
        not show, so that nothing is lost; errata; the index."""
        left = [self.figure(name) for name in self._missing("figure", self.study.figures)]
        left += [self.claims(claim) for claim in self._missing("claim", self.study.lines)]
        left += [self.theory(check) for check in self._missing("theory", self.study.theory)]
        closing = ["### Also measured", *left] if left else []
        if self.study.errata:
            closing += ["### Errata", self._errata()]
        if items := index.load(self.study.id, self.site.params, self.site.artifacts):
            closing += ["### Index", INDEX, self._index(items)]
        heading = [] if not closing or re.search(rf"^## {EVIDENCE}$", words, re.MULTILINE) else [f"## {EVIDENCE}"]
        return "\n\n".join(["", *heading, *closing])

    def _errata(self) -> str:
        """Return the study's errata as a table: what each says, what follows, and where the evidence is."""
        drawn = Markup(self.blocks.errata(self.study.errata))
        return self._block("errata", lambda _: drawn)

    def _index(self, items: list[index.Item]) -> str:
        """Return every item of the study's index: id, what it is, its artifacts and its code."""
        drawn = Markup(self.blocks.index(items))
        return self._block("index", lambda _: drawn)

    def _missing(self, kind: str, names: Iterable[str]) -> list[str]:
        return [name for name in names if (kind, name) not in self.shown]

    def _named(self, name: str) -> Callable[..., str]:
        """Return the function ``name``, its errors with the place and the call."""
        function = getattr(self, name)

        @wraps(function)
        def call(*given: Any, **named: Any) -> str:
            try:
                made: str = function(*given, **named)
            except SandglassError as error:
                words = [repr(value) for value in given] + [f"{key}={value!r}" for key, value in named.items()]
                raise SandglassError(f"{self.text.where}: {name}({', '.join(words)}): {error}") from None
            return made

        return call

    def _block(self, call: str, draw: Draw, claims: tuple[str, ...] = ()) -> str:
        # Blank lines around it: two blocks in neighbouring lines are two paragraphs.
        return "\n\n" + self.text.mark(Mark(call, True, draw, claims)) + "\n\n"

    def _inline(self, call: str, content: Markup, claims: tuple[str, ...] = ()) -> str:
        return self.text.mark(Mark(call, False, lambda _: content, claims))

    def _absent(self, call: str, what: str, artifacts: list[Artifact], anchor: str = "") -> str:
        """Return a block that says what is not here, in its place."""
        drawn = Markup(self.blocks.absent(what, artifacts, anchor))
        return self._block(call, lambda _: drawn)

    def _lacks_claims(self) -> bool:
        """Return whether a page that is drawn from the store has no claims of this study to show."""
        return self.site.from_store and not self.study.claims

    # --- what a text may call ---------------------------------------------------------------------

    def figure(self, name: str) -> str:
        """Show a figure with caption, downloads, md5 and the command that rebuilds it; where the page has it already, a
        link to it.

        A figure that a reference set has at a larger scale stands first, and that of this build is folded below it; one
        that lacks some of what this build shows is folded itself.
        """
        _known("figure", name, self.study.figures)
        artifact = self.site.figure(self.study.id, name)
        if not self._first("figure", name):
            again = Markup(self.blocks.again(name))
            return self._block(f'figure("{name}")', lambda _: again)
        if self.site.lacks(artifact):
            return self._absent(f'figure("{name}")', f"Figure {name}", [artifact], f"figure-{name}")
        source = self.site.source_of(artifact)
        shown = figures.load(self.study, name, source)
        kept = figures.larger(self.study, name, self.site.params.scale)
        if kept is not None:
            larger = figures.load(self.study, name, source, kept)
            is_whole = figures.shows_all(self.study, name, kept)

        def draw(claims: list[str]) -> Markup:
            if kept is None:
                return Markup(self.blocks.figure(shown, artifact, shown.alt(claims)))
            if not is_whole:
                folded = f"The figure at scale {kept.scale}, which lacks some of what this one shows"
                return Markup(self.blocks.figures(shown, larger, folded, artifact, shown.alt(claims), larger.alt([])))
            folded = f"The same figure at scale {self.site.params.scale}, as built here"
            return Markup(self.blocks.figures(larger, shown, folded, artifact, larger.alt(claims), shown.alt([])))

        return self._block(f'figure("{name}")', draw)

    def claims(self, *names: str) -> str:
        """Show claims, each in a line with its gates folded below."""
        if self._lacks_claims():
            what = f"Claim {names[0]}" if len(names) == 1 else f"Claims {', '.join(names)}"
            return self._absent(f"claims{names}", what, [])
        for name in names:
            _known("claim", name, self.study.lines)
        rows = [row for name in names for row in self.study.claims if row["claim"] == name]
        anchors = {name for name in names if self._first("claim", name)}
        by_name = {name: [row for row in rows if row["claim"] == name] for name in names}
        drawn = Markup("\n").join(
            Markup(self.blocks.claim(self.study, of, name, name in anchors)) for name, of in by_name.items()
        )
        return self._block(f"claims{names}", lambda _: drawn, names)

    def judged(self, *names: str) -> str:
        """Show, in a line of its own, how claims stand that a finding rests on, each with a link to its gates."""
        if self._lacks_claims():
            return self._block(f"judged{names}", lambda _: Markup(self.blocks.not_here()))
        for name in names:
            _known("claim", name, self.study.lines)
        drawn = Markup(self.blocks.judged(self.study, names))
        return self._block(f"judged{names}", lambda _: drawn, names)

    def verdict(self, claim: str) -> str:
        """Show the verdict of a whole claim."""
        if self._lacks_claims():
            return self._inline(f'verdict("{claim}")', Markup(self.blocks.not_here()))
        _known("claim", claim, self.study.lines)
        badge = Markup(self.blocks.badge(self.study.lines[claim].verdict))
        return self._inline(f'verdict("{claim}")', badge, (claim,))

    def value(self, claim: str, gate: str) -> str:
        """Show what was measured."""
        return self._said("value", claim, gate) + self._drawn(claim, gate)

    def percent(self, claim: str, gate: str) -> str:
        """Show a measured share in percent."""
        return self._said("percent", claim, gate) + self._drawn(claim, gate)

    def models(self, claim: str, gate: str) -> str:
        """Show how many units were measured, in words."""
        return self._said("models", claim, gate)

    def published(self, claim: str, gate: str) -> str:
        """Show the published number."""
        return self._said("published", claim, gate)

    def interval(self, claim: str, gate: str) -> str:
        """Show the interval of what was measured."""
        return self._said("interval", claim, gate)

    def number(self, claim: str, gate: str) -> str:
        """Show what was measured, with its interval where it has one, and its scale where that is above this build's;
        or that no scale has measured such a gate.

        Raises SandglassError for an unknown claim.
        """
        if self._lacks_claims():
            return self._said("value", claim, gate)
        told = self._told(claim, gate)
        if told is None or told.row["value"] is None:
            return NOT_MEASURED
        interval = "" if told.row["lo"] is None or told.row["hi"] is None else self.interval(claim, gate)
        return told.number(self._said("value", claim, gate), interval) + self._drawn(claim, gate)

    def at(self, scale: str, claim: str, gate: str) -> str:
        """Show what a scale measured, with its interval where it has one; or that it measured nothing.

        For sentences that set scales, or several gates of one scale, side by side: `number` takes of each gate the
        strongest evidence. Raises SandglassError for an unknown claim or gate.
        """
        if self._lacks_claims():
            return self._said("value", claim, gate)
        told = Told.at(self.study.gate(claim, gate), scale)
        if told is None:
            return NOT_MEASURED
        value, interval = (
            self._traced(f"at({scale!r}, {claim!r}, {gate!r}) {name}", name, told) for name in ("value", "interval")
        )
        return value if told.row["lo"] is None or told.row["hi"] is None else f"{value} ({interval})"

    def says(self, claim: str, gate: str, holds: str, fails: str, open: str = "", untested: str = "") -> str:
        """Show the phrase that a gate's verdict chooses: ``holds``, ``fails`` or, where it is undecided, ``open``.

        Where the scale cannot test the gate, or has no such gate, it says ``untested``, without that the same as where
        it is undecided, and without either that it is not told.
        Raises SandglassError for an unknown claim.
        """
        told, untested = self._told(claim, gate), untested or open or NOT_TOLD
        return untested if told is None else told.says(holds, fails, open or UNDECIDED_HERE, untested)

    def stands(self, claim: str, holds: str, fails: str, open: str) -> str:
        """Show the phrase that a whole claim's verdict chooses: ``fails`` also where a part of it is contradicted.

        Raises SandglassError for an unknown claim.
        """
        if self._lacks_claims():
            return NOT_TOLD
        _known("claim", claim, self.study.lines)
        return {HOLDS: holds, CONTRADICTED: fails, IN_PART: fails}.get(self.study.lines[claim].verdict, open)

    def _told(self, claim: str, gate: str) -> Told | None:
        """Return what is told of a gate, None where this scale has none of that name, or where claims are not here."""
        row = None if self._lacks_claims() else self.study.gates(claim).get(gate)
        return None if row is None else Told.of(row)

    def _drawn(self, claim: str, gate: str) -> str:
        """Return a small picture of a share with its interval, away from the study's page; else nothing."""
        told = self._told(claim, gate) if self.is_brief else None
        drawn = None if told is None else spark.draw(told)
        if drawn is None:
            return ""
        return self._inline(f"drawn({claim!r}, {gate!r})", Markup(self.blocks.spark(drawn)))

    def _said(self, name: str, claim: str, gate: str) -> str:
        call = f"{name}({claim!r}, {gate!r})"
        if self._lacks_claims():
            return self._inline(call, Markup(self.blocks.not_here()))
        return self._traced(call, name, Told.of(self.study.gate(claim, gate)))

    def _traced(self, call: str, name: str, told: Told) -> str:
        """Return what `SAID` says of what is told, with a link to the row that it is from."""
        column, words = SAID[name]
        text = words(told.row) or "not measured"
        return self._inline(call, Markup(self.blocks.traced(self.study.id, told, column, text)))

    def table(
        self, name: str, columns: list[str] | None = None, rows: int = ROWS, where: dict[str, Any] | None = None
    ) -> str:
        """Show the first rows of a result table, of those that have the values ``where``."""
        _known("table", name, self.study.tables)
        artifacts = self.site.tables(self.study.id, name)
        here = [artifact for artifact in artifacts if not self.site.lacks(artifact)]
        if not here:
            return self._absent(f'table("{name}")', f"Table {name}", artifacts)
        frame = self._rows(here)
        for column in [*(columns or []), *(where or {})]:
            _known("column", column, frame.columns)
        frame = frame.filter(**where) if where else frame
        shown = frame.select(columns) if columns else frame
        # Several excerpts of one table are told apart by the rows that they show.
        kept = (f"{column} {value}" if value is not True else column for column, value in (where or {}).items())
        called = ", ".join([name, *kept])
        drawn = Markup(self.blocks.table(called, artifacts, shown.head(rows), frame.height))
        return self._block(f'table("{name}")', lambda _: drawn)

    def theory(self, check: str) -> str:
        """Show the rows of a theory entry."""
        _known("theory entry", check, self.study.theory)
        artifact = self.site.theory(check)
        first = self._first("theory", check)
        if self.site.lacks(artifact):
            anchor = f"theory-{check}" if first else ""
            return self._absent(f'theory("{check}")', f"Theory check {check}", [artifact], anchor)
        drawn = Markup(self.blocks.theory(artifact, self.study.theory[check], first, fold=True))
        return self._block(f'theory("{check}")', lambda _: drawn)

    def param(self, path: str) -> str:
        """Show a value at the scale: of the study's own files, or ``scale`` and ``seed`` of params.yaml.

        A run or dataset is named by its entry or by one of its variants.
        """
        keys = path.split(".")
        file, value = FILE, self.site.params.raw[FILE]
        if keys[0] not in value:
            value = self._sections()
            file = study_file(self.study.id, keys[0]) if keys[0] in value else ""
        for i, key in enumerate(keys):
            if file != FILE and i == 1 and keys[0] in WITH_VARIANTS:
                value = self._with_variants(keys[0])
            value = resolve(value, self.site.params.scale)
            if not isinstance(value, dict):
                raise SandglassError(f"{'.'.join(keys[:i])} is a value, {value!r}")
            _known("key", key, value)
            value = value[key]
        resolved = resolve(value, self.site.params.scale)
        place = path.removeprefix(f"{keys[0]}.") if keys[0] in SECTIONS else path
        return self._inline(f'param("{path}")', Markup(self.blocks.param(f"{file}: {place}", _shown(resolved))))

    def _sections(self) -> dict[str, Any]:
        """Return what the files of the study say, by section."""
        raw = self.site.params.raw
        sections = {section: raw[study_file(self.study.id, section)] for section in SECTIONS}
        return sections | raw[study_file(self.study.id, "analysis")]

    def _with_variants(self, section: str) -> dict[str, Any]:
        """Return the entries of a section and all their variants by id, each with what it takes from its entry."""
        entries: dict[str, Any] = {}
        for key, entry in self.site.params.raw[study_file(self.study.id, section)].items():
            base = {name: value for name, value in entry.items() if name != "variants"}
            entries[key] = base
            entries |= {member: base | own for member, own in entry.get("variants", {}).items()}
        return entries

    def artifact(self, path: str, text: str) -> str:
        """Show a link to the page of the file at ``path``."""
        known = {str(file): artifact for file, artifact in self.site.by_path.items()}
        _known("artifact", path, known)
        place = known[path].place(Path(path))
        return self._inline(f'artifact("{path}")', Markup(self.blocks.to(place, text)))

    def embed(self, name: str, *tables: str) -> str:
        """Show ``<name>.html`` of the study's folder, which reads the rows of ``tables`` (if it has any) in the script
        ``<name>-data``: of the first all, of others those that fit it."""
        path = self.path.parent / f"{name}.html"
        if not path.is_file():
            raise SandglassError(f"there is no {path}")
        for table in tables:
            _known("table", table, self.study.tables)
        if not tables:
            picture = Markup(path.read_text(encoding="utf-8"))
            return self._block(f'embed("{name}")', lambda _: picture)
        made = {table: self.site.tables(self.study.id, table) for table in tables}
        needed = [artifact for artifacts in made.values() for artifact in artifacts]
        if any(self.site.lacks(artifact) for artifact in needed):
            return self._absent(f'embed("{name}")', f"The {name}", needed)
        frames = {
            table: self._rows(artifacts).drop("scale", "params_hash", strict=False) for table, artifacts in made.items()
        }
        first = frames[tables[0]]
        data = {}
        for table, frame in frames.items():
            shared = [column for column in frame.columns if column in first.columns]
            data[table] = _short(frame.join(first.select(shared).unique(), on=shared, how="semi").to_dicts())
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        drawn = Markup(
            f'<script type="application/json" id="{name}-data">{text}</script>\n{path.read_text(encoding="utf-8")}'
        )
        return self._block(f'embed("{name}")', lambda _: drawn)

    def _rows(self, artifacts: list[Artifact]) -> pl.DataFrame:
        """Return the rows of a result table that several experiments make."""
        return pl.concat([self.site.table(artifact)[0] for artifact in artifacts])

    def _first(self, kind: str, name: str) -> bool:
        """Return whether ``name`` of ``kind`` is shown for the first time, so that an id stands once in a page."""
        first = (kind, name) not in self.shown
        self.shown.add((kind, name))
        return first


def _shown(value: Any) -> str:
    """Return the text of a parameter as a sentence has it: of a list its values, without brackets."""
    if isinstance(value, list) and value and not any(isinstance(each, (list, dict)) for each in value):
        return ", ".join(map(_shown, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _short(value: Any) -> Any:
    """Return ``value`` with five digits of each number in it, which is what a page needs of weights."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    return [_short(item) for item in value] if isinstance(value, list) else value


FUNCTIONS = (
    "figure",
    "claims",
    "judged",
    "verdict",
    "value",
    "percent",
    "models",
    "published",
    "interval",
    "number",
    "at",
    "says",
    "stands",
    "table",
    "theory",
    "param",
    "artifact",
    "embed",
)


def _known(kind: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        close = difflib.get_close_matches(str(name), names, n=1) if len(names) > 30 else names
        hint = f"did you mean {close[0]}?" if len(names) > 30 and close else f"known: {', '.join(names[:30])}"
        raise SandglassError(f"no {kind} {name!r}; {hint}")
