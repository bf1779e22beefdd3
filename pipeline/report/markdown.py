"""Markdown in which marks stand for what is put there after it has been rendered.

So no value can become markup, of Markdown or of HTML: the parser never sees one.
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
from pipeline.report.wording import slug

_OPEN, _CLOSE = "\ue000", "\ue001"  # of Unicode's private use: in no text
_MARK = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")


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

    def mark(self, mark: Mark) -> str:
        """Return the text that stands for ``mark``."""
        self.marks.append(mark)
        return f"{_OPEN}{len(self.marks) - 1}{_CLOSE}"

    def html(self, text: str, taken: Iterable[str] = ()) -> Markup:
        """Return the rendered text; its headings have ids that avoid ``taken``.

        Raises SandglassError where a mark stands that can take none: a block within a sentence, or an address.
        """
        parser = _parser()
        rules: dict[str, Any] = parser.renderer.rules  # type: ignore[attr-defined]
        rules["text"] = self._inline
        rules["table_open"], rules["table_close"] = _table_open, lambda *_: "</table></div>\n"
        rules["code_inline"] = lambda *given: f"<code>{self._inline(*given)}</code>"
        tokens = parser.parse(text)
        _demote(tokens)
        claims = self._claims_by_section(tokens)
        tokens = self._blocks(tokens, claims)
        _name_headings(tokens, set(taken))
        rendered = parser.renderer.render(tokens, parser.options, {})
        if any(sign in rendered for sign in (_OPEN, quote(_OPEN))):
            raise SandglassError(f"{self.where}: a function's result cannot stand in an address or a code block")
        return Markup(rendered)

    def _inline(self, tokens: list[Token], index: int, *_: Any) -> str:
        parts = _MARK.split(tokens[index].content)
        for i, part in enumerate(parts):
            if i % 2:
                mark = self.marks[int(part)]
                if mark.block:
                    raise SandglassError(f"{self.where}: {mark.call} must stand in a paragraph of its own")
                parts[i] = mark.draw([])
            else:
                parts[i] = escape(part)
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
