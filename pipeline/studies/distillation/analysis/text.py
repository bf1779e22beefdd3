"""E11: BERTs on a generated text that stands in for English (Liu 2024, sections 4.2.3.2 and 4.2.10)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import intervals
from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.comparisons import COMMON, TEXT_LABELS, TEXT_ORDER
from pipeline.studies.distillation.measures import lessons, phases, windows
from pipeline.studies.distillation.names import READER, TEXT


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return phases, distances by windows, courses, how the ways to teach compare at each horizon, and the share of the
    most frequent word, which a model reaches that has learned nothing but frequencies."""
    known = context.runs()
    with one_thread():
        courses = {run: lessons.courses(context, run) for run in known}
        everything = pl.concat(courses.values())
        summary = windows.summary(context, READER, context.dataset(TEXT), context.entry.sentences, context.entry.ngrams)
    found = Measurements(context)
    finals = {run: lessons.finals(course) for run, course in courses.items()}
    for (run, first, second), comparison in TEXT_ORDER.items():
        if run in finals:
            found.add(comparison, finals[run][first], finals[run][second])
    for run, comparison in TEXT_LABELS.items():
        if run in finals:
            found.add(comparison, finals[run]["ce"])
    held = context.dataset(TEXT).filter(part="held").select("tokens", "kind").explode("tokens", "kind")
    words = held.filter(pl.col("kind") > 0)["tokens"]
    found.put(COMMON, intervals.plain((words == words.mode().sort()[0]).sum() / len(words), len(words)))
    return {
        "phases": phases.phases(courses[READER]),
        "ngram_summary": summary,
        "arms": lessons.averages(context, everything),
        "models": lessons.models(context, everything),
        "comparisons": found.table(),
    }
