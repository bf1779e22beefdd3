"""Figures 4.28 to 4.30: other temperatures, shares of masked tokens and grammars."""

from __future__ import annotations

import polars as pl

from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.distillation.figures.common import dots
from pipeline.studies.distillation.names import OTHER_PUPILS, PUPILS, WIDER

NAMES = {
    "rate15": "15 % of tokens masked",
    "rate45": "45 % of tokens masked",
    "cfg3i": "cfg3i",
    "cfg3h": "cfg3h",
    "unseen": "masked tokens attended to by none",
}


def masked_temperatures(context: Results) -> Figure:
    """One-shot and progressive students at temperatures 0 and 1 of the teacher: every model and the mean of each."""
    models = context.table("models").filter(pl.col("arm").is_in(["os", "warm", "half", "halfwarm"]))
    known = (
        models.filter(pl.col("run").is_in([*PUPILS, *WIDER]))
        .select("run", "horizon", "heads")
        .unique()
        .sort("run")
    )
    panels = {run: f"{heads} heads, {horizon} steps" for run, horizon, heads in known.iter_rows()}
    return dots(models, panels, "The teacher's temperature, masked tokens")


def others(context: Results) -> Figure:
    """Students where other shares of tokens are masked, and on other grammars: every model and the mean of each."""
    known = context.table("models")["run"].unique()
    panels = {run: NAMES[run.rsplit("-", 1)[1]] for run in OTHER_PUPILS if run in known}
    return dots(context.table("models"), panels, "Other masks, other grammars")
