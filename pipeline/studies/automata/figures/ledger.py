"""Sizes of the constructions beside the bounds that are claimed, and the sharpness that attention needs."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results

SIZES = ["depth", "dimension", "number of heads", "dimension of heads", "width of MLPs", "norm"]
LEAST = 1e-3  # below it a ratio says no more than that a bound is loose


def ledger(context: Results) -> Figure:
    """Measured sizes of every construction, over the bound that its statement claims; to the right of 1 the bound is
    exceeded. Ratios below a thousandth are drawn there, as triangles."""
    rows = context.theory().filter(pl.col("check").str.starts_with("ledger."))
    data = rows.select(
        "check",
        "measured",
        "bound",
        pl.col("x").alias("ratio"),
        pl.max_horizontal("x", pl.lit(LEAST)).alias("drawn"),
        pl.col("group").alias("construction"),
        pl.col("size").alias("instance"),
        pl.col("detail").alias("size"),
    )
    over = data.filter(pl.col("ratio") > 1 + 1e-9)
    which = ", ".join(sorted({*(over["construction"] + ", " + over["size"])}))
    top = max(10.0, plots.most(data["ratio"]) * 1.2)
    x = Axis("drawn", "measured size over claimed bound (log scale)", log=True, domain=[LEAST / 1.3, top])
    x = x.but(values=[0.001, 0.01, 0.1, 1, 10])
    y = Axis("construction", None, "N", order=sorted(set(data["construction"])))
    by = plots.kinds(SIZES, "size", dashes=False)
    tips = ["instance", "measured", "bound", "ratio"]
    inside, loose = data.filter(pl.col("ratio") >= LEAST), data.filter(pl.col("ratio") < LEAST)
    layers = [
        *plots.rule(x, 1, "bound", upright=True, dash=plots.DASHED, colour=charts.INK),
        *plots.points(inside, x, y, by, apart="size", tips=tips, size=40),
    ]
    if loose.height:
        left = "triangle-left"
        layers += plots.points(
            loose, x, y, plots.kinds(SIZES, "size", dashes=False), apart="size", tips=tips, shape=left
        )
    title = f"{over.height} of {data.height} sizes of the constructions exceed their bound"
    return plots.figure(
        layers,
        data,
        title,
        f"A point is one size of one instance; triangles: below {LEAST:g}, where the bound is loose. "
        f"Dashed: the bound, exceeded by {which or 'none'}",
        told=f"{data.height} sizes, {over.height} above their bound: {which}.",
        width=400,
        height=380,
    )


def temperature(context: Results) -> Figure:
    """Share of wrong tokens of Theorem 10's network against the sharpness of its attention, γ over the
    squared length."""
    rows = context.theory().filter(group="sharpness")
    data = rows.select(sharpness=pl.col("x"), wrong=pl.col("measured")).sort("sharpness")
    x = plots.listed("sharpness", "sharpness of attention over the squared length, γ/T² (log scale)", data, log=True)
    right = data.filter(wrong=0)["sharpness"]
    title = f"The construction of Theorem 10 is exact from γ = {plots.least(right):g} T² on"
    return plots.figure(
        plots.lines(data, x, plots.share("wrong", "share of wrong tokens"), dots=True),
        data,
        title if len(right) else "The construction of Theorem 10 is not exact at any sharpness tried",
        f"One network, {data.height} values of γ",
        told=f"Wrong tokens: {plots.tell(data, '{wrong:.2f} at {sharpness:g}', ', ')}.",
        width=400,
        height=200,
    )
