"""The claims of the depth study (chapter section 6; Chen and Zou 2024)."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit import verdicts
from pipeline.studies.depth.claims import theory, training


def judge(context: Any) -> pl.DataFrame:
    """The claims table (`schemas.claims.Claims`) from the tables and theory rows of the study.

    What params.yaml does not list, or does not train at this scale, leaves a gate that is not tested; its reason says
    what is missing.
    """
    checks, accuracy, contrasts = context.theory(), context.table("accuracy"), context.table("contrasts")
    gates = [
        *training.memorization(accuracy),
        *training.reasoning(accuracy),
        *training.generalization(accuracy),
        *training.contextual(accuracy),
        *training.speed(accuracy, contrasts),
        *training.heads(contrasts, context.entry.claims.close),
        *theory.constructions(checks),
        *theory.impossibility(checks),
        *training.attention(context.table("agreement")),
    ]
    return verdicts.table(gates, context.study, context.scale, context.params_hash)
