"""E4 and the sizes of E3: how heads decide when a Transformer learns a parity (Liu 2024, Figures 4.10 and 4.13)."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.measures import lessons, rates
from pipeline.studies.distillation.names import HEADS


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return learning rates that were tried, and of each shape at its best rate mean accuracies over training, models
    one by one, and the rank correlation of heads with the step at which a model has learned (censored at its last
    step), for each way to grow heads."""
    with one_thread():
        tried = pl.concat([rates.table(context, run) for run in context.runs()])
        courses = pl.concat([rates.best_courses(context, run, tried) for run in context.runs()])
        models = lessons.models(context, courses)
        rows: list[dict[str, Any]] = []
        # A model of width 64 whose heads have 8 channels is of two groups.
        whole = "distillation-heads-4"
        for group in dict.fromkeys(group for group, _ in HEADS.values()):
            known = [
                run for run, (own, _) in HEADS.items() if own == group or (group == "hidden" and run == whole)
            ]
            own = models.filter(pl.col("run").is_in(known))
            late = own["t90"].fill_null(own["horizon"]).to_numpy().astype(float)
            heads = own["heads"].to_numpy().astype(float)
            rows += lessons.contrast(context, f"{group} and t90", stats.spearman, heads, late, paired=True)
    return {
        "learning_rates": tried,
        "arms": lessons.averages(context, courses),
        "models": models,
        "contrasts": pl.DataFrame(rows, infer_schema_length=None),
    }
