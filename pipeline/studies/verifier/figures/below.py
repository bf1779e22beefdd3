"""How far samplers are from their target below prompts of strings and of test cases (Li 2025, section 3.3.1)."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.comparisons import Comparison
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from schemas.verifier.vgb_dyck import ALRS, BASE, EXACT, FIRST_LEAF, LEARNED, STATIONARY, TRS, WHOLE

NAMES = {
    BASE: "no verifier",
    WHOLE: "rejection of whole strings",
    TRS: "tokenwise rejection at a threshold",
    ALRS: "rejection by probability",
    FIRST_LEAF: "Algorithm 2, first leaf",
    STATIONARY: "Algorithm 2, stationary",
}


def distances(context: Results, name: str, nearer: Comparison, right: str, base: Comparison | None = None) -> Figure:
    """Return mean distances to the target of every sampler, a point for each model, of table ``name``; ``right`` says
    what exact values of leaves are, ``base`` compares Algorithm 2 with no verifier, with the verifier at leaves."""
    table = plots.some(context.table(name))
    table = table.filter(pl.col("horizon") == min(table["horizon"]))
    leaves = {EXACT: f"leaves: {right}", LEARNED: "leaves: the verifier's probability"}
    data = (
        table.group_by("replica", "leaf_values", "method", maintain_order=True)
        .agg(pl.mean("distance", "p_valid"), pl.len().alias("prompts"))
        .with_columns(sampler=pl.col("method").replace(NAMES), leaves=pl.col("leaf_values").replace(leaves))
    )
    panels: list[plots.Panel] = []
    for words in leaves.values():
        rows = data.filter(leaves=words)
        if rows.height:
            top = plots.most(data["distance"])
            x = Axis("distance", "total variation to the target", domain=[-0.06 * top, 1.05 * top])
            y = Axis("sampler", None, "N", order=list(NAMES.values()), more={"labels": not panels})
            panels.append(
                plots.panel(plots.seeds(rows, x, y, charts.BLUE, tips=["replica"], opacity=0.7), words, 195, 160)
            )
    found = comparisons.read(context, [nearer]).row(0, named=True)
    means = data.group_by("leaves", "sampler", maintain_order=True).agg(pl.mean("distance"))
    return plots.figure(
        plots.grid(panels, spacing=16),
        data,
        _finding(found, "rejection by probability") + ("" if base is None else _beside(context, base)),
        f"Exact laws; a point for each of {plots.count([found['n']], 'model')}, mean over prompts; ticks: their means",
        told=f"Mean distances: {plots.tell(means, '{leaves}, {sampler}: {distance:.3f}')}.",
    )


def _finding(found: dict[str, Any], other: str) -> str:
    """Return how much nearer to the target the first leaf is than another sampler, if that is decided."""
    lo, hi = found["lo"], found["hi"]
    if lo is None or lo <= 0 <= hi:
        apart = f"difference {number(lo, 3)} to {number(hi, 3)}"
        return f"Whether Algorithm 2 is nearer to the target than {other} is open: {apart}"
    nearer = "nearer to" if hi < 0 else "farther from"
    return f"Algorithm 2 is {number(abs(found['value']), 3)} {nearer} the target than {other}"


def _beside(context: Results, base: Comparison) -> str:
    found = comparisons.read(context, [base]).row(0, named=True)
    return f". With the verifier at leaves: {_finding(found, 'no verifier')}"
