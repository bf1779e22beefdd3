"""E1: students that learn from labels, from the last checkpoint or from all in turn (Liu 2024, section 4.2.2, R1)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.measures import lessons, rates
from pipeline.studies.distillation.names import NARROW, PARITY_RATES, SWEEP, TEACHER, WIDE

DONE = 0.99  # accuracy of a teacher at whose step its students are compared (chapter section 6, C9)


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return mean accuracies of all arms over training, models one by one, how the arms compare, and learning rates
    that were tried."""
    known = [run for run in context.runs() if run not in PARITY_RATES]
    with one_thread():
        tried = [rates.table(context, run) for run in PARITY_RATES if run in context.runs()]
        courses = {run: lessons.courses(context, run) for run in known}
        everything = pl.concat(courses.values())
        models = lessons.models(context, everything)
        rows = []
        done = _first(courses.get(TEACHER), DONE)
        if done:
            for name, run in (("narrow", NARROW), ("wide", WIDE)):
                if run in courses:
                    rows += _compared(context, name, courses[run], models.filter(run=run), models, done)
        rows += _sizes(context, models)
    return {
        "arms": lessons.averages(context, everything),
        "models": models,
        "learning_rates": pl.concat(tried) if tried else None,
        "contrasts": pl.DataFrame(rows, infer_schema_length=None) if rows else None,
    }


def _first(course: pl.DataFrame | None, accuracy: float) -> dict[int, int]:
    """Return the step at which each teacher first has ``accuracy``, of those that ever do."""
    if course is None:
        return {}
    reached = course.filter(pl.col("accuracy") >= accuracy).group_by("model").agg(pl.col("step").min())
    return dict(sorted(reached.iter_rows()))


def _compared(
    context: Inputs, name: str, course: pl.DataFrame, own: pl.DataFrame, models: pl.DataFrame, done: dict[int, int]
) -> list[dict[str, object]]:  # fmt: skip
    steps = course["step"].unique().sort().to_list()
    end_steps = {
        model: min((s for s in steps if s >= step), default=steps[-1]) for model, step in done.items()
    }
    values = {arm: lessons.at(course, end_steps, arm) for arm in course["arm"].unique(maintain_order=True)}
    values["one-shot"] = values[lessons.better_temperature(values)]
    rows = []
    for arm, accuracies in values.items():
        rows += lessons.contrast(context, f"{name} {arm}", stats.mean, accuracies)
    for other in ("ce", "one-shot"):
        rows += lessons.contrast(
            context,
            f"{name} prog - {other}",
            stats.mean_difference,
            values["prog"],
            values[other],
            paired=True,
        )
    # A student has its teacher's number, and reads the same strings. Who has not learned counts as at the last step.
    late, base = (
        frame.sort("model")["t90"].fill_null(frame["horizon"].max()).to_numpy().astype(float)
        for frame in (own.filter(arm="prog"), models.filter(run=TEACHER))
    )
    return rows + lessons.contrast(context, f"{name} delay", stats.median, late / base)


def _sizes(context: Inputs, models: pl.DataFrame) -> list[dict[str, object]]:
    """Return the rank correlation of width with the step at which a model has learned, censored at the horizon."""
    own = models.filter(pl.col("run").is_in([*SWEEP, TEACHER]))
    if not own.height:
        return []
    late = own["t90"].fill_null(own["horizon"]).to_numpy().astype(float)
    widths = own["width"].to_numpy().astype(float)
    return lessons.contrast(context, "width and t90", stats.spearman, widths, late, paired=True)
