"""Figures 4.28 to 4.30: other temperatures, shares of masked tokens and grammars."""

from __future__ import annotations

import polars as pl

from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import dots, horizons
from pipeline.studies.distillation.names import OTHER_PUPILS, OTHER_WIDER, OTHERS, PUPILS, UNSEEN, WIDER


def masked_temperatures(context: Results) -> Figure:
    """One-shot and progressive students at temperatures 0 and 1 of the teacher: every model and the mean of each."""
    models = context.table("models").filter(pl.col("arm").is_in(["os", "warm", "half", "halfwarm"]))
    known = models.filter(pl.col("run").is_in([*PUPILS, *WIDER])).select("run", "horizon", "heads").unique().sort("run")
    panels = {run: f"{heads} heads, {horizon} steps" for run, horizon, heads in known.iter_rows()}
    return dots(models, panels, "The teacher's temperature, masked tokens")


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
