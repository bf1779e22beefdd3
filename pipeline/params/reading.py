"""A parameter file as a tree of plain values, or one line that says what is wrong with it.

What passes here can be tracked, hashed and handed to DVC and JSON without a surprise: mappings with
keys of text, lists, text, booleans, numbers of 64 bits, null.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

from pipeline.errors import SandglassError

FILE = "params.yaml"
MAX_DEPTH = 20  # the C parser ends the process where it would nest tens of thousands deep
MAX_VALUES = 100_000  # what is like others that are like others multiplies: nine lines can ask for a billion values
SHOWN = 80
# What each file said when it was last read, beside the locks of the work tree: to parse YAML takes most of a start,
# and every job starts.
PARSED = Path(".sandglass/parsed")


def read(root: Path, name: str) -> dict[str, Any]:
    """Return the mapping in the YAML file ``name`` below ``root``.

    Raises SandglassError naming the line (of what is not YAML) or the path (of what is no plain value).
    """
    try:
        text = (root / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        hint = "; change to the folder of a clone of Sandglass, and try again" if name == FILE else ""
        raise SandglassError(f"{name}: there is no such file in {root.resolve()}{hint}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SandglassError(f"{name}: cannot be read: {error}") from None
    digest = hashlib.sha256(_own_code() + text.encode()).hexdigest()
    if (known := _parsed(root, name, digest)) is not None:
        return known
    try:
        _refuse_events(text, name)
        raw = YAML(typ="safe").load(text)
    except SandglassError:
        raise
    except Exception as error:  # values with explicit tags make the constructors raise anything
        raise SandglassError(
            f"{name}:{_where(error)} not valid YAML: {_problem(error)}; "
            f"`git checkout {name}` brings the committed file back"
        ) from None
    if not isinstance(raw, dict):
        raise SandglassError(f"{name}: expected a mapping at the top, got {type(raw).__name__}")
    _Walk(name).check(raw, [])
    _keep(root, name, digest, raw)
    return raw


@functools.cache
def _own_code() -> bytes:
    """Return the rules by which files are read: other rules may refuse what was read before."""
    return Path(__file__).read_bytes()


def _parsed(root: Path, name: str, digest: str) -> dict[str, Any] | None:
    """Return what the text with this digest says, if it was read before; None if not, or if the note is damaged."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        kept: dict[str, Any] = json.loads((root / PARSED / f"{name}.json").read_text(encoding="utf-8"))
        if kept["digest"] == digest:
            values: dict[str, Any] = kept["values"]
            return values
    return None


def _keep(root: Path, name: str, digest: str, values: dict[str, Any]) -> None:
    """Note what a file says, in a work tree that engines have used: reading alone leaves nothing in a folder."""
    path = root / PARSED / f"{name}.json"
    with contextlib.suppress(OSError):
        if not (root / PARSED.parent).is_dir():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        temporary.write_text(json.dumps({"digest": digest, "values": values}), encoding="utf-8")
        temporary.replace(path)


def shown(value: Any) -> str:
    """Return ``value`` for a message: on one line, cut off where it would be too long."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _refuse_events(text: str, name: str) -> None:
    """Refuse what is nested too deep, and YAML's aliases: of two places that are one value no program can set one."""
    depth = 0
    for event in YAML(typ="safe").parse(text):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        line = event.start_mark.line + 1
        if depth > MAX_DEPTH:
            raise SandglassError(f"{name}: line {line}: nested deeper than {MAX_DEPTH} levels")
        if isinstance(event, AliasEvent):
            raise SandglassError(
                f"{name}: line {line}: *{event.anchor} is an alias: who sets one value of it sets others as well; "
                f"write it out, or move it to `shared` in its file and write `like: {event.anchor}`"
            )


def _where(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f" line {mark.line + 1}:" if mark else ""


def _problem(error: Exception) -> str:
    if isinstance(error, YAMLError):
        text = str(getattr(error, "problem", None) or error)
    else:
        text = f"{type(error).__name__}: {error}"
    return " ".join("".join(char if char.isprintable() else " " for char in text.splitlines()[0]).split())


class _Walk:
    """Visits every value, up to a bound."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0

    def check(self, value: Any, path: list[str]) -> None:
        self._count += 1
        if self._count > MAX_VALUES:
            self._refuse(path[:2], f"more than {MAX_VALUES} values")
        if len(path) > MAX_DEPTH:
            self._refuse(path[:2], f"nested deeper than {MAX_DEPTH} levels, or contains itself")
        if isinstance(value, dict):
            for key, child in value.items():
                if not isinstance(key, str) or not key or not key.isprintable() or len(key) > SHOWN:
                    self._refuse(path, f"expected keys of text on one line, got {shown(key)}")
                self.check(child, [*path, key])
        elif isinstance(value, list):
            for index, child in enumerate(value):
                self.check(child, [*path, str(index)])
        else:
            self._check_scalar(value, path)

    def _check_scalar(self, value: Any, path: list[str]) -> None:
        if isinstance(value, str):
            if any("\ud800" <= char <= "\udfff" for char in value):
                self._refuse(path, f"expected text, got half a character: {shown(value)}")
        elif isinstance(value, float):
            if not math.isfinite(value):
                self._refuse(path, f"expected a finite number, got {value}")
        elif isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                self._refuse(path, "expected an integer of 64 bits, got a larger one")
        elif value is not None:
            self._refuse(path, f"expected text, a number, a list or a mapping, got {type(value).__name__}")

    def _refuse(self, path: list[str], text: str) -> None:
        raise SandglassError(f"{self._name}: {'.'.join(path) or 'the top'}: {text}")
