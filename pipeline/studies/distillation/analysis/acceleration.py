"""E1: students that learn from labels, from the last checkpoint or from all in turn (Liu 2024, section 4.2.2, R1)."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.comparisons import ACCELERATED, AHEAD, DELAY, EARLIER, LEFT_BEHIND
from pipeline.studies.distillation.measures import lessons, rates
from pipeline.studies.distillation.names import PARITY_RATES, SWEEP, TEACHER


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return mean accuracies of all arms over training, models one by one, how the arms compare, and learning rates
    that were tried."""
    known = [run for run in context.runs() if run not in PARITY_RATES]
    found = Measurements(context)
    with one_thread():
        tried = [rates.table(context, run) for run in PARITY_RATES if run in context.runs()]
        courses = {run: lessons.courses(context, run) for run in known}
        everything = pl.concat(courses.values())
        models = lessons.models(context, everything)
    done = _done(context, courses[TEACHER])
    for size, run in ACCELERATED.items():
        if run in courses:
            _compared(found, size, courses[run], models, done)
    own = models.filter(pl.col("run").is_in([*SWEEP, TEACHER]))
    found.add(EARLIER, own["width"].to_numpy(), _late(own))
    return {
        "arms": lessons.averages(context, everything),
        "models": models,
        "learning_rates": pl.concat(tried) if tried else None,
        "comparisons": found.table(),
    }


def _done(context: Inputs, teachers: pl.DataFrame) -> dict[int, int]:
    """Return the step at which each teacher that has learned first has the accuracy that says so."""
    reached = teachers.filter(
        pl.col("accuracy") >= context.settings.solved, pl.col("model").is_in(lessons.learned(context, teachers))
    )
    return dict(sorted(reached.group_by("model").agg(pl.col("step").min()).iter_rows()))


def _compared(found: Measurements, size: str, course: pl.DataFrame, models: pl.DataFrame, done: dict[int, int]) -> None:
    """Compare students when their teacher has learned. A student has its teacher's number."""
    steps = course["step"].unique().sort().to_list()
    ends = {model: min((s for s in steps if s >= step), default=steps[-1]) for model, step in done.items()}
    values = {arm: lessons.at(course, ends, arm) for arm in course["arm"].unique(maintain_order=True)}
    values["one-shot"] = values[lessons.better_temperature(values)]
    more: dict[str, Any] = {"excluded": course["model"].n_unique() - len(done), "reason": lessons.UNLEARNED}
    for base in ("ce", "one-shot"):
        found.add(AHEAD[size, base], values["prog"], values[base], **more)
        if size == "narrow":
            found.add(LEFT_BEHIND[base], values[base], **more)
    own = models.filter(pl.col("model").is_in(list(done))).sort("model")
    late = own.filter(run=ACCELERATED[size], arm="prog"), own.filter(run=TEACHER)
    found.add(DELAY[size], *map(_late, late), **more)


def _late(models: pl.DataFrame) -> lessons.Floats:
    """Return when models have learned; one that has not counts as at its last step."""
    return models["t90"].fill_null(models["horizon"]).to_numpy().astype(float)
