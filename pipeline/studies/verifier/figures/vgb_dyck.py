"""Figure ``vgb_dyck``: how far samplers are from their target below prompts (Li 2025, section 3.3.1)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons
from pipeline.kit.charts import Figure, number
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


def vgb_dyck(context: Results) -> Figure:
    """Mean distance to the target of every sampler, a point for each model."""
    table = context.table("vgb_dyck")
    table = table.filter(pl.col("horizon") == min(table["horizon"]))
    data = (
        table.group_by("replica", "leaf_values", "method", maintain_order=True)
        .agg(pl.mean("distance", "p_valid"), pl.len().alias("prompts"))
        .with_columns(sampler=pl.col("method").replace(NAMES), leaves=pl.col("leaf_values").replace(LEAVES))
    )
    y = alt.Y("sampler:N", title=None, sort=list(NAMES.values()), axis=alt.Axis(labelLimit=300))
    x = alt.X("distance:Q", title="total variation to the target")
    base = alt.Chart(data)
    points = base.mark_point(size=45, opacity=0.7, color=charts.BLUE).encode(x, y)
    means = base.mark_tick(thickness=3, size=16, color=charts.BLACK).encode(
        alt.X("mean(distance):Q", title="total variation to the target"), y
    )
    chart = (
        (points + means)
        .properties(width=220, height=150)
        .facet(facet=alt.Facet("leaves:N", title=None, sort=list(LEAVES.values())), columns=2)
    )
    found = comparisons.read(context, [VGB_NEARER]).row(0, named=True)
    title = alt.TitleParams(
        f"Algorithm 2 is {number(None if found['value'] is None else -found['value'], 3)} nearer to the target than "
        "rejection by probability",
        subtitle=f"Exact laws; a circle for each of {found['n']} models, mean over prompts; ticks: their means",
    )
    return chart.properties(title=title), data
