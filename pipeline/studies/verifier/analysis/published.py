"""Table ``published_verifier``: every number that the source prints, with what its spread is."""

from __future__ import annotations

import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.studies.verifier.measures import published

# By the audit (`theory.printed`): the captions call all of them standard errors.
KINDS = {"T3.3": "std0", "T3.16": "std0", "T3.5": "std"}


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return table ``published_verifier``."""
    rows = [
        {
            "table": cell.table,
            "row_key": cell.key,
            "metric": cell.metric,
            "value": float(cell.value),
            "spread": cell.spread,
            "spread_kind": "" if cell.spread is None else KINDS.get(cell.table, "unknown"),
            "note": cell.note,
        }
        for cell in published.cells()
    ]
    return {"published_verifier": pl.DataFrame(rows, infer_schema_length=None)}
