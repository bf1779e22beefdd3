"""The claims of the Dyck study (chapter section 6; Wen et al. 2023)."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit import verdicts
from pipeline.studies.dyck.claims import attention, balance, copying, table1, theory


def judge(context: Any) -> pl.DataFrame:
    """The claims table (`schemas.claims.Claims`) from the tables and theory rows of the study.

    What params.yaml does not list leaves a gate that is not tested, and the reason says what is missing.
    """
    checks = {row["check"]: row for row in context.theory().iter_rows(named=True)}
    variation, contrasts = context.table("variation"), context.table("contrasts")
    gates = [
        *theory.sampler(checks),
        *theory.random_attention(checks),
        *attention.in_distribution(contrasts),
        *attention.stack_like(contrasts),
        *attention.variation(variation, context.entry.claims.variation_tolerance),
        *attention.over_random(contrasts, checks),
        *attention.minimal(variation, contrasts),
        *balance.balance(contrasts),
        *balance.accuracy(contrasts),
        *balance.rank(contrasts),
        *balance.on_prefixes(contrasts),
        *attention.uniform(contrasts),
        *table1.table_1(context.table("variation_table1"), contrasts),
        *table1.last_layer(contrasts),
        *theory.constructions(checks),
        *theory.pruning(checks),
        *theory.shared_matrix(checks),
        *attention.prefix_ratio(contrasts),
        *copying.accuracy(contrasts),
        *copying.misleading(context.table("ablation")),
    ]
    gates.sort(key=lambda gate: int(gate.claim))
    return verdicts.table(gates, context.study, context.scale, context.params_hash)
