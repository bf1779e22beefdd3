"""E2: what a teacher's checkpoints know of single signs, and which one teaches (Liu 2024, section 4.2.2.1, R1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.measures import curriculum, lessons
from pipeline.studies.distillation.names import (
    ALONE_STRINGS,
    CANDIDATES,
    CHECKED,
    SOLO,
    TEACHER,
    WARM_CANDIDATES,
    WARM_CHECKED,
    WARMER,
)

TRANSITION = (0.52, 0.97)  # accuracies between which a teacher learns (chapter section 6, C12)


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return the teachers' correlations, the checkpoints that were chosen, the students' courses, and comparisons."""
    answers = context.dataset(CANDIDATES)
    task = lessons.task(answers)
    with one_thread():
        known = [run for run in (TEACHER, WARMER) if run in context.runs()]
        parts = [curriculum.tables(context, run, task) for run in known]
        single, summary = (pl.concat(tables) for tables in zip(*parts, strict=True))
        teachers = pl.concat([lessons.courses(context, run) for run in known])
        chosen = pl.concat(
            [
                lessons.checkpoints(context, name, teachers.filter(run=run))
                for name, run in ((CANDIDATES, TEACHER), (ALONE_STRINGS, TEACHER), (WARM_CANDIDATES, WARMER))
                if run in known
            ]
        )
        courses = pl.concat(
            [
                lessons.courses(context, run)
                for run in (*CHECKED, *WARM_CHECKED, SOLO)
                if run in context.runs()
            ]
        )
        rows = [
            *_students(context, courses, chosen.filter(dataset=CANDIDATES)),
            *_warm_students(context, courses),
            *_curriculum(context, teachers, summary),
        ]
    return {
        "correlations": single,
        "separation": summary,
        "chosen": chosen,
        "arms": lessons.averages(context, pl.concat([teachers, courses])),
        "models": lessons.models(context, courses),
        "contrasts": pl.DataFrame(rows, infer_schema_length=None),
    }


def _students(context: Inputs, courses: pl.DataFrame, chosen: pl.DataFrame) -> list[dict[str, Any]]:
    """Return final accuracies by checkpoint, and what happens at the switch to the last one."""
    rows: list[dict[str, Any]] = []
    for run, size in zip(CHECKED, ("narrow", "wide"), strict=True):
        own = courses.filter(run=run)
        if not own.height:
            continue
        final = lessons.finals(own)
        for arm, values in final.items():
            rows += lessons.contrast(context, f"{size} {arm}", stats.median, values)
        rows += lessons.contrast(
            context, f"{size} middle - behind", stats.median_difference, final["middle"], final["behind"],
            paired=True,
        )  # fmt: skip
        switch = int(chosen.filter(arm="middle", order=0)["until"][0])
        last = max(step for step in own["step"].unique() if step <= switch)
        before = own.filter(arm="middle", step=last).sort("model")
        taught = chosen.filter(arm="middle", order=0).sort("model")["accuracy"].to_numpy()
        gap = before["accuracy"].to_numpy() - taught
        rows += lessons.contrast(context, f"{size} distance at the switch", stats.mean, np.abs(gap))
        rows += lessons.contrast(
            context, f"{size} rise after the switch", stats.mean, final["middle"] - taught
        )
        for arm in ("cool", "mild"):
            rows += lessons.contrast(
                context, f"{size} {arm} - middle", stats.median_difference, final[arm], final["middle"],
                paired=True,
            )  # fmt: skip
        hot = own.filter(arm="hot", step=last).sort("model")["accuracy"].to_numpy()
        rows += lessons.contrast(
            context,
            f"{size} hot - middle at the switch",
            stats.mean_difference,
            hot,
            before["accuracy"].to_numpy(),
            paired=True,
        )
    return rows


def _warm_students(context: Inputs, courses: pl.DataFrame) -> list[dict[str, Any]]:
    """Return final accuracies of students of the teacher at a higher rate, by checkpoint, and how that in the
    transition compares with the others (Figure 4.12)."""
    rows: list[dict[str, Any]] = []
    for run, size in zip(WARM_CHECKED, ("narrow", "wide"), strict=True):
        final = lessons.finals(courses.filter(run=run))
        for arm, values in final.items():
            rows += lessons.contrast(context, f"warm {size} {arm}", stats.median, values)
            if arm != "middle":
                name = f"warm {size} middle - {arm}"
                both = (final["middle"], values)
                rows += lessons.contrast(context, name, stats.median_difference, *both, paired=True)
    return rows


def _curriculum(context: Inputs, teachers: pl.DataFrame, summary: pl.DataFrame) -> list[dict[str, Any]]:
    """Return how far correlations separate in the transition and at the end, and where their peak is."""
    rows: list[dict[str, Any]] = []
    for run in teachers["run"].unique(maintain_order=True):
        samples: dict[str, list[float]] = {"peak": [], "final": [], "inside": [], "degree": [], "first": []}
        own = teachers.filter(run=run)
        learned = lessons.converged(own)
        for (model,), course in own.group_by("model", maintain_order=True):
            if model not in learned:
                continue
            low, high = TRANSITION
            # Kept weights and points of the curve are at the same steps; untrained weights have chance accuracy.
            steps = course.filter(pl.col("accuracy").is_between(low, high))["step"].to_list()
            best = summary.filter(run=run, model=model)
            top = best.group_by("step").agg(pl.col("separation").max()).sort("step")
            inside = top.filter(pl.col("step").is_in(steps))["separation"].to_list()
            peak = best.filter(pl.col("separation") == pl.col("separation").max()).row(0, named=True)
            samples["peak"].append(max(inside, default=np.nan))
            samples["final"].append(top["separation"][-1])
            samples["inside"].append(float(peak["step"] in steps))
            samples["degree"].append(float(peak["degree"] in (2, 3)))
            samples["first"].append(float(best.filter(degree=1)["separation"].max()))  # type: ignore[arg-type]
        name = "teacher" if run == TEACHER else "warm teacher"
        for what, values in samples.items():
            statistic = stats.mean if what in ("inside", "degree") else stats.median
            rows += lessons.contrast(context, f"{name} {what}", statistic, np.array(values))
    return rows
