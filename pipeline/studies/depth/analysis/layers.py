"""EXP-1: every task at every depth (Figure 2), and one layer from another start."""

from __future__ import annotations

import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.studies.depth.measures import training


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of all runs of the experiment."""
    return training.tables(context)
