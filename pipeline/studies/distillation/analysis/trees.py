"""E6: hierarchical parity, where one checkpoint may not be enough (Liu 2024, section 4.2.7.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.measures import curriculum, lessons
from pipeline.studies.distillation.names import (
    LATE,
    PAIRS,
    SINGLES,
    TAUGHT,
    TREE_NARROW,
    TREE_STUDENTS,
    TREE_TEACHER,
)


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return correlations with the parities on the way to class 0, checkpoints, courses and comparisons."""
    answers = context.dataset(TAUGHT)
    task = lessons.task(answers)
    with one_thread():
        _, summary = curriculum.tables(context, TREE_TEACHER, task)
        teachers = lessons.courses(context, TREE_TEACHER)
        courses = {
            name: lessons.courses(context, run)
            for name, run in (("tree", TREE_STUDENTS), ("tree narrow", TREE_NARROW))
            if run in context.runs()
        }
        students = pl.concat(courses.values())
        chosen = lessons.checkpoints(context, TAUGHT, teachers)
        rows: list[dict[str, Any]] = []
        for name, course in courses.items():
            rows += _compared(context, name, lessons.finals(course))
        rows += _peaks(context, teachers, summary)
    return {
        "separation": summary,
        "chosen": chosen,
        "arms": lessons.averages(context, pl.concat([teachers, students])),
        "models": lessons.models(context, pl.concat([teachers, students])),
        "contrasts": pl.DataFrame(rows, infer_schema_length=None),
    }


def _compared(context: Inputs, name: str, values: dict[str, lessons.Floats]) -> list[dict[str, Any]]:
    """Return final accuracies of all arms, of the best pair, and how that compares with the best single checkpoint."""
    rows: list[dict[str, Any]] = []
    for arm, own in values.items():
        rows += lessons.contrast(context, f"{name} {arm}", stats.mean, own)
    # The best is the arm with the largest mean: chosen on the same models, so each pair has a row of its own above.
    # Of the candidates, one lies behind the transition.
    pair, single = (
        max(
            (arm for arm in arms if arm in values and LATE not in arm),
            key=lambda arm: float(values[arm].mean()),
        )
        for arms in (PAIRS, SINGLES)
    )
    rows += lessons.contrast(
        context,
        f"{name} best pair - best single",
        stats.mean_difference,
        values[pair],
        values[single],
        paired=True,
    )
    return rows + lessons.contrast(context, f"{name} best pair", stats.mean, values[pair])


def _peaks(context: Inputs, teachers: pl.DataFrame, summary: pl.DataFrame) -> list[dict[str, Any]]:
    """Return at how many different kept steps the parities separate most, over teachers."""
    counts = []
    for model in sorted(teachers["model"].unique()):
        own = summary.filter(model=model)
        steps = {
            own.filter(feature=name).sort("separation", descending=True)["step"][0]
            for name in own["feature"].unique(maintain_order=True)
        }
        counts.append(len(steps))
    return lessons.contrast(context, "tree peaks", stats.median, np.array(counts, float))
