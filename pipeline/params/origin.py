"""Where a value of an entry stands: in its variant, in the entry, or in what these are like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.params.grids import VARIANTS
from pipeline.params.sharing import LIKE, SHARED


def origin(entries: Mapping[str, Any], shared: Mapping[str, Any], path: str) -> str:
    """Return the path in a file at which the value stands that the member of an entry has at ``path``.

    ``entries`` are those of a section and ``shared`` is what they have in common, as the file says them. A path of
    nothing is returned as it is: a key that is missing, or an id that is not one.

    >>> shared = {"adam": {"lr": 0.1}}
    >>> runs = {"a": {"like": "adam", "steps": 5, "variants": {"a-1": {"batch": 2}}}}
    >>> [origin(runs, shared, f"a.variants.a-1.{name}") for name in ("batch", "steps", "lr", "clip")]
    ['a.variants.a-1.batch', 'a.steps', 'shared.adam.lr', 'a.variants.a-1.clip']
    """
    key, *keys = path.split(".")
    own = keys[2:] if keys[:1] == [VARIANTS] else keys
    if key not in entries or not own:  # what is wrong with a member as a whole may stand in several places
        return path
    return _find(entries[key], keys, key, shared) or _find(entries[key], own, key, shared) or path


def _find(value: Any, keys: list[str], place: str, shared: Mapping[str, Any]) -> str:
    """Return where ``keys`` lead to below ``value``, which stands at ``place``; nothing if they lead nowhere."""
    if not keys:
        alone = isinstance(value, dict) and value.keys() == {LIKE} and isinstance(value[LIKE], str)
        return _find(shared[value[LIKE]], keys, f"{SHARED}.{value[LIKE]}", shared) if alone else place
    first, *rest = keys
    if isinstance(value, list):
        inside = first.isdigit() and int(first) < len(value)
        return _find(value[int(first)], rest, f"{place}.{first}", shared) if inside else ""
    if not isinstance(value, dict):
        return ""
    if first in value and (found := _find(value[first], rest, f"{place}.{first}", shared)):
        return found
    likes = value.get(LIKE, [])
    for name in [likes] if isinstance(likes, str) else likes:
        if found := _find(shared[name], keys, f"{SHARED}.{name}", shared):
            return found
    return ""
