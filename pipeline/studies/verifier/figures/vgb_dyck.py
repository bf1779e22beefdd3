"""Figure ``vgb_dyck``: how far samplers are from their target below prompts of strings (Li 2025, section 3.3.1)."""

from __future__ import annotations

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.verifier.comparisons import VGB_BASE, VGB_NEARER
from pipeline.studies.verifier.figures import below
from schemas.verifier.vgb_dyck import LEARNED


@plots.drawn("How far samplers are from their target")
def vgb_dyck(context: Results) -> Figure:
    """Mean distance to the target of every sampler, a point for each model; strings of brackets."""
    return below.distances(context, "vgb_dyck", VGB_NEARER, "whether balanced", VGB_BASE[LEARNED])
