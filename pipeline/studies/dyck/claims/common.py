"""What claims of this study share."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.evidence import Evidence
from pipeline.studies.dyck.names import RUNS

PROBE_LENGTH = 16
# Columns of tables in words: a closer is a closing bracket.
ACCURACIES = {
    "acc_close": "share of closers that are predicted",
    "acc_thr80": "share of closers with more than 0.8 of the probability of all closers",
}
RANDOM_MAPS = "published-{}"  # theory check that holds the published variation of random maps of this size
SECTION_2, SECTION_3, SECTION_4_1, SECTION_4_2 = (
    f"Wen et al. 2023, section {number}" for number in ("2", "3", "4.1", "4.2")
)
APPENDIX_C_7, APPENDIX_D_2 = (f"Wen et al. 2023, appendix {number}" for number in ("C.7", "D.2"))


def measured(table: pl.DataFrame, **where: Any) -> Evidence:
    """Return the one row that fits ``where``, or which models are missing."""
    return evidence.one_row(table, missing(*where.values()), **where)


def missing(*values: Any) -> str:
    """Return the reason why there is nothing to test on the runs among ``values``."""
    runs = " and ".join(str(value) for value in values if value in RUNS)
    return f"{runs}: no models at this scale, or not the data that they are measured on"
