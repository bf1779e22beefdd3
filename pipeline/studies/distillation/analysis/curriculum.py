"""E2: what a teacher's checkpoints know of single signs, and which one teaches (Liu 2024, section 4.2.2.1, R1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.comparisons import (
    AFTER_SWITCH,
    AT_SWITCH,
    BEST_INSIDE,
    CHECKPOINT,
    CORRELATED,
    CORRELATED_MORE,
    EARLY_SIGNS,
    END,
    HIGHER_DEGREE,
    HOT,
    INSIDE,
    OF_CHECKED,
    OF_WARM_CHECKED,
    PEAK,
    PEAK_SIGNS,
    SINGLE_SIGNS,
    SOFTER,
    SOFTNESS,
    TEMPERATURES,
    TRANSITION,
    WARM_BEST_INSIDE,
    WHERE,
)
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

CHANCE = 0.5  # accuracy of untrained weights, at which curves have no point
MISSED = "they have not learned their parity"


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return the teachers' correlations, the checkpoints that were chosen, the students' courses, and comparisons."""
    task = lessons.task(context.dataset(CANDIDATES))
    found = Measurements(context)
    with one_thread():
        known = [run for run in (TEACHER, WARMER) if run in context.runs()]
        parts = [curriculum.tables(context, run, task) for run in known]
        single, summary = (pl.concat(tables) for tables in zip(*parts, strict=True))
        by_run = {run: lessons.courses(context, run) for run in known}
        learned = {run: lessons.learned(context, course) for run, course in by_run.items()}
        teachers = pl.concat(by_run.values())
        chosen = pl.concat(
            [
                lessons.checkpoints(context, name, by_run[run])
                for name, run in ((CANDIDATES, TEACHER), (ALONE_STRINGS, TEACHER), (WARM_CANDIDATES, WARMER))
                if run in known
            ]
        )
        courses = pl.concat(
            [lessons.courses(context, run) for run in (*CHECKED, *WARM_CHECKED, SOLO) if run in context.runs()]
        )
        first = chosen.filter(dataset=CANDIDATES, order=0)
        for size, run in OF_CHECKED.items():
            _students(found, size, courses.filter(run=run), first, learned[TEACHER])
        if WARMER in known:
            warm = chosen.filter(dataset=WARM_CANDIDATES)
            for (size, arm), comparison in WARM_BEST_INSIDE.items():
                finals = lessons.finals(courses.filter(run=OF_WARM_CHECKED[size]))
                values, others = lessons.taught_by(warm, learned[WARMER], finals)
                found.add(comparison, values["middle"], values[arm], excluded=others[arm], reason=lessons.UNLEARNED)
        _peaks(found, by_run, summary, learned)
        own = first.filter(pl.col("teacher").is_in(learned[TEACHER]))
        _at_checkpoints(context, found, task, single, own)
        before = own.filter(arm="before").select(model="teacher", step="teacher_step").unique()
        early = summary.filter(run=TEACHER).join(before, on=["model", "step"])
        found.add(EARLY_SIGNS, early.group_by("model").agg(pl.col("separation").max()).sort("model")["separation"])
    return {
        "correlations": single,
        "separation": summary,
        "chosen": chosen,
        "arms": lessons.averages(context, pl.concat([teachers, courses])),
        "models": lessons.models(context, courses),
        "courses": lessons.one_by_one(teachers),
        "comparisons": found.table(),
    }


def _students(found: Measurements, size: str, own: pl.DataFrame, first: pl.DataFrame, learned: list[int]) -> None:
    """Compare final accuracies by checkpoint, and what happens at the switch to the last one."""
    if not own.height:
        return
    final, others = lessons.taught_by(first, learned, lessons.finals(own))
    switch = int(first.filter(arm="middle")["until"][0])
    last = max(step for step in own["step"].unique() if step <= switch)
    at_switch, _ = lessons.taught_by(first, learned, lessons.finals(own.filter(pl.col("step") <= last)))
    middle = first.filter(pl.col("teacher").is_in(learned), arm="middle").sort("model")
    taught = middle["accuracy"].to_numpy()
    more: dict[str, Any] = {"excluded": others["middle"], "reason": lessons.UNLEARNED}
    for arm in WHERE:
        found.add(CHECKPOINT[size, arm], final[arm], **more)
    for arm in ("before", "behind"):
        found.add(BEST_INSIDE[size, arm], final["middle"], final[arm], **more)
    found.add(AT_SWITCH[size], np.abs(at_switch["middle"] - taught), **more)
    found.add(AFTER_SWITCH[size], final["middle"] - taught, **more)
    for arm in TEMPERATURES:
        found.add(SOFTER[size, arm], final[arm], final["middle"], **more)
    found.add(HOT[size], at_switch["hot"], at_switch["middle"], **more)


