"""The parameters as one document, resolved at a scale; and the files that are derived from them."""

from __future__ import annotations

from pathlib import Path


def write(root: Path = Path()) -> None:
    """Bring ``params/graph.json`` below ``root`` up to date, and say whether it was."""
    from pipeline import params
    from pipeline.engine import graph

    changed = graph.write_structure(params.load(root), root)
    print(f"{graph.STRUCTURE} is {'written' if changed else 'up to date'}")
