"""EXP-6: chains of lookups (DEP-D5)."""

from __future__ import annotations

import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.studies.depth.measures import findings, training


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of all runs of the experiment."""
    tables = training.tables(context)
    if not tables["accuracy"]:
        return tables | {"findings": []}
    statements = [
        *findings.of_chains(pl.concat(tables["accuracy"]), pl.concat(tables["summary"])),
        *findings.of_rates(pl.concat(tables["learning_rates"])),
    ]
    return tables | {"findings": findings.table(iter(statements))}
