"""EXP-5: training from a random start (DEP-R2)."""

from __future__ import annotations

import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.studies.depth.measures import findings, training


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of all runs of the experiment."""
    tables = training.tables(context)
    rates = tables["learning_rates"]
    return tables | {"findings": findings.table(findings.of_rates(pl.concat(rates))) if rates else []}
