"""E7: small BERTs that learn masked tokens from labels or from a teacher (Liu 2024, sections 4.2.3 and 4.2.8.6)."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.kit import intervals
from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.comparisons import (
    ASKED,
    BERTS_HEADS,
    GAIN,
    HALF_LESS_EVEN,
    LESSON,
    NARROWING,
    ON_PLATEAU,
)
from pipeline.studies.distillation.measures import lessons, phases, rates
from pipeline.studies.distillation.names import BERT, PLATEAU, PUPILS, RATES, SENTENCES, WIDER

AT_STEP = 80  # steps after which the loss of the plateau's run is read (chapter section 6, C20)


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return mean accuracies over training, models one by one, phases of the teachers, how the ways to teach compare
    at each horizon, and learning rates that were tried."""
    known = [run for run in context.runs() if run not in RATES]
    with one_thread():
        tried = [rates.table(context, run) for run in RATES if run in context.runs()]
        courses = {run: lessons.courses(context, run) for run in known}
        everything = pl.concat(courses.values())
        models = lessons.models(context, everything)
    found = Measurements(context)
    teachers = lessons.number(context, BERT)
    finals = {
        place: lessons.of_teachers(lessons.finals(courses[run]), teachers)
        for place, run in enumerate(PUPILS, 1)
        if run in courses
    }
    for final in finals.values():
        final["one-shot"] = final[lessons.better_temperature(final)]
    _compare(found, finals)
    found.add(ON_PLATEAU, _plateau(courses))
    sizes = models.filter(pl.col("run").is_in([BERT, *PUPILS, *WIDER]))
    late = lessons.speed(sizes, context.run_header(BERT)["entry"]["steps"])
    lessons.add(found, BERTS_HEADS, *(late or [None]))
    asked = sum((np.array(kind) > 0).sum() for kind in context.dataset(SENTENCES)["kind"].to_list())
    found.put(ASKED, intervals.plain(asked, int(asked)))
    return {
        "arms": lessons.averages(context, everything),
        "models": models,
        "phases": phases.phases(everything.filter(arm="label")),
        "learning_rates": pl.concat(tried) if tried else None,
        "comparisons": found.table(),
    }


def _compare(found: Measurements, finals: dict[int, dict[str, lessons.Floats]]) -> None:
    """Compare how students end, by their horizon and by arm; of an arm that a horizon lacks nothing is run."""
    for (arm, place), comparison in LESSON.items():
        if place in finals:
            lessons.add(found, comparison, finals[place].get(arm))
    for place, final in finals.items():
        lessons.add(found, HALF_LESS_EVEN[place], final.get("half"), final.get("even"))
    for (arm, base), comparison in GAIN.items():
        lessons.add(found, comparison, finals[1].get(arm), finals[1].get(base))
    for arm, comparison in NARROWING.items():
        gains = [final[arm] - final["one-shot"] for final in finals.values() if arm in final]
        lessons.add(found, comparison, *([gains[0], gains[-1]] if len(gains) > 1 else [None]))


def _plateau(courses: dict[str, pl.DataFrame]) -> lessons.Floats:
    """Return the loss of the run that is kept on the plateau, or where there is none, the teachers' plateaus."""
    if PLATEAU in courses:
        return courses[PLATEAU].filter(step=AT_STEP)["loss"].to_numpy()
    return phases.phases(courses[BERT])["plateau_loss"].to_numpy()
