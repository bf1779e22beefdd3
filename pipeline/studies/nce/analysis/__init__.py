"""From closed forms, quadrature and paths to result tables (Liu 2024, section 4.1; chapter sections 4 and 8)."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.store import tables
from pipeline.studies.nce.analysis import annulus, digits, gauss, landscape, rates, selection, steps
from schemas.nce.tables import SCHEMAS


def analyse(context: Any) -> dict[str, pl.DataFrame]:
    """Every table of the study (`schemas.nce.tables.SCHEMAS`)."""
    found = landscape.analyse(context) | annulus.analyse(context) | steps.analyse(context)
    found |= rates.analyse(context, found["landscape"], found["steps"])
    found |= gauss.analyse(context)
    found |= selection.analyse(context, found["gauss_final"])
    found |= digits.analyse(context)
    stamp = {"scale": context.scale, "params_hash": context.params_hash}
    return {
        name: tables.conform([found[name]] if name in found else [], schema, **stamp)
        for name, schema in SCHEMAS.items()
    }
