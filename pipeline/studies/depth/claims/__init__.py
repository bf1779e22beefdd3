"""The claims of the depth study (chapter section 6; Chen and Zou 2024)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import verdicts
from pipeline.kit.results import Results
from pipeline.studies.depth.claims import theory, training


def judge(context: Results) -> pl.DataFrame:
    """Return the claims table (`schemas.claims.Claims`) from the tables and theory rows of the study.

    What is not trained at this scale leaves a gate that is not tested; its reason says what is missing.
    """
    checks = context.theory()
    accuracy, contrasts = (
        training.with_exclusions(context.table(name)) for name in ("accuracy", "contrasts")
    )
    gates = [
        *training.memorization(accuracy),
        *training.reasoning(accuracy),
        *training.generalization(accuracy),
        *training.contextual(accuracy),
        *training.speed(accuracy, contrasts),
        *training.heads(contrasts, context.settings.close),
        *theory.constructions(checks),
        *theory.impossibility(checks),
        *training.attention(context.table("agreement")),
    ]
    return verdicts.table(gates, context.study, context.scale, context.params_hash)
