"""E7: small BERTs that learn masked tokens from labels or from a teacher (Liu 2024, sections 4.2.3 and 4.2.8.6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.measures import lessons, phases, rates
from pipeline.studies.distillation.names import BERT, PLATEAU, PUPILS, RATES, SENTENCES, WIDER

ON_PLATEAU = 80  # steps after which the loss of the plateau's run is read (chapter section 6, C20)


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return mean accuracies over training, models one by one, phases of the teachers, how the ways to teach compare
    at each horizon, and learning rates that were tried."""
    known = [run for run in context.runs() if run not in RATES]
    with one_thread():
        tried = [rates.table(context, run) for run in RATES if run in context.runs()]
        courses = {run: lessons.courses(context, run) for run in known}
        everything = pl.concat(courses.values())
        rows: list[dict[str, Any]] = []
        gaps: dict[str, list[np.ndarray]] = {}
        for group, runs in (("", PUPILS), ("wider ", WIDER)):
            for place, run in enumerate(runs, 1):
                if run in courses:
                    contrasts, own = _horizon(context, f"{group}horizon {place}", courses[run])
                    rows += contrasts
                    for name, values in own.items():
                        gaps.setdefault(group + name, []).append(values)
        for name, gap in gaps.items():
            rows += lessons.contrast(
                context, f"{name}, shortest - longest", stats.mean_difference, gap[0], gap[-1], paired=True
            )
        rows += _plateau(context, courses)
        models = lessons.models(context, everything)
        sizes = models.filter(pl.col("run").is_in([BERT, *PUPILS, *WIDER]))
        rows += lessons.speed(context, "heads and t80", sizes, context.run_header(BERT)["entry"]["steps"])
        held = context.dataset(SENTENCES)
        counts = np.array([(np.array(kind) > 0).sum() for kind in held["kind"].to_list()], float)
        rows += lessons.contrast(context, "held-out tokens of a sentence", stats.mean, counts)
    return {
        "arms": lessons.averages(context, everything),
        "models": models,
        "phases": phases.phases(everything.filter(arm="label")),
        "learning_rates": pl.concat(tried) if tried else None,
        "contrasts": pl.DataFrame(rows, infer_schema_length=None),
    }


def _horizon(
    context: Inputs, name: str, course: pl.DataFrame
) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """Return accuracies at the end of students of one horizon, differences between the ways to teach, and those over
    the better temperature of one-shot distillation, model by model."""
    final = lessons.finals(course)
    rows = []
    for arm, values in final.items():
        rows += lessons.contrast(context, f"{name}, {arm}", stats.mean, values)
    once = lessons.better_temperature(final)
    rows += lessons.contrast(context, f"{name}, one-shot", stats.mean, final[once])
    gaps: dict[str, np.ndarray] = {}
    for arm in ("half", "prog", "even"):
        if arm not in final:
            continue
        for other, reference in ((once, "one-shot"), ("ce", "labels")):
            rows += lessons.contrast(
                context,
                f"{name}, {arm} - {reference}",
                stats.mean_difference,
                final[arm],
                final[other],
                paired=True,
            )
        gaps[arm] = final[arm] - final[once]
    if "even" in final:
        rows += lessons.contrast(
            context, f"{name}, half - even", stats.mean_difference, final["half"], final["even"], paired=True
        )
    return rows, gaps


def _plateau(context: Inputs, courses: dict[str, pl.DataFrame]) -> list[dict[str, Any]]:
    """Return the loss of the run that is kept on the plateau, or where there is none, the teachers' plateaus."""
    if PLATEAU in courses:
        loss = courses[PLATEAU].filter(step=ON_PLATEAU)["loss"].to_numpy()
    else:
        loss = phases.phases(courses[BERT])["plateau_loss"].to_numpy()
    return lessons.contrast(context, "loss on the plateau", stats.mean, loss)
