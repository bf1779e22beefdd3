"""E9 as a figure: parameters fitted to predictors, by residual and error (F-H1)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.selfsup.comparisons import FITTED_ERROR, TASKS
from pipeline.studies.selfsup.figures.common import DECADES, log_axis, panel_title

COLOURS = [charts.VERMILLION, charts.ORANGE, charts.BLUE, charts.GREEN]
CLOSE = 1e-16
SHORT = {"pair": "x2 from x1", "allpair": "all of one token", "triple1": "x2, x3 from x1", "triple2": "x1, x3 from x2"}


def fits(context: Results) -> Figure:
    """Squared distance of predictors against the error of parameters, for every start and task."""
    data = context.table("hmm_fit").with_columns(
        name=pl.col("task").replace_strict(TASKS),
        drawn=pl.col("residual").clip(1e-33),
        error=pl.col("param_error").clip(1e-16),
    )
    order = list(TASKS.values())
    colour = alt.Color("name:N", title=None, scale=alt.Scale(domain=order, range=COLOURS), legend=None)
    bar = alt.Chart(pl.DataFrame({"y": [CLOSE]})).mark_rule(color=charts.GREY, strokeDash=[4, 3]).encode(y="y:Q")
    panels = []
    first = {"title": "squared residual (log)", **log_axis(1e-33, 30.0, 8)}
    rest = {**first, "title": None, "axis": alt.Axis(values=DECADES[8:41:8], labels=False, ticks=False)}
    for task in TASKS:
        part = data.filter(task=task)
        points = (
            alt.Chart(part)
            .mark_point(filled=True, size=36, opacity=0.6)
            .encode(
                alt.X("error:Q", title="error of O and T (log)", **log_axis(1e-16, 10.0, 8)),
                alt.Y("drawn:Q", **(first if task == "pair" else rest)),
                colour,
                tooltip=["instance_id", "task", "start", "residual", "param_error", "evaluations"],
            )
        )
        share = part["converged"].cast(pl.Float64).to_numpy().mean() if part.height else 0.0
        panels.append(
            alt.layer(bar, points).properties(
                width=130, height=230, title=panel_title(SHORT[task], [f"{100 * share:.0f} % converge"])
            )
        )
    found = comparisons.read(context, FITTED_ERROR.values())
    errors = dict(zip(FITTED_ERROR, found["value"].to_list(), strict=True))
    one, two = [errors["pair"], errors["allpair"]], [errors["triple1"], errors["triple2"]]
    tells = None not in (*one, *two) and max(two) < 1e-6 < min(one)
    title = alt.TitleParams(
        "Only predictors of two tokens pull a fit to the parameters" if tells else "Fits to exact predictors",
        subtitle=[
            f"{data['instance_id'].n_unique()} models (d = 4, 5, k = 3), {data['start'].n_unique()} starts each; "
            "a start has converged below the dashed line"
        ],
    )
    words = "Squared residual against parameter error; medians of the starts that converge: " + "; ".join(
        f"{TASKS[task]} {value:.2g}" for task, value in errors.items() if value is not None
    )
    return alt.hconcat(*panels, spacing=8).properties(title=title, description=f"{words}."), data
