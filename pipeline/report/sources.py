"""Functions, docstrings and lines of the code, read without running it: a study's modules import torch."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Definition = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Source:
    """A function or class as it stands in its file."""

    path: Path
    name: str
    line: int
    doc: str
    text: str


def module_doc(path: Path) -> str:
    """Return the docstring of the module at ``path``; empty if it has none."""
    return ast.get_docstring(_parse(path.read_text(encoding="utf-8"))) or ""


def defined(path: Path, name: str) -> Source | None:
    """Return the function or class ``name`` at the top level of the module at ``path``, or None."""
    text = path.read_text(encoding="utf-8")
    for node in _parse(text).body:
        if isinstance(node, Definition) and node.name == name:
            lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
            return Source(path, name, node.lineno, ast.get_docstring(node) or "", "\n".join(lines))
    return None


@cache  # by their text: many pages ask for functions of one module
def _parse(text: str) -> ast.Module:
    return ast.parse(text)
