"""How well straight lines describe what grows with R (Liu 2024, Lemmas 46, 47, Theorems 17 to 19)."""

from __future__ import annotations

import altair as alt

from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.nce.figures.common import loss_colour, loss_name, panel_title

WORDS = {"loss_opt": "L*", "sig_max": "σ_max(H*)", "sig_min": "σ_min(H*)", "kappa": "κ*"}


def residuals(context: Results) -> Figure:
    """Residuals of every fitted rate."""
    fits = context.table("rates").with_columns(loss_name())
    names = {
        (row["quantity"], row["loss"]): f"{WORDS.get(row['quantity'], row['quantity'])}, {row['name']}"
        for row in fits.iter_rows(named=True)
    }
    data = context.table("rate_points").with_columns(loss_name()).sort("quantity", "loss", "R")
    panels = []
    for (quantity, loss), name in names.items():
        rows = data.filter(quantity=quantity, loss=loss)
        row = fits.filter(quantity=quantity, loss=loss).row(0, named=True)
        spread = max(1.3 * row["largest_residual"], 1e-3)
        against = "R²" if row["against"] == "R^2" else "log R"
        panels.append(
            alt.Chart(rows)
            .mark_point(filled=True, size=40, opacity=1)
            .encode(
                alt.X("R:Q", title="R", axis=alt.Axis(tickCount=4), scale=alt.Scale(zero=False, padding=8)),
                alt.Y("residual:Q", title=None, scale=alt.Scale(domain=[-spread, spread]), axis=alt.Axis(tickCount=3)),
                loss_colour().legend(None),
            )
            .properties(width=150, height=90, title=panel_title(name, [f"{against}: {number(row['slope'])}"]))
        )
    title = alt.TitleParams(
        "Residuals of the fitted rates",
        subtitle=["Natural logarithm minus its line: bend of the points, not noise; above each panel the slope"],
    )
    chart = alt.concat(*panels, columns=3, spacing=16) if panels else alt.Chart(data).mark_point()
    words = "; ".join(
        f"{names[row['quantity'], row['loss']]}: slope {number(row['slope'])}" for row in fits.iter_rows(named=True)
    )
    return chart.properties(title=title, description=f"Residuals of fits. {words}."), data
