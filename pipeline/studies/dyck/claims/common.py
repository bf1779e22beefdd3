"""What claims of this study share."""

from __future__ import annotations

import polars as pl

from pipeline.kit.verdicts import Measured

PROBE_LENGTH = 16
RANDOM_MAPS = "published-{}"  # theory check that holds the published variation of random maps of this size
SECTION_2, SECTION_3, SECTION_4_1, SECTION_4_2 = (
    f"Wen et al. 2023, section {number}" for number in ("2", "3", "4.1", "4.2")
)

APPENDIX_D_2 = "Wen et al. 2023, appendix D.2"


def convention(start: bool) -> str:
    """The metric of a contrast of variation, under either convention for the start token."""
    return f"variation, start token {'included' if start else 'omitted'}"


def contrast(contrasts: pl.DataFrame, **where: str) -> tuple[Measured | None, str]:
    """The one contrast that fits ``where``; or None, and what is missing."""
    rows = contrasts.filter(**where)
    if not rows.height:
        needed = " and ".join(run for run in (where.get("first"), where.get("second")) if run)
        return None, f"{needed}, or the data they are measured on, are not in params.yaml"
    row = rows.row(0, named=True)
    return Measured(
        row["value"], row["lo"], row["hi"], row["n"], row["n_excluded"], row["excluded_reason"]
    ), ""
