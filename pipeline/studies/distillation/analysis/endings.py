"""E10: small GPT-2s that learn the last tokens of spans (Liu 2024, section 4.2.9)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.measures import lessons, phases, windows
from pipeline.studies.distillation.names import ENDINGS, ENDINGS_PUPILS, ENDINGS_WIDER, GPT, OF_SPANS, SPANS


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return phases, distances by windows, courses, and how the ways to teach compare by what is asked for and by how
    many steps a student takes."""
    known = context.runs()
    with one_thread():
        courses = {run: lessons.courses(context, run) for run in known}
        everything = pl.concat(courses.values())
        teachers = [run for run in GPT if run in known]
        near = [
            windows.summary(context, run, context.dataset(dataset), context.entry.sentences, context.entry.ngrams)
            for run, dataset in zip(GPT, ENDINGS, strict=True)
            if run in known
        ]  # fmt: skip
        stages = phases.phases(pl.concat([courses[run] for run in teachers]))
        summary = pl.concat(near)
        rows: list[dict[str, Any]] = []
        for heads, size in (("", ENDINGS_PUPILS), ("wider, ", ENDINGS_WIDER)):
            gains = {}
            for spans, runs in size.items():
                students = {run: courses[run] for run in runs if run in courses}
                contrasts, gains[spans] = horizons(context, heads + SPANS[spans], students)
                rows += contrasts
            rows += lessons.contrast(
                context, f"{heads}gain, level 4 - level 2", stats.mean_difference, gains["4"], gains["2"]
            )
        models = lessons.models(context, everything)
        for run in teachers:
            sizes = models.filter(pl.col("run").is_in(OF_SPANS[run]))
            horizon = context.run_header(run)["entry"]["steps"]
            rows += lessons.speed(context, f"{SPANS[GPT[run]]}, heads and t80", sizes, horizon)
            rows += lessons.contrast(context, f"{run}, checkpoints between inflection and peak", stats.median,
                                     _distances(stages.filter(run=run), summary.filter(run=run)))  # fmt: skip
    return {
        "phases": stages,
        "ngram_summary": summary,
        "arms": lessons.averages(context, everything),
        "models": models,
        "contrasts": pl.DataFrame(rows, infer_schema_length=None),
    }


def horizons(
    context: Inputs, name: str, courses: dict[str, pl.DataFrame]
) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Return accuracies at the end of students of each horizon and differences between the ways to teach; the gain of
    progressive over one-shot students, mean over horizons, over those beyond the shortest, and the accuracy at the
    longest; and the former, model by model."""
    rows: list[dict[str, Any]] = []
    for run, course in courses.items():
        rows += lessons.ends(context, run, course, (("half", "os"), ("half", "ce")))
    finals = [lessons.finals(course) for course in courses.values()]
    gains = [final["half"] - final["os"] for final in finals]
    mean = np.mean(gains, 0) if gains else np.empty(0)
    rows += lessons.contrast(context, f"{name}, gain", stats.mean, mean)
    if len(gains) > 1:
        rows += lessons.contrast(
            context, f"{name}, gain beyond the shortest", stats.mean, np.mean(gains[1:], 0)
        )
    if finals:
        rows += lessons.contrast(context, f"{name}, longest, half", stats.mean, finals[-1]["half"])
    return rows, mean


def _distances(stages: pl.DataFrame, summary: pl.DataFrame) -> np.ndarray:
    """Return for each teacher how many kept checkpoints lie between its inflection and the peak of L_robust(3)."""
    values = []
    for model, c1 in stages.select("model", "c1").iter_rows():
        own = summary.filter(model=model, measure="robust", ngram=3).sort("step")
        steps = own["step"].to_list()
        values.append(abs(int(own["q50"].arg_max()) - steps.index(c1)))  # type: ignore[arg-type]
    return np.array(values, float)
