"""E10: small GPT-2s that learn the last tokens of spans (Liu 2024, section 4.2.9)."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.comparisons import BEYOND, ENDINGS_FLAT, ENDINGS_HEADS, LEVELS, LONGEST
from pipeline.studies.distillation.measures import lessons, phases, windows
from pipeline.studies.distillation.names import ENDINGS, ENDINGS_PUPILS, GPT, OF_SPANS


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
        ]
        stages = phases.phases(pl.concat([courses[run] for run in teachers]))
        summary = pl.concat(near)
        models = lessons.models(context, everything)
    found = Measurements(context)
    finals = {
        spans: [lessons.finals(courses[run]) for run in runs if run in courses]
        for spans, runs in ENDINGS_PUPILS.items()
    }
    compare(found, finals)
    for run in teachers:
        spans = GPT[run]
        if spans in ENDINGS_HEADS:
            sizes = models.filter(pl.col("run").is_in(OF_SPANS[run]))
            late = lessons.speed(sizes, context.run_header(run)["entry"]["steps"])
            lessons.add(found, ENDINGS_HEADS[spans], *(late or [None]))
        if run in ENDINGS_FLAT:
            found.add(ENDINGS_FLAT[run], windows.at_inflection(stages.filter(run=run), summary.filter(run=run)))
    return {
        "phases": stages,
        "ngram_summary": summary,
        "arms": lessons.averages(context, everything),
        "models": models,
        "comparisons": found.table(),
    }


def compare(found: Measurements, finals: dict[str, list[dict[str, lessons.Floats]]]) -> None:
    """Compare students of each horizon, by what is asked for: what progressive ones gain over one-shot ones, mean over
    horizons or over those beyond the shortest, and how they end at the longest."""
    gains = {spans: [final["half"] - final["os"] for final in each] for spans, each in finals.items()}
    lessons.add(found, LEVELS, _mean(gains["4"]), _mean(gains["2"]))
    lessons.add(found, BEYOND, _mean(gains["3g"][1:]))
    for spans, comparison in LONGEST.items():
        lessons.add(found, comparison, finals[spans][-1]["half"] if finals[spans] else None)


def _mean(gains: list[lessons.Floats]) -> lessons.Floats | None:
    """Return the mean over horizons, model by model; None where there is no horizon."""
    return np.mean(gains, 0) if gains else None
