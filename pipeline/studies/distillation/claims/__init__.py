"""The claims of the distillation study (chapter section 6; Liu 2024, section 4.2)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import verdicts
from pipeline.kit.results import Results
from pipeline.studies.distillation.claims import grammars, language_models, parities, transformers, trees, two_stages

# Each claim as a reader of the thesis would say it; numbers are the chapter's.
STATEMENTS = (
    {
        "8": "A small student that is taught progressively learns a parity as fast as its large teacher.",
        "9": "When the teacher has learned, students of its checkpoints have too, and students of labels or of "
        "its last checkpoint have not.",
        "10": "One checkpoint in the middle of the teacher's transition is enough; one before or behind it is not.",
        "11": "A student first matches the checkpoint in the transition, and passes it with the last one.",
        "12": "In its transition a teacher's answer correlates with single signs that matter; no longer at the end.",
        "13": "At the slower rate it correlates with the single signs that matter.",
        "14": "At a higher rate it correlates with products of two or three of them, and teaches all the same.",
        "15": "Larger models learn earlier.",
        "16": "Small Transformers learn a parity from a checkpoint that correlates with single signs alone.",
        "17": "A Transformer's answer correlates with single signs in its transition, and not at the end.",
        "18": "It is not soft answers that help: small temperatures do as well as a teacher's top class.",
        "19": "Hierarchical parity is learned feature by feature, and two checkpoints teach more than one.",
    }
    | two_stages.STATEMENTS
    | grammars.STATEMENTS
    | language_models.STATEMENTS
)
PARTS = (grammars, two_stages, parities, transformers, trees, language_models)


def judge(context: Results) -> pl.DataFrame:
    """Return the claims table (`schemas.claims.Claims`) from the tables and theory rows of the study."""
    gates = [gate for part in PARTS for gate in part.gates(context)]
    gates.sort(key=lambda gate: int(gate.claim))
    return verdicts.table(gates, STATEMENTS, context.study, context.scale, context.params_hash)
