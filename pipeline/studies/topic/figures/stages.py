"""Figure 2.4: norms of keys, queries and values from weights near zero."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.topic.figures.common import rounded
from pipeline.studies.topic.names import STAGES_A, STAGES_B, STAGES_C, STAGES_N

PANELS = {
    (STAGES_A, 0.003): "A: squared, Adam 0.003, start 1e-8",
    (STAGES_B, 0.001): "B: squared, Adam 0.001, start 1e-7",
    (STAGES_C, 5.0): "C: cross-entropy, SGD 5, start 0.001",
    (STAGES_C, 3.0): "D: cross-entropy, SGD 3, start 0.001",
    (STAGES_N, 0.01): "N: cross-entropy, Adam 0.01, start 0.001",
}
MATRICES = {"norm_v": "values", "norm_k": "keys", "norm_q": "queries"}
EVERY = 25  # steps between two points of a line


def norms(context: Results) -> Figure:
    """Norms of keys, queries and values by step, a panel for each setting and a line for each seed."""
    table = context.table("norms").filter(pl.col("step") % EVERY == 0)
    order, drawn = list(MATRICES.values()), []
    data = (
        rounded(table, 4)
        .unpivot(list(MATRICES), index=["run", "lr", "replica", "step"], variable_name="matrix", value_name="norm")
        .with_columns(pl.col("matrix").replace_strict(MATRICES, return_dtype=pl.String))
    )
    colour = alt.Color(
        "matrix:N",
        title="norm of",
        sort=order,
        scale=alt.Scale(domain=order, range=[charts.BLACK, charts.VERMILLION, charts.SKY]),
    )
    dash = alt.StrokeDash(
        "matrix:N", title="norm of", sort=order, scale=alt.Scale(domain=order, range=[[1, 0], [1, 0], [5, 3]])
    )
    for (run, lr), title in PANELS.items():
        rows = data.filter(run=run, lr=lr).drop("run", "lr")
        if not rows.height:
            continue
        lines: Any = (
            alt.Chart(rows)
            .mark_line(strokeWidth=1.2, opacity=0.7)
            .encode(
                x=alt.X("step:Q", title="step"),
                y=alt.Y("norm:Q", title="Frobenius norm"),
                color=colour,
                strokeDash=dash,
                detail="replica:N",
            )
        )
        drawn.append(lines.properties(width=215, height=140, title=alt.Title(title, fontSize=charts.SIZE)))
    if not drawn:
        return charts.empty("Norms from weights near zero", "no model was trained at this scale")
    chart: Any = alt.concat(*drawn, columns=2)
    subtitle = [
        "A to D: settings of ours, as the source states none; N: the negative control.",
        "A line is a seed, whether or not it learned. Claim 26 says where values stop growing.",
    ]
    return chart.properties(title=alt.Title("Norms from weights near zero", subtitle=subtitle)), data
