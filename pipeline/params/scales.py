"""How one value of params.yaml becomes the value at a scale: the only place where scales are resolved."""

from __future__ import annotations

from typing import Any

SCALES = ("smoke", "quick", "long", "paper")
LIKE_ANOTHER = {"long": "quick"}  # a mapping that does not name the first takes the value of the second
_NAMES = frozenset(SCALES)


def is_per_scale(value: Any) -> bool:
    """Return whether ``value`` is written per scale: a mapping with at least one scale among its keys."""
    return isinstance(value, dict) and not _NAMES.isdisjoint(value)


def is_complete(value: dict[Any, Any]) -> bool:
    """Return whether a mapping names every scale that `LIKE_ANOTHER` does not let it leave out, and no other key."""
    return not _odd(value)


def _odd(value: dict[Any, Any]) -> list[Any]:
    """Return what ``value`` misses or has too much, sorted."""
    return sorted((set(value) ^ _NAMES) - (LIKE_ANOTHER.keys() - set(value)), key=str)


def resolve(value: Any, scale: str) -> Any:
    """Replace every ``{smoke: a, quick: b, paper: c}`` below ``value`` by its entry for ``scale``.

    >>> resolve({"k": 2, "steps": {"smoke": 3, "quick": 600, "paper": 1060}}, "paper")
    {'k': 2, 'steps': 1060}

    >>> resolve({"smoke": 3, "quick": 600, "paper": 1060}, "long")
    600

    Raises KeyError with the missing or surplus scale if such a mapping names none of one scale (`LIKE_ANOTHER` says
    which may be left out), or another.
    """
    if is_per_scale(value):
        if odd := _odd(value):
            raise KeyError(odd[0])
        return resolve(value[scale if scale in value else LIKE_ANOTHER[scale]], scale)
    if isinstance(value, dict):
        return {key: resolve(entry, scale) for key, entry in value.items()}
    if isinstance(value, list):
        return [resolve(entry, scale) for entry in value]
    return value
