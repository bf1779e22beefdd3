"""How flat and how ill-conditioned the losses are (chapter figures G-N1, G-N2; Liu 2024, Lemmas 46, 47, 53)."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.nce.figures.common import LOSS_COLOURS, largest, log_axis, loss_colour, loss_name, panel_title
from pipeline.studies.nce.names import LOSS_NAMES
from schemas.nce.tables import ENCE, NCE

QUANTITIES = {"loss_opt": "loss L*", "sig_max": "σ_max(H*)", "sig_min": "σ_min(H*)"}
GUIDES = {NCE: (6, 1 / (16 * np.pi**2)), ENCE: (4, 1 / 16)}  # powers of R and their factors, for large R
GUIDED_FROM = 4.0


def landscape(context: Results) -> Figure:
    """Loss and curvature at the optimum against R², NCE and eNCE."""
    data = (
        context.table("landscape")
        .unpivot(list(QUANTITIES), index=["R", "loss"], variable_name="quantity", value_name="value")
        .with_columns((pl.col("R") ** 2).alias("R2"), pl.col("quantity").replace_strict(QUANTITIES))
        .sort("loss", "quantity", "R")
    )
    span = [1.0, min(data["value"].to_list(), default=1e-3)]
    scale = alt.Scale(domain=list(QUANTITIES.values()), range=[charts.BLACK, charts.VERMILLION, charts.BLUE])
    colour = alt.Color("quantity:N", title=None, scale=scale, legend=alt.Legend(orient="bottom"))
    shape = alt.Shape("quantity:N", title=None, scale=alt.Scale(domain=list(QUANTITIES.values())))
    squares = np.linspace(0, largest(data["R2"], 1), 50)
    guide = pl.DataFrame({"R2": squares, "value": np.exp(-squares / 8)})
    panels = []
    for loss in (NCE, ENCE):
        x = alt.X("R2:Q", title="R²", axis=alt.Axis(tickCount=5))
        y = alt.Y("value:Q", title="value (log)" if loss == NCE else None, **log_axis(span, every=4))
        base = alt.Chart(data.filter(loss=loss))
        panels.append(
            alt.layer(
                alt.Chart(guide).mark_line(color=charts.GREY, strokeDash=[4, 3]).encode(x, y),
                base.mark_line(strokeWidth=2).encode(x, y, colour),
                base.mark_point(filled=True, size=35, opacity=1).encode(x, y, colour, shape),
            ).properties(width=250, height=250, title=panel_title(LOSS_NAMES[loss]))
        )
    title = alt.TitleParams(
        "At the optimum everything is exponentially small",
        subtitle=["N(R, 1) against N(0, 1), population losses; dashed: exp(−R²/8), the Bhattacharyya coefficient"],
    )
    far = context.table("landscape").sort("R").filter(loss=NCE)
    words = "Loss and extreme eigenvalues of the Hessian at the optimum against R squared, for NCE and eNCE"
    if far.height:
        row = far.row(-1, named=True)
        values = " and ".join(f"{row[name]:.2g}" for name in ("sig_max", "sig_min"))
        words += f"; NCE at R = {row['R']:g}: loss {row['loss_opt']:.2g}, eigenvalues {values}"
    return alt.hconcat(*panels, spacing=24).properties(title=title, description=f"{words}."), data


def kappa(context: Results) -> Figure:
    """Condition number at the optimum against R with the slopes of theory, and the residuals of the fits."""
    data = context.table("landscape").filter(pl.col("R") > 0).sort("loss", "R").with_columns(loss_name())
    rates = {row["loss"]: row for row in context.table("rates").filter(quantity="kappa").iter_rows(named=True)}
    points = context.table("rate_points").filter(quantity="kappa").sort("loss", "R").with_columns(loss_name())
    # Both losses are fitted over the same R; without a fit there are no points to show either.
    first, end = next(((row["first_R"], row["last_R"]) for row in rates.values()), (1.0, 2.0))
    span = f"Slopes of fits over R = {first:g} to {end:g}. " if rates else ""
    high = largest(data["kappa"], 10)
    x = alt.X(
        "R:Q",
        title="distance R of the means (log)",
        scale=alt.Scale(type="log", domain=[0.4, 25], nice=False),
        axis=alt.Axis(values=[0.5, 1, 2, 5, 10, 20]),
    )
    y = alt.Y("kappa:Q", title="condition number of H* (log)", **log_axis([0.7, 2 * high]))
    last = largest(data["R"], 20)
    r = np.geomspace(GUIDED_FROM, max(last, 1.1 * GUIDED_FROM), 30)
    guides = pl.concat(
        pl.DataFrame({"R": r, "kappa": factor * r**power, "loss": loss}) for loss, (power, factor) in GUIDES.items()
    ).with_columns(loss_name())
    colour = loss_colour()
    shape = alt.Shape("name:N", title="loss", scale=alt.Scale(domain=list(LOSS_COLOURS)))
    main = alt.layer(
        alt.Chart(guides).mark_line(strokeDash=[4, 3], clip=True).encode(x, y, colour, detail="loss:N"),
        alt.Chart(data).mark_line(strokeWidth=2).encode(x, y, colour),
        alt.Chart(data).mark_point(filled=True, size=50, opacity=1).encode(x, y, colour, shape),
    ).properties(width=285, height=280, title=panel_title("Condition number"))
    lines = [
        f"{LOSS_NAMES[loss]}: slope {number(rates[loss]['slope'])}, for large R {rates[loss]['predicted']:g}"
        for loss in (NCE, ENCE)
        if loss in rates
    ]
    spread = max(1.2 * largest(points["residual"].abs(), 0.01), 0.01)
    residuals = (
        alt.Chart(points)
        .mark_point(filled=True, size=60, opacity=1)
        .encode(
            alt.X("R:Q", title="R", scale=alt.Scale(domain=[first - 1, end + 1], nice=False)),
            alt.Y("residual:Q", title="log κ − fit", axis=alt.Axis(tickCount=5)).scale(domain=[-spread, spread]),
            colour,
            shape,
        )
        .properties(width=205, height=280, title=panel_title("Residuals of the fit"))
    )
    title = alt.TitleParams(
        "The condition number grows polynomially, for eNCE more slowly",
        subtitle=["; ".join(lines), f"{span}Dashed: R^6 / 16π² and R^4 / 16, the limits"],
    )
    words = f"Condition number against R on logarithmic axes. Fitted slopes: {'; '.join(lines)}."
    return alt.hconcat(main, residuals, spacing=30).properties(title=title, description=words), data
