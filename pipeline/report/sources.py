"""Functions, docstrings and lines of the code, read without running it: a study's modules import torch."""

from __future__ import annotations

import ast
from dataclasses import dataclass
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
    """The docstring of the module at ``path``; empty if it has none."""
    return ast.get_docstring(_parse(path)) or ""


def defined(path: Path, name: str) -> Source | None:
    """The function or class ``name`` at the top level of the module at ``path``."""
    text = path.read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, Definition) and node.name == name:
            lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
            return Source(path, name, node.lineno, ast.get_docstring(node) or "", "\n".join(lines))
    return None


def entry_of(path: Path, table: str, key: str) -> Source | None:
    """The function to which the dictionary ``table``, written out in the module at ``path``, maps ``key``; it may
    stand in a module that this one imports it from."""
    homes: dict[str, Path] = {}
    for node in _parse(path).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            homes |= {alias.asname or alias.name: Path(*node.module.split(".")) for alias in node.names}
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        if any(isinstance(each, ast.Name) and each.id == table for each in targets):
            value = getattr(node, "value", None)
            if isinstance(value, ast.Dict):
                for name, what in zip(value.keys, value.values, strict=True):
                    if isinstance(name, ast.Constant) and name.value == key and isinstance(what, ast.Name):
                        home = homes.get(what.id)
                        return defined(home.with_suffix(".py") if home else path, what.id)
    return None


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