def _peaks(
    found: Measurements, courses: dict[str, pl.DataFrame], summary: pl.DataFrame, learned: dict[str, list[int]]
) -> None:
    """Compare how far correlations separate in the transition and at the end, and where their peak is."""
    samples: dict[str, list[dict[str, Any]]] = {}
    for run, course in courses.items():
        samples[run] = []
        for model in learned[run]:
            accuracy = dict(course.filter(model=model).select("step", "accuracy").iter_rows())
            own = summary.filter(run=run, model=model)
            top = own.group_by("step").agg(pl.col("separation").max()).sort("step")
            low, high = TRANSITION
            # Kept weights and points of the curve are at the same steps.
            steps = [s for s, a in accuracy.items() if low <= a <= high]
            inside, signs = top.filter(pl.col("step").is_in(steps)), own.filter(degree=1)
            peak = own.filter(pl.col("separation") == pl.col("separation").max()).row(0, named=True)
            samples[run].append(
                {
                    "peak": max(inside["separation"], default=np.nan),
                    "end": top["separation"][-1],
                    "at": accuracy.get(peak["step"], CHANCE),
                    "degree": peak["degree"],
                    "single": signs["separation"].max(),
                    "signs": max(signs.filter(pl.col("step").is_in(steps))["separation"], default=np.nan),
                }
            )
    schema = dict.fromkeys(("peak", "end", "at", "degree", "single", "signs"), pl.Float64)
    values = {run: pl.DataFrame(rows, schema=schema) for run, rows in samples.items()}
    left_out = {run: courses[run]["model"].n_unique() - len(learned[run]) for run in courses}
    for comparison, column in ((PEAK, "peak"), (PEAK_SIGNS, "signs"), (END, "end"), (INSIDE, "at")):
        found.add(comparison, values[TEACHER][column], excluded=left_out[TEACHER], reason=MISSED)
    if WARMER in values:
        found.add(HIGHER_DEGREE, values[WARMER]["degree"], excluded=left_out[WARMER], reason=MISSED)
        both = values[WARMER]["single"], values[TEACHER]["single"]
        found.add(SINGLE_SIGNS, *both, excluded=sum(left_out.values()), reason=MISSED)


def _at_checkpoints(
    context: Inputs, found: Measurements, task: curriculum.Task, single: pl.DataFrame, first: pl.DataFrame
) -> None:
    """Compare what teachers that have learned know at the checkpoints that their students learned from ``first``."""
    found_at: dict[tuple[str, bool], pl.Series] = {}
    for (arm, inside), comparison in CORRELATED.items():
        own = first.filter(arm=arm).select(model="teacher", step="teacher_step").unique()
        matters = pl.col("feature") != "rest"
        signs = single.filter(matters if inside else ~matters, run=TEACHER).join(own, on=["model", "step"])
        found_at[arm, inside] = signs.group_by("model").agg(pl.col("correlation").mean()).sort("model")["correlation"]
        found.add(comparison, found_at[arm, inside])
    found.add(CORRELATED_MORE, found_at["middle", True], found_at["middle", False])
    middle = first.filter(arm="middle").select("teacher", "teacher_step").unique().sort("teacher")
    softness = curriculum.softness(context, TEACHER, task, dict(middle.iter_rows()), list(TEMPERATURES.values()))
    for arm, values in zip(TEMPERATURES, softness, strict=True):
        found.add(SOFTNESS[arm], values)
