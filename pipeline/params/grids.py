"""Variants that are all combinations of a few choices: key ``grid`` of a variant, in whose place its members stand.

A grid says how an id is made, ``id``, and beside it what there is to choose from, by name: a list of values, or of
``label: value`` where the id is to hold something else. In the rest of the variant ``"{name}"`` stands for the value
that is chosen, of which ``"{name.key}"`` is a part; inside a longer text ``{name}`` is the label.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from pipeline.errors import SandglassError
from pipeline.params.checking import File, nearest
from pipeline.params.reading import MAX_VALUES, shown

GRID, ID, VARIANTS = "grid", "id", "variants"
_FIELD = re.compile(r"\{([^{}]*)\}")
_Choice = tuple[str, Any]  # label and value


def expand(file: File, path: str, entry: Any) -> Any:
    """Return an entry with the members of its grids among its variants, each grid's where it stands.

    The last choice changes fastest. Raises SandglassError, with the place below ``path``, for what is no grid.
    """
    variants = entry.get(VARIANTS) if isinstance(entry, dict) else None
    if not isinstance(variants, dict) or not any(_is_grid(own) for own in variants.values()):
        return entry
    members: dict[str, Any] = {}
    for key, own in variants.items():
        where = f"{path}.{VARIANTS}.{key}"
        for member, value in _Grid(file, where, own).members() if _is_grid(own) else [(key, own)]:
            if member in members:
                file.refuse(where, f"{shown(member)} is a variant already")
            members[member] = value
    return entry | {VARIANTS: members}


def recorded(entry: Any) -> Any:
    """Return an entry as an old record has it, with the members of its grids; what is no grid stays as it is."""
    try:
        return expand(File("an old record"), "", entry)
    except (SandglassError, RecursionError):
        return entry


def _is_grid(variant: Any) -> bool:
    return isinstance(variant, dict) and GRID in variant


class _Grid:
    """One variant with a grid."""

    def __init__(self, file: File, path: str, variant: Mapping[str, Any]) -> None:
        self._file, self._path = file, path
        self._rest = {name: value for name, value in variant.items() if name != GRID}
        grid = variant[GRID]
        if not isinstance(grid, dict) or not isinstance(grid.get(ID), str) or len(grid) == 1:
            self._refuse(GRID, f"expected `{ID}` and what there is to choose from, got {shown(grid)}")
        self._id = grid[ID]
        self._axes = {name: self._choices(name, listed) for name, listed in grid.items() if name != ID}

    def members(self) -> Iterator[tuple[str, Any]]:
        """Yield id and value of each member."""
        count = 0
        for chosen in itertools.product(*self._axes.values()):
            choices = dict(zip(self._axes, chosen, strict=True))
            value = self._filled(self._rest, choices)
            count += _count(value)
            if count > MAX_VALUES:
                self._refuse(GRID, f"more than {MAX_VALUES} values")
            yield self._text(self._id, choices), value

    def _choices(self, name: str, listed: Any) -> list[_Choice]:
        where = f"{GRID}.{name}"
        if not isinstance(listed, list) or not listed:
            self._refuse(where, f"expected a list to choose from, got {shown(listed)}")
        choices: list[_Choice] = []
        for item in listed:
            if isinstance(item, dict) and len(item) == 1:
                choices += item.items()
            elif isinstance(item, str | int | float):
                choices.append((str(item), item))
            else:
                self._refuse(where, f"expected a value or `label: value`, got {shown(item)}")
        return choices

    def _filled(self, value: Any, choices: Mapping[str, _Choice]) -> Any:
        """Return ``value`` with what was chosen in the place of every name in braces."""
        if isinstance(value, dict):
            return {key: self._filled(each, choices) for key, each in value.items()}
        if isinstance(value, list):
            return [self._filled(each, choices) for each in value]
        if not isinstance(value, str):
            return value
        whole = _FIELD.fullmatch(value)
        return self._part(whole[1], choices) if whole else self._text(value, choices)

    def _part(self, field: str, choices: Mapping[str, _Choice]) -> Any:
        name, *keys = field.split(".")
        _, value = self._chosen(name, choices)
        for key in keys:
            if not isinstance(value, dict) or key not in value:
                self._refuse(f"{GRID}.{name}", f"{shown(value)} has no {key!r}, which `{{{field}}}` names")
            value = value[key]
        return value

    def _text(self, text: str, choices: Mapping[str, _Choice]) -> str:
        return _FIELD.sub(lambda field: self._chosen(field[1], choices)[0], text)

    def _chosen(self, name: str, choices: Mapping[str, _Choice]) -> _Choice:
        if name not in choices:
            self._refuse(GRID, f"has no {shown(name)}, which stands in braces{nearest(name, choices)}")
        return choices[name]

    def _refuse(self, place: str, text: str) -> NoReturn:
        self._file.refuse(f"{self._path}.{place}", text)


def _count(value: Any) -> int:
    """Return how many values there are in ``value``, itself among them."""
    if isinstance(value, dict):
        return 1 + sum(map(_count, value.values()))
    return 1 + sum(map(_count, value)) if isinstance(value, list) else 1
