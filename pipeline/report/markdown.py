"""Markdown in which marks stand for what is put there after it has been rendered.

So no value can become markup, of Markdown or of HTML: the parser never sees one.

Formulas stand between dollars (`pipeline.report.formula`). Each section of `EVIDENCE` is folded away, and so is every
table of more than `ROWS` rows. A word that a list explains (`GLOSSARY`) leads to its explanation where a section first
has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from pipeline.errors import SandglassError
from pipeline.report.formula import mathml
from pipeline.report.wording import slug

EVIDENCE = "Evidence"  # the section whose own sections are folded
ROWS = 7  # of a table that stands open

_OPEN, _CLOSE = "\ue000", "\ue001"  # of Unicode's private use: in no text
_MARK = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")
_FORMULA = re.compile(r"\$([^$\n]+)\$")
_TERM = '<a class="term" href="#{0}" aria-describedby="{0}">{1}</a>'
_GLOSSARY = re.compile(r"^- \*\*([^*\n]+)\*\*: ", re.MULTILINE)  # an item of a list that explains a word


@dataclass(frozen=True)
class Mark:
    """What a mark stands for. ``draw`` is given the claims that its section speaks of.

    ``call`` names it in errors; a ``block`` needs a paragraph of its own.
    """

    call: str
    block: bool
    draw: Callable[[list[str]], Markup]
    claims: tuple[str, ...] = ()


@dataclass
class Text:
    """A text under way: functions of its template put marks into it, ``html`` replaces them."""

    where: str  # for errors
    marks: list[Mark] = field(default_factory=list)
    _terms: dict[str, str] = field(default_factory=dict)  # what is explained, in small letters, and its id
    _term: re.Pattern[str] | None = None
    _said: set[str] = field(default_factory=set)  # ids of what this section has led to

    def mark(self, mark: Mark) -> str:
        """Return the text that stands for ``mark``."""
        self.marks.append(mark)
        return f"{_OPEN}{len(self.marks) - 1}{_CLOSE}"

    def html(self, text: str, taken: Iterable[str] = ()) -> Markup:
        """Return the rendered text; its headings have ids that avoid ``taken``.

        Raises SandglassError where a mark stands that can take none: a block within a sentence, or an address.
        """
        text = _FORMULA.sub(self._formula, text)
        self._terms = {word.lower(): f"word-{slug(word)}" for word in _GLOSSARY.findall(text)}
        longest = sorted(map(re.escape, self._terms), key=len, reverse=True)
        self._term = (
            re.compile(rf"(?<![\w*-])({'|'.join(longest)})(e?s)?(?![\w*-])", re.IGNORECASE) if longest else None
        )
        parser = _parser()
        rules: dict[str, Any] = parser.renderer.rules  # type: ignore[attr-defined]
        rules["text"] = self._inline
        rules["heading_open"] = lambda *given: self._begin(parser, *given)
        rules["table_open"], rules["table_close"] = _table_open, lambda *_: "</table></div>\n"
        rules["code_inline"] = lambda *given: f"<code>{self._inline(*given)}</code>"
        tokens = parser.parse(text)
        _demote(tokens)
        _quiet(tokens)
        claims = self._claims_by_section(tokens)
        tokens = self._blocks(tokens, claims)
        _name_headings(tokens, set(taken) | {*self._terms.values()})
        self._name_words(tokens)
        tokens = _fold_tables(_fold_evidence(tokens))
        rendered = parser.renderer.render(tokens, parser.options, {})
        if any(sign in rendered for sign in (_OPEN, quote(_OPEN))):
            raise SandglassError(f"{self.where}: a function's result cannot stand in an address or a code block")
        return Markup(rendered)

    def _formula(self, found: re.Match[str]) -> str:
        content = mathml(found[1])
        return self.mark(Mark(found[0], False, lambda _: content))

    def _name_words(self, tokens: list[Token]) -> None:
        """Give each item of a list that explains a word the id that others lead to."""
        items: list[Token] = []
        for token in tokens:
            if token.type == "list_item_open":
                items.append(token)
            elif token.type == "list_item_close":
                items.pop()
            elif token.type == "inline" and items:
                parts = [child for child in token.children or [] if child.type != "text" or child.content]
                word = parts[1].content.lower() if len(parts) > 2 and parts[0].type == "strong_open" else ""
                if word in self._terms:
                    items[-1].attrSet("id", self._terms[word])
                    items[-1].attrSet("class", "word")
                    for child in parts:
                        child.meta["own"] = self._terms[word]

    def _begin(self, parser: MarkdownIt, tokens: list[Token], index: int, options: Any, env: Any) -> str:
        """Return the start of a heading, below which words are led to anew."""
        self._said = set()
        opening: str = parser.renderer.renderToken(tokens, index, options, env)  # type: ignore[attr-defined]
        return opening

    def _linked(self, text: str, own: str) -> str:
        """Return a text with its first mention of each explained word in a section as a link to the explanation, which
        for ``own`` is the text itself."""
        if self._term is None:
            return str(escape(text))
        parts, at = [], 0
        for found in self._term.finditer(text):
            anchor = self._terms[found[1].lower()]
            if anchor in self._said or anchor == own:
                continue
            self._said.add(anchor)
            parts += [escape(text[at : found.start()]), _TERM.format(anchor, escape(found[0]))]
            at = found.end()
        return "".join([*parts, escape(text[at:])])

    def _inline(self, tokens: list[Token], index: int, *_: Any) -> str:
        parts = _MARK.split(tokens[index].content)
        meta = tokens[index].meta
        for i, part in enumerate(parts):
            if i % 2:
                mark = self.marks[int(part)]
                if mark.block:
                    raise SandglassError(f"{self.where}: {mark.call} must stand in a paragraph of its own")
                parts[i] = mark.draw([])
            else:
                parts[i] = escape(part) if "quiet" in meta else self._linked(part, meta.get("own", ""))
        return "".join(parts)

    def _blocks(self, tokens: list[Token], claims: list[list[str]]) -> list[Token]:
        """Return ``tokens`` with what each block stands for in place of the paragraph that holds it."""
        done: list[Token] = []
        section = 0
        for token in tokens:
            section += token.type == "heading_open"
            alone = _MARK.fullmatch(token.content.strip()) if token.type == "inline" else None
            mark = self.marks[int(alone[1])] if alone else None
            if mark and mark.block and done[-1].type == "paragraph_open":
                done[-1] = Token("html_block", "", 0, content=str(mark.draw(claims[section])) + "\n")
            elif token.type == "paragraph_close" and done[-1].type == "html_block":
                continue
            else:
                done.append(token)
        return done

    def _claims_by_section(self, tokens: list[Token]) -> list[list[str]]:
        """Return, for the text before the first heading and after each, the claims it speaks of."""
        sections: list[dict[str, None]] = [{}]
        for token in tokens:
            if token.type == "heading_open":
                sections.append({})
            for number in _MARK.findall(token.content) if token.type == "inline" else ():
                sections[-1] |= dict.fromkeys(self.marks[int(number)].claims)
        return [list(each) for each in sections]


def _quiet(tokens: list[Token]) -> None:
    """Mark the words that lead nowhere: of headings, links and code, and a word where it is explained."""
    for before, token in pairwise(tokens):
        inside = 0
        for child in token.children or []:
            inside += (child.type in ("link_open", "strong_open")) - (child.type in ("link_close", "strong_close"))
            if inside or before.type == "heading_open" or child.type == "code_inline":
                child.meta["quiet"] = True


def _fold_evidence(tokens: list[Token]) -> list[Token]:
    """Return ``tokens`` with each section below the heading `EVIDENCE` in a box that opens."""
    done: list[Token] = []
    inside, is_open = False, False
    for i, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag in ("h2", "h3"):
            if is_open:
                done.append(_html("</details>\n"))
                is_open = False
            if token.tag == "h2":
                inside = tokens[i + 1].content == EVIDENCE
            elif inside:
                done.append(_html('<details class="wide section"><summary>'))
                is_open = True
        done.append(token)
        if token.type == "heading_close" and token.tag == "h3" and is_open:
            done.append(_html("</summary>\n"))
    return [*done, _html("</details>\n")] if is_open else done


def _fold_tables(tokens: list[Token]) -> list[Token]:
    """Return ``tokens`` with every long table in a box that opens."""
    done: list[Token] = []
    start = rows = 0
    for token in tokens:
        done.append(token)
        if token.type == "table_open":
            start, rows = len(done) - 1, -1  # its head is no row
        elif token.type == "tr_open":
            rows += 1
        elif token.type == "table_close" and rows > ROWS:
            under = done[start].meta.get("under", "")
            done.insert(
                start, _html(f'<details class="wide"><summary>{escape(f"All {rows} rows: {under}")}</summary>\n')
            )
            done.append(_html("</details>\n"))
    return done


def _html(content: str) -> Token:
    return Token("html_block", "", 0, content=content)


def _name_headings(tokens: list[Token], taken: set[str]) -> None:
    """Give every heading an id; a table is called by the heading that it stands under."""
    under = ""
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            parts = (child.content for child in inline.children or [])
            under = " ".join(_MARK.sub("", "".join(parts)).split()).rstrip(":— ")
            base = anchor = slug(under)
            count = 1
            while anchor in taken:
                count += 1
                anchor = f"{base}-{count}"
            taken.add(anchor)
            opening.attrSet("id", anchor)
        elif opening.type == "table_open" and under:
            opening.meta["under"] = under


def _table_open(tokens: list[Token], index: int, *_: Any) -> str:
    """Return the start of a table in a box of its own, which scrolls, by keyboard too."""
    label = f"Table: {tokens[index].meta.get('under', 'introduction')}"
    return f'<div class="scroll wide prose" tabindex="0" role="region" aria-label="{escape(label)}"><table>\n'


def _parser() -> MarkdownIt:
    # Images would need files beside the page, and figures have a function.
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def _demote(tokens: list[Token]) -> None:
    """Let headings start at the second level: the first is the title of the page."""
    levels = [int(token.tag[1]) for token in tokens if token.type == "heading_open"]
    if 1 in levels:
        for token in tokens:
            if token.type in ("heading_open", "heading_close"):
                token.tag = f"h{min(int(token.tag[1]) + 1, 6)}"
