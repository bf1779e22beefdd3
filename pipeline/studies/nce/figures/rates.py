"""How well straight lines describe what grows with R (Liu 2024, Lemmas 46, 47, Theorems 17 to 19)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.nce.figures.common import LOSSES, loss_name

WORDS = {"loss_opt": "L*", "sig_max": "σ_max(H*)", "sig_min": "σ_min(H*)", "kappa": "κ*"}


@plots.drawn("Residuals of the fitted rates")
def residuals(context: Results) -> Figure:
    """Residuals of every fitted rate."""
    shown = pl.col("quantity").replace_strict(WORDS, default=pl.col("quantity"), return_dtype=pl.String)
    power = pl.when(against="R^2").then(pl.lit("R²")).otherwise(pl.lit("log R"))
    fits = plots.some(context.table("rates")).with_columns(loss_name(), shown.alias("shown"), power.alias("power"))
    data = context.table("rate_points").with_columns(loss_name()).sort("quantity", "loss", "R")
    panels: list[plots.Panel] = []
    for row in fits.iter_rows(named=True):
        rows = data.filter(quantity=row["quantity"], loss=row["loss"])
        spread = max(1.3 * row["largest_residual"], 1e-3)
        title = None if len(panels) % 3 else "log − line"
        x = Axis("R", "R", zero=False, pad=8, count=4)
        y = Axis("residual", title, domain=[-spread, spread], count=3, more={"minExtent": 36})
        note = f"slope {row['slope']:.2f} against {row['power']}".replace("-", "−")
        marks = plots.points(rows, x, y, LOSSES, size=40)
        panels.append(plots.panel(marks, f"{row['shown']}, {row['name']}", 145, 90, note))
    least, most = (
        row.row(0, named=True) for row in (fits.sort("largest_residual"), fits.sort(-pl.col("largest_residual")))
    )
    return plots.figure(
        plots.grid(panels, 3, spacing=12),
        data,
        f"Largest residuals of {fits.height} fitted lines: from {least['largest_residual']:.2g} ({least['shown']}, "
        f"{least['name']}) to {most['largest_residual']:.2g} ({most['shown']}, {most['name']})",
        "Natural logarithm of the quantity minus its line, each panel on a scale of its own: points bend, there is no "
        "noise",
        told=f"Slopes: {plots.tell(fits, '{shown}, {name}: {slope:.2f}')}.",
    )
