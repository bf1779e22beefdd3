"""Figures 4.28 to 4.30: other temperatures, shares of masked tokens and grammars."""

from __future__ import annotations

import polars as pl

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import dots, horizons, mean_ends
from pipeline.studies.distillation.names import OTHER_PUPILS, OTHER_WIDER, OTHERS, PUPILS, UNSEEN, WIDER


@plots.drawn("The teacher's temperature, masked tokens")
def masked_temperatures(context: Results) -> Figure:
    """One-shot and progressive students at temperatures 0 and 1 of the teacher: every model and the mean of each."""
    models = context.table("models").filter(pl.col("arm").is_in(["os", "warm", "half", "halfwarm"]))
    known = models.filter(pl.col("run").is_in([*PUPILS, *WIDER])).select("run", "horizon", "heads").unique().sort("run")
    panels = {run: f"{heads} heads, {horizon} steps" for run, horizon, heads in known.iter_rows()}
    chart, data = dots(models, panels)
    means = data.group_by("run", "arm", maintain_order=True).agg(pl.col("final").mean())
    warm = means.filter(pl.col("arm").is_in(["warm", "halfwarm"])).with_columns(pl.col("arm").replace(COLD))
    gaps = warm.join(means, on=["run", "arm"], suffix="_cold").select(gap=pl.col("final") - pl.col("final_cold"))["gap"]
    low, high = (f"{gap:+.3f}".replace("-", "−") for gap in (plots.least(gaps), plots.most(gaps)))
    title = f"A teacher at temperature 1 changes its students' mean accuracy by {low} to {high}"
    return plots.figure(chart, data, title, _dots(data), told=mean_ends(data))


COLD = {"warm": "os", "halfwarm": "half"}  # the arm that differs in the temperature alone


def _dots(data: pl.DataFrame) -> str:
    each = data.group_by("run", "arm").len()["len"]
    return f"Points: {plots.count(each, 'model')} of each; bars: their means"


@plots.drawn("Other masks, other grammars")
def others(context: Results) -> Figure:
    """Accuracy at the end of students by how many steps they train, mean over models with its interval, where other
    shares of tokens are masked, on other grammars, and where masked tokens are attended to by none."""
    panels = {
        run: f"{OTHERS[kind]}{more}"
        for more, size in (("", OTHER_PUPILS), (", twice the heads", OTHER_WIDER))
        for kind, runs in size.items()
        for run in runs
    }
    panels[UNSEEN] = "masked tokens attended to by none"
    return horizons(context.table("arms"), panels, "Other masks, other grammars")
