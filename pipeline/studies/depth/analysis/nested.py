"""EXP-6: chains of lookups (DEP-D5)."""

from __future__ import annotations

import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.studies.depth.measures import findings, training


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of all runs of the experiment."""
    found = training.tables(context)
    if not found["accuracy"]:
        return found | {"findings": []}
    told = [
        *findings.of_chains(pl.concat(found["accuracy"]), pl.concat(found["summary"])),
        *findings.of_rates(pl.concat(found["learning_rates"])),
    ]
    return found | {"findings": findings.table(iter(told))}
