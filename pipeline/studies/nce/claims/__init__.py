"""The claims of the NCE study (chapter section 6; Liu 2024, section 4.1)."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline import verdicts
from pipeline.studies.nce.claims import images


def judge(context: Any) -> pl.DataFrame:
    """The claims table (`schemas.claims.Claims`) from the tables and theory rows of the study."""
    gates: list[verdicts.Gate] = [*images.faster(context)]
    gates.sort(key=lambda gate: int(gate.claim))
    return verdicts.table(gates, context.study, context.scale, context.params_hash)
