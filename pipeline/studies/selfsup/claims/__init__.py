"""The claims of the study (chapter section 6): of hidden Markov models, and of diffusions."""

from __future__ import annotations

import polars as pl

from pipeline.kit import verdicts
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.selfsup.claims import diffusions, hmm

# Each claim as a reader of the source would say it.
STATEMENTS = {**hmm.STATEMENTS, **diffusions.STATEMENTS}


def judge(context: Results) -> pl.DataFrame:
    """Return the claims table (`schemas.claims.Claims`) from the tables and theory rows of the study."""
    gates: list[Gate] = [*hmm.gates(context), *diffusions.gates(context)]
    gates.sort(key=lambda gate: int(gate.claim))
    return verdicts.table(gates, STATEMENTS, context.study, context.scale, context.params_hash)
