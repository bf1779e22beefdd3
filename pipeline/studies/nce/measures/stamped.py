"""The tail of every analysis."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.store import tables
from schemas.nce.tables import SCHEMAS


def stamped(context: Inputs, found: Mapping[str, pl.DataFrame | None]) -> dict[str, pl.DataFrame]:
    """Return tables as their schemas have them, with scale and hash; None stands for a table without rows."""
    stamp = {"scale": context.scale, "params_hash": context.params_hash}
    return {
        name: tables.conform([] if frame is None else [frame], SCHEMAS[name], **stamp)
        for name, frame in found.items()
    }
