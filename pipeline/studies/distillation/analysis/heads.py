"""E4 and the sizes of E3: how heads decide when a Transformer learns a parity (Liu 2024, Figures 4.10 and 4.13)."""

from __future__ import annotations

import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.comparisons import GROUPS, MORE_HEADS
from pipeline.studies.distillation.measures import lessons, rates


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return learning rates that were tried, and of each shape at its best rate mean accuracies over training, models
    one by one, and the rank correlation of heads with the step at which a model has learned (censored at its last
    step), for each way to grow heads."""
    with one_thread():
        tried = pl.concat([rates.table(context, run) for run in context.runs()])
        courses = pl.concat([rates.best_courses(context, run, tried) for run in context.runs()])
        models = lessons.models(context, courses)
    found = Measurements(context)
    for group, comparison in MORE_HEADS.items():
        own = models.filter(pl.col("run").is_in(GROUPS[group]))
        if not own.height:
            continue
        late = own["t90"].fill_null(own["horizon"]).to_numpy().astype(float)
        found.add(comparison, own["heads"].to_numpy(), late)
    return {
        "learning_rates": tried,
        "arms": lessons.averages(context, courses),
        "models": models,
        "comparisons": found.table(),
    }
