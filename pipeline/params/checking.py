"""How parameter files are refused: one line with the file, the path of the value, and the nearest valid name."""

from __future__ import annotations

import difflib
import functools
import types
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

from pipeline.errors import SandglassError
from pipeline.params.reading import read, shown
from pipeline.params.scales import LIKE_ANOTHER, SCALES, is_complete, is_per_scale, resolve

_adapter = functools.cache(TypeAdapter)  # to build one takes longer than to use it


class File:
    """One parameter file, named from the root of the repository as in ``params/dyck/study.yaml``."""

    def __init__(self, name: str) -> None:
        """Take the file's name; ``values`` is what the file says, once it was read."""
        self.name = name
        self.values: dict[str, Any] = {}

    def read(self, root: Path) -> dict[str, Any]:
        """Return what the file below ``root`` says, as plain values. Raises SandglassError if it is no such file."""
        self.values = read(root, self.name)
        return self.values

    def refuse(self, path: str, text: str) -> NoReturn:
        """Raise SandglassError that says what is wrong with the value at ``path``; without one, with the file."""
        raise SandglassError(f"{self.name}: {path}: {text}" if path else f"{self.name}: {text}") from None

    def known_keys(self, valid: Sequence[str], optional: Sequence[str] = ()) -> None:
        """Raise SandglassError unless the top of the file has the keys ``valid`` and at most the ``optional`` ones."""
        known = [*valid, *optional]
        for key in self.values:
            if key not in known:
                self.refuse(key, f"unknown key{nearest(str(key), known)}; valid: {', '.join(known)}")
        for key in valid:
            if key not in self.values:
                self.refuse(key, "missing")

    def resolve(self, entry: Any, path: str, scale: str, names: Iterable[str] = ()) -> Any:
        """Return ``entry`` at ``scale``; the fields ``names`` must be the same at every scale."""
        fields = [(f"{path}.{name}", entry.get(name)) for name in names] if isinstance(entry, dict) else []
        for where, value in ((path, entry), *fields):
            if is_per_scale(value):
                self.refuse(where, f"must be the same at every scale, got {shown(value)}")
        try:
            return resolve(entry, scale)
        except KeyError as error:
            where, value = next(_per_scale(entry, path))
            near = nearest(str(error.args[0]), SCALES)
            asked = ", ".join(scale for scale in SCALES if scale not in LIKE_ANOTHER)
            spare = ", ".join(f"{scale} (without it, that of {other})" for scale, other in LIKE_ANOTHER.items())
            got = ", ".join(map(str, value))
            self.refuse(where, f"expected exactly the keys {asked} and, where it differs, {spare}, got {got}{near}")

    def validate(self, kind: Any, value: Any, path: str) -> Any:
        """Return ``value`` as ``kind``, or raise SandglassError with what is wrong first."""
        try:
            return _adapter(kind).validate_python(value)
        except ValidationError as error:
            first, *others = error.errors(include_url=False)
            if first["type"] == "missing":  # misspelt, where an unknown key stands beside it
                unknown = [other for other in others if other["type"] == "extra_forbidden"]
                first = next((each for each in unknown if each["loc"][:-1] == first["loc"][:-1]), first)
            loc, valid = _locate(kind, value, first["loc"])
            full = ".".join(str(part) for part in ([path] if path else []) + loc)
            if first["type"] == "extra_forbidden":
                text = f"unknown key{nearest(str(loc[-1]), valid)}; valid: {', '.join(valid)}"
            elif first["type"] == "missing":
                text = "missing"
            elif first["type"] == "union_tag_invalid":  # pydantic's message holds all of the tag, however long
                tag = first["ctx"]["discriminator"].strip("'")
                full, text = f"{full}.{tag}", f"expected one of {first['ctx']['expected_tags']}"
                text += f", got {shown(first['input'][tag])}"
            else:
                reason = first["msg"].removeprefix("Value error, ")
                got = "" if isinstance(first["input"], dict) else f", got {shown(first['input'])}"
                text = f"{reason[0].lower()}{reason[1:]}{got}"
            self.refuse(full, text)


def _per_scale(value: Any, path: str) -> Iterator[tuple[str, dict[Any, Any]]]:
    """Yield paths of the per-scale mappings below ``value`` that miss a scale or have another key."""
    if is_per_scale(value) and not is_complete(value):
        yield path, value
    children: Iterable[tuple[Any, Any]] = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from _per_scale(child, f"{path}.{key}")


def _locate(kind: Any, value: Any, loc: tuple[int | str, ...]) -> tuple[list[int | str], list[str]]:
    """Return the path of an error without pydantic's tags for unions, and the keys valid at its parent."""
    path: list[int | str] = []
    fields: list[str] = []
    for i, part in enumerate(loc):
        tagged, kind = kind, _unwrap(kind, value)
        last = i == len(loc) - 1
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            fields = list(kind.model_fields)
        if kind is not tagged and isinstance(value, dict) and part in value.values():
            continue  # the tag by which pydantic found the member of a union
        path.append(part)
        if isinstance(kind, type) and issubclass(kind, BaseModel) and part in kind.model_fields:
            kind = kind.model_fields[str(part)].annotation
        elif get_origin(kind) is list:
            (kind,) = get_args(kind)
        if isinstance(value, (dict, list)) and not last:
            value = value[part]  # type: ignore[index]
    return path, fields


def _unwrap(kind: Any, value: Any) -> Any:
    """Return the member of an annotated (discriminated) union that fits ``value``, else ``kind`` itself."""
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, types.UnionType) and isinstance(value, dict):
        for member in get_args(kind):
            for name, field in getattr(member, "model_fields", {}).items():
                if get_origin(field.annotation) is Literal and value.get(name) in get_args(field.annotation):
                    return member
    return kind


def nearest(word: str, valid: Iterable[str]) -> str:
    """Return the valid name that ``word`` is most like, for the end of a message; or nothing."""
    close = difflib.get_close_matches(word, list(valid), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""
