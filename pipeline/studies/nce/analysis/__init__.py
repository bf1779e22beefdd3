"""From closed forms, quadrature and paths to result tables (Liu 2024, section 4.1; chapter sections 4 and 8)."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline import tables
from pipeline.studies.nce.analysis import annulus, digits, landscape, steps
from schemas.nce.tables import SCHEMAS

PARTS: tuple[Any, ...] = (landscape, annulus, steps, digits)


def analyse(context: Any) -> dict[str, pl.DataFrame]:
    """Every table of the study (`schemas.nce.tables.SCHEMAS`); each part gives some, by name."""
    frames: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    for part in PARTS:
        for name, frame in part.analyse(context).items():
            frames[name].append(frame)
    stamp = {"scale": context.scale, "params_hash": context.params_hash}
    return {name: tables.conform(found, SCHEMAS[name], **stamp) for name, found in frames.items()}
