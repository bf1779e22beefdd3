"""Held-out strings and sentences; strings and sentences of training are drawn at every step."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pipeline.kit.streams import stream
from schemas.distillation.datasets import SCHEMA, held

if TYPE_CHECKING:
    import polars as pl

    from pipeline.studies.distillation.params import Sentences, Strings

__all__ = ["SCHEMA", "generate"]


def generate(entry: Strings | Sentences, key: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return held-out strings with their classes, or sentences with what is shown and asked; and no metadata."""
    language: Any = importlib.import_module(f"pipeline.languages.{entry.language}")
    if entry.kind == "strings":
        bits = language.sample(stream(seed, entry.study, "held-out", entry.d), (entry.strings,), entry.d)
        about = {"task": "parity", "d": entry.d, "k": entry.k, "depth": entry.depth}
        return held(about, bits=bits, label=language.labels(bits, entry.k, entry.depth)), {}
    rng = stream(seed, entry.study, "held-out", entry.grammar, entry.root, entry.task)
    about = {
        name: getattr(entry, name) for name in ("task", "grammar", "root", "rate", "hide_masked", "level")
    }
    parts = language.examples(rng, entry.grammar, entry.root, entry.sentences, entry.rate, entry.level)
    return held(about, **dict(zip(("tokens", "shown", "kind"), parts, strict=True))), {}
