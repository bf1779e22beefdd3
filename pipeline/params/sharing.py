"""What the entries of a parameter file have in common: section ``shared``, and the key ``like`` that takes from it.

YAML's own anchors and merge keys do not survive a program that sets one value: two entries then are one object, so
that ``dvc exp run -S`` changes both or neither. Here each value stands in one place of the file, and who sets it there
sets it for the entry that it stands in, or for all that are like it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.errors import SandglassError
from pipeline.params.checking import File, nearest
from pipeline.params.reading import MAX_VALUES, shown
from pipeline.params.scales import is_per_scale

SHARED, LIKE = "shared", "like"


def over(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``own`` on top of ``base``; a value that both give by scale keeps the scales that ``own`` does not name.

    >>> over({"lr": 1, "steps": {"smoke": 2, "quick": 30, "paper": 400}}, {"steps": {"quick": 50}})
    {'lr': 1, 'steps': {'smoke': 2, 'quick': 50, 'paper': 400}}
    """
    merged = dict(base)
    for key, value in own.items():
        beneath = merged.get(key)
        both = is_per_scale(value) and is_per_scale(beneath)
        merged[key] = beneath | value if both else value
    return merged


def expand(file: File, sections: tuple[str, ...]) -> dict[str, Any]:
    """Return what ``file`` says with every ``like`` below ``sections`` replaced by what it names, without `SHARED`.

    Raises SandglassError for a name that ``shared`` does not have, one that leads back to itself, a ``like`` elsewhere,
    and for what nothing is like: a change there would change nothing.
    """
    values = file.values
    shared = values.get(SHARED, {})
    if not isinstance(shared, dict) or any(not isinstance(name, str) for name in shared):
        file.refuse(SHARED, f"expected a mapping of names, got {shown(shared)}")
    sharing = _Sharing(file, shared)
    expanded = {}
    for key, value in values.items():
        if key in sections:
            expanded[key] = sharing.expand(value, key, ())
        elif key != SHARED:
            for path, _ in _likes(value, key):
                file.refuse(path, f"only {', '.join(sections)} and {SHARED} may be like something")
            expanded[key] = value
    for name in shared:
        if name not in sharing.used:
            file.refuse(f"{SHARED}.{name}", "nothing is like it: delete it")
    return expanded


def names(value: Any, shared: Mapping[str, Any]) -> list[str]:
    """Return the names of all that ``value`` is like, itself or through another, sorted; of a valid file."""
    found: set[str] = set()
    todo = [value]
    while todo:
        for _, likes in _likes(todo.pop(), ""):
            new = set(_listed(likes)) - found
            found |= new
            todo += [shared[name] for name in new]
    return sorted(found)


def recorded(value: Any, shared: Mapping[str, Any]) -> Any:
    """Return ``value`` as an old record has it with every ``like`` replaced; what is not recorded stays as it is."""
    try:
        return _Sharing(File("an old record"), shared).expand(value, "", ())
    except (SandglassError, RecursionError):
        return value


def _taken(bases: list[Any], own: dict[str, Any]) -> Any:
    """Return what is like ``bases``, of which the first counts most, with what it says itself."""
    if len(bases) == 1 and not own:
        return bases[0]
    merged: dict[str, Any] = {}
    for base in reversed(bases):
        merged = over(merged, base)
    return over(merged, own)


def _listed(likes: Any) -> list[str]:
    return likes if isinstance(likes, list) else [likes]


def _likes(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield path and value of every ``like`` below ``value``."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key == LIKE:
                yield f"{path}.{key}", each
            else:
                yield from _likes(each, f"{path}.{key}")
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from _likes(each, f"{path}.{place}")


class _Sharing:
    """Replaces ``like`` by what it names, or refuses the file."""

    def __init__(self, file: File, shared: Mapping[str, Any]) -> None:
        self._file, self._shared = file, shared
        self._count = 0
        self.used: set[str] = set()

    def expand(self, value: Any, path: str, through: tuple[str, ...]) -> Any:
        """Return ``value``, which stands at ``path`` and which the names ``through`` led to, without any ``like``."""
        self._count += 1
        if self._count > MAX_VALUES:
            self._file.refuse(path.split(".")[0], f"more than {MAX_VALUES} values, shared ones counted each time")
        if isinstance(value, list):
            return [self.expand(each, f"{path}.{place}", through) for place, each in enumerate(value)]
        if not isinstance(value, dict):
            return value
        own = {key: self.expand(each, f"{path}.{key}", through) for key, each in value.items() if key != LIKE}
        if LIKE not in value:
            return own
        where = f"{path}.{LIKE}"
        listed = _listed(value[LIKE])
        if not listed or len({str(name) for name in listed}) < len(listed):
            self._file.refuse(where, f"expected one name of {SHARED}, or several, got {shown(value[LIKE])}")
        bases = [self._base(name, where, through) for name in listed]
        if len(bases) > 1 or own:
            for name, base in zip(listed, bases, strict=True):
                if not isinstance(base, dict):
                    self._file.refuse(where, f"{name!r} is no mapping, so nothing else can stand beside it")
        return _taken(bases, own)

    def _base(self, name: Any, where: str, through: tuple[str, ...]) -> Any:
        if not isinstance(name, str) or name not in self._shared:
            self._file.refuse(where, f"{SHARED} has no {shown(name)}{nearest(str(name), self._shared)}")
        if name in through:
            self._file.refuse(where, f"is like itself: {' → '.join((*through, name))}")
        self.used.add(name)
        return self.expand(self._shared[name], f"{SHARED}.{name}", (*through, name))
