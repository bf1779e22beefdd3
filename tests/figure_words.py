"""What figures draw and do not say: bands, bars and dashes without a word, intervals without the number behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_N = re.compile(
    r"\b(\d[\d,]*|one|two|three|four|five|six|seven|eight|nine|ten|each|every|all)( to \d+)?( [\w’'(),%-]+){0,4}? "
    r"(models?|teachers?|students?|replicas?|seeds?|trainings?|pairs|tokens|reads|strings|sentences|sequences|networks?"
    r"|samples|draws|runs|trajectories)\b",
    re.IGNORECASE,
)


def unsaid(spec: Mapping[str, Any], caption: str) -> list[str]:
    """Return what a figure draws and does not say, in its title, in words inside it or in its caption.

    Bands, bars of intervals and dashes without a word for them; intervals without the number of models behind them.
    """
    marks, words = _walked(spec)
    text = " ".join([*words, caption])
    found = []
    interval = False
    for mark, encoding in marks:
        kind = mark["type"]
        if kind == "area" and "y2" in encoding:
            interval = True
            if not re.search(r"\bband", text, re.IGNORECASE):
                found.append("a band has no word")
        if kind == "rule" and ("y2" in encoding) != ("x2" in encoding):
            interval = True
            if not re.search(r"\b(bar|interval|whisker|rule|line)s?\b", text, re.IGNORECASE):
                found.append("bars have no word")
        named = kind == "rule" and (_names_a_rule(marks, encoding) or _has_a_legend(encoding))
        if _is_dashed(mark) and not named and not re.search(r"\b(dash|dott)", text, re.IGNORECASE):
            found.append("dashes have no word")
        if "=== false" in str(encoding.get("fill", "")) and not re.search(r"\bhollow", text, re.IGNORECASE):
            found.append("hollow points have no word")
    if interval and not _N.search(text):
        found.append("intervals do not say of how many")
    return list(dict.fromkeys(found))


def _is_dashed(mark: Mapping[str, Any]) -> bool:
    dash = mark.get("strokeDash") or [1, 0]
    return bool(dash[1] > 0)


def _has_a_legend(encoding: Mapping[str, Any]) -> bool:
    colour = encoding.get("color") or {}
    return "field" in colour and colour.get("legend", {}) is not None


def _names_a_rule(marks: list[tuple[dict[str, Any], dict[str, Any]]], encoding: Mapping[str, Any]) -> bool:
    """Return whether words inside the panel stand at a rule's place."""
    places = [(encoding.get(name) or {}).get("field") for name in ("x", "y")]
    return any(
        mark["type"] == "text" and [(other.get(name) or {}).get("field") for name in ("x", "y")] == places
        for mark, other in marks
    )


def _walked(spec: Any) -> tuple[list[tuple[dict[str, Any], dict[str, Any]]], list[str]]:
    """Return all marks with their encodings, and all words of titles."""
    marks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    words: list[str] = []

    def walk(node: Any, above: dict[str, Any]) -> None:
        if not isinstance(node, Mapping):
            return
        encoding = above | dict(node.get("encoding", {}))
        if "mark" in node:
            mark = node["mark"]
            marks.append(({"type": mark} if isinstance(mark, str) else dict(mark), encoding))
        if "title" in node:
            words.extend(_said(node["title"]))
        for key in ("layer", "hconcat", "vconcat", "concat"):
            for part in node.get(key, []):
                walk(part, encoding)
        walk(node.get("spec"), encoding)

    walk(spec, {})
    return marks, words


def _said(title: Any) -> list[str]:
    if isinstance(title, Mapping):
        return [*_said(title.get("text")), *_said(title.get("subtitle"))]
    if title is None:
        return []
    return [title] if isinstance(title, str) else [str(part) for part in title]
