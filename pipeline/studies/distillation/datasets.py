"""Held-out strings, sentences and blocks of text; what models train on is drawn at every step."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pipeline.kit.streams import stream
from schemas.distillation.datasets import SCHEMA, held, task

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from pipeline.studies.distillation.params import Blocks, Sentences, Strings

__all__ = ["SCHEMA", "generate"]


def generate(entry: Strings | Sentences | Blocks, key: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return held-out strings with their classes, or sentences or blocks with what is shown and asked; and no
    metadata."""
    task_fields, columns = drawn(entry, seed)
    return held(task_fields, **columns), {}


def drawn(entry: Strings | Sentences | Blocks, seed: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what tells the task of an entry from others, and its held-out examples as its language has them."""
    language: Any = importlib.import_module(f"pipeline.languages.{entry.language}")
    task_fields = task(entry)
    rng = stream(seed, entry.study, "held-out", *entry.identity)
    return task_fields, language.examples(rng, entry.held, task_fields, held=True)
