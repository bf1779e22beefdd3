"""How flat and how ill-conditioned the losses are (chapter figures G-N1, G-N2; Liu 2024, Lemmas 46, 47, 53)."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from pipeline.studies.nce.figures.common import LOSSES, largest, loss_name
from pipeline.studies.nce.names import LOSS_NAMES
from schemas.nce.tables import ENCE, NCE

QUANTITIES = {"loss_opt": "loss L*", "sig_max": "σ_max(H*)", "sig_min": "σ_min(H*)"}
GUIDES = {NCE: (6, 1 / (16 * np.pi**2)), ENCE: (4, 1 / 16)}  # powers of R and their factors, for large R
GUIDED_FROM = 4.0


@plots.drawn("Loss and curvature at the optimum")
def landscape(context: Results) -> Figure:
    """Loss and curvature at the optimum against R², NCE and eNCE."""
    table = plots.some(context.table("landscape"))
    data = (
        table.unpivot(list(QUANTITIES), index=["R", "loss"], variable_name="quantity", value_name="value")
        .with_columns((pl.col("R") ** 2).alias("R2"), pl.col("quantity").replace_strict(QUANTITIES))
        .sort("loss", "quantity", "R")
    )
    colours = (charts.BLACK, charts.VERMILLION, charts.BLUE)
    looks = zip(QUANTITIES.values(), colours, plots.SHAPES, strict=False)
    by = Kinds("quantity", {name: Look(colour, shape=shape) for name, colour, shape in looks}).joined()
    squares = np.linspace(0, largest(data["R2"], 1), 50)
    guide = pl.DataFrame({"R2": squares, "value": np.exp(-squares / 8)})
    x = Axis("R2", "R²")
    panels: list[plots.Panel] = []
    for loss in (NCE, ENCE):
        rows = data.filter(loss=loss)
        y = plots.log("value", "value (log scale)", data["value"]).but(**{} if loss == NCE else {"title": None})
        layers = [
            *plots.lines(guide, x, y, charts.GREY, strokeDash=[4, 3]),
            *plots.lines(rows, x, y, by),
            *plots.points(rows, x, y, by, size=35),
        ]
        panels.append(plots.panel(layers, LOSS_NAMES[loss], 250, 250))
    far = table.filter(pl.col("R") == pl.col("R").max()).with_columns(loss_name())
    return plots.figure(
        plots.grid(panels),
        data,
        f"At R = {far['R'][0]:g} the loss at the optimum is {plots.tell(far, '{loss_opt:.1g} for {name}', ', ')}",
        "N(R, 1) against N(0, 1), population losses. Dashed: exp(−R²/8), the Bhattacharyya coefficient",
        told="Loss and extreme eigenvalues of the Hessian: "
        + plots.tell(far, "{name}: {loss_opt:.2g}, {sig_max:.2g} and {sig_min:.2g}")
        + ".",
    )


@plots.drawn("Condition number at the optimum")
def kappa(context: Results) -> Figure:
    """Condition number at the optimum against R with the slopes of theory, and the residuals of the fits."""
    data = plots.some(context.table("landscape").filter(pl.col("R") > 0)).sort("loss", "R").with_columns(loss_name())
    fits = context.table("rates").filter(quantity="kappa").sort("loss", descending=True).with_columns(loss_name())
    points = context.table("rate_points").filter(quantity="kappa").sort("loss", "R").with_columns(loss_name())
    x = Axis("R", "distance R of the means (log scale)", log=True, domain=[0.4, 25], values=[0.5, 1, 2, 5, 10, 20])
    y = plots.log("kappa", "condition number of H* (log scale)", data["kappa"])
    r = np.geomspace(GUIDED_FROM, max(largest(data["R"], 20), 1.1 * GUIDED_FROM), 30)
    guides = pl.concat(
        pl.DataFrame({"R": r, "kappa": factor * r**power, "loss": loss}) for loss, (power, factor) in GUIDES.items()
    ).with_columns(loss_name())
    by = LOSSES.joined()
    main = [
        *plots.lines(guides, x, y, by, strokeDash=[4, 3]),
        *plots.lines(data, x, y, by),
        *plots.points(data, x, y, by, size=50),
    ]
    panels = [plots.panel(main, "Condition number", 285, 280)]
    slopes = plots.tell(fits, "{slope:.2f} for {name}, {predicted:g} for large R", "; ")
    span = ""
    if fits.height:  # without a fit there are no residuals; both losses are fitted over the same R
        first, end = fits["first_R"][0], fits["last_R"][0]
        span = f"Slopes of fits over R = {first:g} to {end:g}. "
        most = max(1.2 * largest(points["residual"].abs(), 0.01), 0.01)
        rest = Axis("R", "R", domain=[first - 1, end + 1]), Axis("residual", "log κ − fit", domain=[-most, most])
        panels.append(plots.panel(plots.points(points, *rest, by, size=60), "Residuals of the fit", 205, 280))
    return plots.figure(
        plots.grid(panels, spacing=30),
        data,
        f"Condition number against R, logarithms of both: slope {slopes}" if slopes else "Condition number against R",
        f"{span}Dashed: R^6 / 16π² and R^4 / 16, the limits. Computed exactly",
        told=f"Condition number at the largest R: {plots.tell(data.filter(R=data['R'].max()), '{name} {kappa:.2g}')}.",
    )
