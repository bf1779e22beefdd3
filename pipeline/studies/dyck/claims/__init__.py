"""The claims of the Dyck study (chapter section 6; Wen et al. 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.kit import verdicts
from pipeline.studies.dyck.claims import attention, balance, copying, table1, theory
from pipeline.studies.dyck.names import PROBE

if TYPE_CHECKING:
    from pipeline.kit.results import Results

INTERVAL = {"ci_lo": "lo", "ci_hi": "hi", "n_models": "n"}  # as `pipeline.kit.evidence` reads a row


def judge(context: Results) -> pl.DataFrame:
    """Return the claims table (`schemas.claims.Claims`) from the tables and theory rows of the study.

    Runs without models at this scale leave a gate that is not tested, and the reason says what is missing.
    """
    checks = {row["check"]: row for row in context.theory().iter_rows(named=True)}
    contrasts = context.table("contrasts")
    on_probe = pl.col("last_layer") & pl.col("causal") & (pl.col("probe_split") == PROBE)
    variation = context.table("variation").filter(on_probe, seq_id=0, head=0)
    variation = variation.rename({"variation_mean": "value", **INTERVAL})
    layers = context.table("variation_table1").rename({"mean": "value", **INTERVAL})
    gates = [
        *theory.sampler(checks),
        *theory.random_attention(checks),
        *attention.in_distribution(contrasts),
        *attention.stack_like(contrasts),
        *attention.variation(variation, context.settings.variation_tolerance),
        *attention.over_random(contrasts, checks),
        *attention.minimal(variation, contrasts),
        *balance.balance(contrasts),
        *balance.accuracy(contrasts),
        *balance.rank(contrasts),
        *balance.on_prefixes(contrasts),
        *attention.uniform(contrasts),
        *table1.table_1(layers, contrasts),
        *table1.last_layer(contrasts),
        *theory.constructions(checks),
        *theory.pruning(checks, context.theory()),
        *theory.shared_matrix(checks),
        *attention.prefix_ratio(contrasts),
        *copying.accuracy(contrasts),
        *copying.misleading(context.table("ablation")),
    ]
    gates.sort(key=lambda gate: int(gate.claim))
    return verdicts.table(gates, context.study, context.scale, context.params_hash)
