"""The claims of the depth study (chapter section 6; Chen and Zou 2024)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import verdicts
from pipeline.kit.results import Results
from pipeline.studies.depth.claims import theory, training

# Each claim as a reader of the paper would say it.
STATEMENTS = {
    "1": "One attention-only layer memorizes sequences.",
    "2": "Two layers answer questions from their context; one layer picks an answer of the context at random.",
    "3": "Two layers generalize templates to unseen combinations of tokens; one layer is no better than a guess.",
    "4": "Three layers recognise templates in context; one and two layers pick an answer of the context at random.",
    "5": "Four layers learn templates in context sooner than three.",
    "6": "More heads make memorization faster, and change nothing in reasoning and generalization.",
    "7": "The constructions of the theorems are right on every input.",
    "8": "Outputs of a single layer are linearly dependent, so that no classifier can solve the task.",
    "9": "In trained two-layer models the query attends to the pair that answers it.",
    "10": "Training makes attention on templates more like the construction.",
}


def judge(context: Results) -> pl.DataFrame:
    """Return the claims table (`schemas.claims.Claims`) from the tables and theory rows of the study.

    What is not trained at this scale leaves a gate that is not tested; its reason says what is missing.
    """
    gates = [
        *training.memorization(context),
        *training.reasoning(context),
        *training.generalization(context),
        *training.contextual(context),
        *training.speed(context),
        *training.heads(context),
        *theory.gates(context.theory()),
        *training.attention(context),
    ]
    return verdicts.table(gates, STATEMENTS, context.study, context.scale, context.params_hash)
