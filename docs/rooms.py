"""Draws the rooms of the code, from its imports, into docs/architecture.md: python docs/rooms.py.

Arrows that follow from others are left out: where a room imports a second, and that a third, it may import the third.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/architecture.md"
START, END = "<!-- rooms: written by docs/rooms.py -->\n", "<!-- end of rooms -->\n"


def room(file: str) -> str:
    """Return the room of a file: its folder below pipeline/, or schemas.

    >>> room("pipeline/kit/charts.py"), room("schemas/theory.py"), room("pipeline/errors.py")
    ('kit', 'schemas', 'errors')
    """
    first, second, *_ = file.removesuffix(".py").split("/")
    return first if first == "schemas" else second


def arrows(named: bool = False) -> dict[str, set[str]]:
    """Return, by room, the rooms that its modules import; with ``named`` those whose modules parameters name."""
    from pipeline.engine.imports import Sources

    sources, apart = Sources(ROOT), {"__main__", "__init__", "errors", "arithmetic"}
    found: dict[str, set[str]] = {}
    for file in sources.modules():
        written = sources.imports(file)
        names = written.patterns if named else written.names
        own = {room(f"{name.replace('.', '/')}/") for name in names if "." in name}
        found.setdefault(room(file), set()).update(own)
    apart.add("{}")  # a name that parameters give whole
    return {name: own - {name} - apart for name, own in sorted(found.items()) if name not in apart}


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the arrows that do not follow from others.

    >>> reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    {'a': {'b'}, 'b': {'c'}, 'c': set()}
    """

    def reached(name: str) -> Iterator[str]:
        for each in graph.get(name, ()):
            yield each
            yield from reached(each)

    return {
        name: {each for each in own if not any(each in reached(other) for other in own - {each})}
        for name, own in graph.items()
    }


def drawing() -> str:
    """Return the picture as Mermaid text, which code hosts draw."""
    lines = [f"  {name} --> {each}" for name, own in reduced(arrows()).items() for each in sorted(own)]
    lines += [f"  {name} -.-> {each}" for name, own in arrows(named=True).items() for each in sorted(own)]
    return "```mermaid\nflowchart TD\n" + "\n".join(lines) + "\n```\n"


def page() -> str:
    """Return docs/architecture.md with the picture of today."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(START)
    return before + START + drawing() + END + rest.split(END)[1]


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    PAGE.write_text(page(), encoding="utf-8")
