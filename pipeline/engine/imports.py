"""What a module imports, found by reading its source: the code that decides the result of a step.

An edit of a module makes stale what imports it, directly or through others, and nothing else. Nothing is run for the
answer, so that both engines can ask at every start; a test holds it against what the steps really import.

Some modules are imported by a name that the parameters say: ``import_module(f"pipeline.languages.{entry.language}")``.
Of these a file holds a pattern, ``pipeline.languages.{}``, and whoever asks says which modules it stands for.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

from pipeline.errors import SandglassError

PACKAGES = ("pipeline", "schemas")
BLANK = "{}"  # in a pattern, a part that the parameters say
# What no result depends on: how errors are told, how parameters are read and checked, how steps are started. What of
# the parameters decides values (their scales, what entries share) is an input of every job (`pipeline.engine.graph`).
WITHOUT_EFFECT = ("pipeline/__init__.py", "pipeline/errors.py", "pipeline/params/", "pipeline/engine/")
CACHE = Path(".sandglass") / "imports.json"


@dataclass(frozen=True)
class Imports:
    """What one file imports, as it is written: modules or names in them (``a.b.c``), and patterns of modules."""

    names: tuple[str, ...]
    patterns: tuple[str, ...]
    has_code: bool  # there is more in it than a docstring
    unclear: int = 0  # the line of an import of which the source does not say what is imported


class Sources:
    """The modules below ``root``; each is read when it is first asked for, and not again until it is edited."""

    def __init__(self, root: Path = Path()) -> None:
        self._root = root
        self._times = dict(_modules(root))
        self._cached: dict[str, list[object]] = {}
        with contextlib.suppress(OSError, ValueError):
            self._cached = json.loads((root / CACHE).read_text(encoding="utf-8"))
        self._read: dict[str, Imports] = {}
        self._below: dict[str, tuple[str, ...]] = {}
        self._is_new = False

    def closure(self, starts: Iterable[str], stands_for: Callable[[str], Iterable[str]]) -> list[str]:
        """Return the files ``starts`` and all that they import, directly or through others, sorted.

        ``stands_for`` returns the modules of a pattern. Raises SandglassError if one of ``starts`` is missing, or a
        file has an import that cannot be followed.
        """
        found: set[str] = set()
        ahead = list(starts)
        while ahead:
            file = ahead.pop()
            if file in found:
                continue
            found.add(file)
            ahead += self.direct(file)
            if line := self.imports(file).unclear:
                raise SandglassError(
                    f"{file}, line {line}: what import_module imports is not written there, so that nobody could say "
                    "which code a result depends on"
                )
            for pattern in self.imports(file).patterns:
                ahead += [each for name in stands_for(pattern) for each in self._files(name)]
        return sorted(found)

    def modules(self) -> list[str]:
        """Return all files, sorted."""
        return sorted(self._times)

    def direct(self, file: str) -> tuple[str, ...]:
        """Return the files that ``file`` itself imports, without those that parameters name."""
        if file not in self._below:
            found = (each for name in self.imports(file).names for each in self._files(name))
            self._below[file] = tuple(dict.fromkeys(found))
        return self._below[file]

    def imports(self, file: str) -> Imports:
        """Return what ``file`` itself imports, as it is written."""
        if file not in self._read:
            time = self._times.get(file)
            if time is None:
                raise SandglassError(f"{file} is missing: what a step depends on is found in it")
            known = self._cached.get(file)
            if known is None or known[0] != time or len(known) != 5:
                written = _imported((self._root / file).read_bytes(), file)
                self._cached[file] = [time, *astuple(written)]
                self._is_new = True
                self._read[file] = written
            else:
                self._read[file] = Imports(*known[1:])  # type: ignore[arg-type]
        return self._read[file]

    def keep(self) -> None:
        """Write down what was read, for the next process; a folder that cannot be written is no error."""
        if not self._is_new:
            return
        file = self._root / CACHE
        temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
        known = {name: each for name, each in self._cached.items() if name in self._times}
        with contextlib.suppress(OSError):
            file.parent.mkdir(exist_ok=True)
            temporary.write_text(json.dumps(known), encoding="utf-8")
            temporary.replace(file)
        self._is_new = False

    def _files(self, name: str) -> Iterator[str]:
        """Yield the file of a module ``a.b``, or of the module that holds a name, and packages that hold code."""
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            path = "/".join(parts[:end])
            for file in (f"{path}.py", f"{path}/__init__.py"):
                is_own = file in self._times and not file.startswith(WITHOUT_EFFECT)
                if is_own and self.imports(file).has_code:
                    yield file


def _modules(root: Path) -> Iterator[tuple[str, list[int]]]:
    """Yield each module below ``root`` with its time and size."""
    ahead = [package for package in PACKAGES if (root / package).is_dir()]
    while ahead:
        folder = ahead.pop()
        for entry in os.scandir(root / folder):
            if entry.is_dir():
                ahead.append(f"{folder}/{entry.name}")
            elif entry.name.endswith(".py"):
                state = entry.stat()
                yield f"{folder}/{entry.name}", [state.st_mtime_ns, state.st_size]


def _imported(source: bytes, file: str) -> Imports:
    """Return what a source imports. Raises SandglassError if it is not Python."""
    names: list[str] = []
    patterns: list[str] = []
    unclear = 0
    try:
        tree = ast.parse(source, file)
    except SyntaxError as error:
        raise SandglassError(f"{file}, line {error.lineno}: {error.msg}") from None
    ahead: list[ast.AST] = [tree]
    while ahead:
        node = ahead.pop()
        if isinstance(node, ast.If) and is_for_types(node.test):
            ahead += node.orelse
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = _module_of(node, file)
            names += [f"{module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and _name_of(node.func) == "import_module":
            name = _pattern(node.args[0])
            if name is None:
                unclear = node.lineno
            else:
                (patterns if BLANK in name else names).append(name)
        ahead += ast.iter_child_nodes(node)
    own = [name for name in names if name.split(".")[0] in PACKAGES]
    has_code = any(not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)) for each in tree.body)
    return Imports(tuple(dict.fromkeys(own)), tuple(dict.fromkeys(patterns)), has_code, unclear)


def is_for_types(test: ast.expr) -> bool:
    """Return whether a condition is met for type checkers alone."""
    return _name_of(test) == "TYPE_CHECKING"


def _name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _module_of(node: ast.ImportFrom, file: str) -> str:
    """Return the module of ``from module import ...``, also where it is relative."""
    if not node.level:
        return node.module or ""
    return ".".join([*file.split("/")[: -node.level], *filter(None, [node.module])])


def _pattern(argument: ast.expr) -> str | None:
    """Return a name as it is written, with `BLANK` where something is put in; None where it begins with that."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return argument.value
    if isinstance(argument, ast.JoinedStr) and isinstance(argument.values[0], ast.Constant):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else BLANK for part in argument.values)
    if isinstance(argument, ast.BinOp):
        beginning = _pattern(argument.left)
        return None if beginning is None else beginning + BLANK
    return None
