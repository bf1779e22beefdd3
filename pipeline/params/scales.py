"""How one value of params.yaml becomes the value at a scale: the only place where scales are resolved."""

from __future__ import annotations

from typing import Any

SCALES = ("smoke", "quick", "paper")
_NAMES = frozenset(SCALES)


def is_per_scale(value: Any) -> bool:
    """Return whether ``value`` is written per scale: a mapping with at least one scale among its keys."""
    return isinstance(value, dict) and not _NAMES.isdisjoint(value)


def resolve(value: Any, scale: str) -> Any:
    """Replace every ``{smoke: a, quick: b, paper: c}`` below ``value`` by its entry for ``scale``.

    >>> resolve({"k": 2, "steps": {"smoke": 3, "quick": 600, "paper": 1060}}, "paper")
    {'k': 2, 'steps': 1060}

    Raises KeyError with the missing or surplus scale if such a mapping does not name exactly the three scales.
    """
    if is_per_scale(value):
        if set(value) != set(SCALES):
            odd = sorted(set(value) ^ set(SCALES), key=str)
            raise KeyError(odd[0])
        return resolve(value[scale], scale)
    if isinstance(value, dict):
        return {key: resolve(entry, scale) for key, entry in value.items()}
    if isinstance(value, list):
        return [resolve(entry, scale) for entry in value]
    return value
