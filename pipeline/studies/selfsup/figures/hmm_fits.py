"""E9 as a figure: parameters fitted to predictors, by residual and error (F-H1)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.selfsup.comparisons import FITTED_ERROR, TASKS
from pipeline.studies.selfsup.figures.common import GUIDE

COLOURS = [charts.VERMILLION, charts.ORANGE, charts.BLUE, charts.GREEN]
CLOSE = 1e-16
SHORT = {"pair": "x2 from x1", "allpair": "all of one token", "triple1": "x2, x3 from x1", "triple2": "x1, x3 from x2"}


@plots.drawn("Fits to exact predictors")
def fits(context: Results) -> Figure:
    """Squared distance of predictors against the error of parameters, for every start and task."""
    data = plots.some(context.table("hmm_fit")).with_columns(
        name=pl.col("task").replace_strict(TASKS),
        drawn=pl.col("residual").clip(1e-33),
        error=pl.col("param_error").clip(1e-16),
    )
    by = plots.kinds(dict(zip(TASKS.values(), COLOURS, strict=True)), "name", legend=None)
    x = Axis("error", "error of O and T (log)", domain=[1e-16, 10], values=[1e-16, 1e-8, 1], log=True, form="~e")
    ticks = [1e-32, 1e-24, 1e-16, 1e-8, 1]
    y = Axis("drawn", "squared residual (log)", domain=[1e-33, 30], values=ticks, log=True, form="~e")
    panels: list[plots.Panel] = []
    for task, rows in plots.split(data, "task"):
        named = y if not panels else y.but(title=None, more={"labels": False, "ticks": False})
        tips = ["instance_id", "start", "evaluations"]
        marks = plots.points(rows, x, named, by, tips=tips, size=32, opacity=0.6)
        converged = f"{100 * rows['converged'].cast(pl.Float64).to_numpy().mean():.0f} % converge"
        panels.append(plots.panel([*plots.rule(named, CLOSE, dash=GUIDE), *marks], SHORT[task], 122, 230, converged))
    found = comparisons.read(context, FITTED_ERROR.values())
    errors = dict(zip(FITTED_ERROR, found["value"].to_list(), strict=True))
    one, two = [errors["pair"], errors["allpair"]], [errors["triple1"], errors["triple2"]]
    tells = None not in (*one, *two) and max(two) < 1e-6 < min(one)
    medians = "; ".join(f"{TASKS[task]} {value:.2g}" for task, value in errors.items() if value is not None)
    return plots.figure(
        plots.grid(panels, 4, spacing=18),
        data,
        "Only predictors of two tokens pull a fit to the parameters" if tells else "Fits to exact predictors",
        f"A point is one start: {plots.count([data['instance_id'].n_unique()], 'model')} (d = 4, 5, k = 3), "
        f"{plots.count([data['start'].n_unique()], 'start')} each; a start has converged below the dashed line",
        told=f"Squared residual against parameter error; medians of the starts that converge: {medians}.",
    )
