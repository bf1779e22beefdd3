"""Held-out strings of the parity tasks (Liu 2024, section 4.2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.kit.streams import stream
from pipeline.languages import parity
from schemas.distillation.datasets import SCHEMA, held

if TYPE_CHECKING:
    import polars as pl

    from pipeline.studies.distillation.params import HeldOut

__all__ = ["SCHEMA", "generate"]


def generate(entry: HeldOut, key: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return held-out strings with their classes, and no metadata."""
    bits = parity.sample(stream(seed, entry.study, "held-out", entry.d), (entry.strings,), entry.d)
    return held(bits, parity.labels(bits, entry.k, entry.depth), entry.k, entry.depth), {}
