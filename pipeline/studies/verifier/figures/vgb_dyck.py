"""Figure ``vgb_dyck``: how far samplers are from their target below prompts (Li 2025, section 3.3.1)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.verifier.comparisons import VGB_NEARER
from schemas.verifier.vgb_dyck import ALRS, BASE, EXACT, FIRST_LEAF, LEARNED, STATIONARY, TRS

NAMES = {
    BASE: "no verifier",
    TRS: "tokenwise rejection at a threshold",
    ALRS: "rejection by probability",
    FIRST_LEAF: "Algorithm 2, first leaf",
    STATIONARY: "Algorithm 2, stationary",
}
LEAVES = {EXACT: "leaves: whether balanced", LEARNED: "leaves: the verifier's probability"}


@plots.drawn("How far samplers are from their target")
def vgb_dyck(context: Results) -> Figure:
    """Mean distance to the target of every sampler, a point for each model."""
    table = plots.some(context.table("vgb_dyck"))
    table = table.filter(pl.col("horizon") == min(table["horizon"]))
    data = (
        table.group_by("replica", "leaf_values", "method", maintain_order=True)
        .agg(pl.mean("distance", "p_valid"), pl.len().alias("prompts"))
        .with_columns(sampler=pl.col("method").replace(NAMES), leaves=pl.col("leaf_values").replace(LEAVES))
    )
    panels: list[plots.Panel] = []
    for name in LEAVES.values():
        rows = data.filter(leaves=name)
        if rows.height:
            top = plots.most(data["distance"])
            x = Axis("distance", "total variation to the target", domain=[-0.06 * top, 1.05 * top])
            y = Axis("sampler", None, "N", order=list(NAMES.values()), more={"labels": not panels})
            panels.append(
                plots.panel(plots.seeds(rows, x, y, charts.BLUE, tips=["replica"], opacity=0.7), name, 195, 160)
            )
    found = comparisons.read(context, [VGB_NEARER]).row(0, named=True)
    means = data.group_by("leaves", "sampler", maintain_order=True).agg(pl.mean("distance"))
    return plots.figure(
        plots.grid(panels, spacing=16),
        data,
        f"Algorithm 2 is {number(None if found['value'] is None else -found['value'], 3)} nearer to the target than "
        "rejection by probability",
        f"Exact laws; a point for each of {plots.count([found['n']], 'model')}, mean over prompts; ticks: their means",
        told=f"Mean distances: {plots.tell(means, '{leaves}, {sampler}: {distance:.3f}')}.",
    )
