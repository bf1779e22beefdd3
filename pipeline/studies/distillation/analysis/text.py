"""E11: BERTs on a generated text that stands in for English (Liu 2024, sections 4.2.3.2 and 4.2.10)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.measures import lessons, phases, windows
from pipeline.studies.distillation.names import READER, TEXT, TEXT_PUPILS


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return phases, distances by windows, courses, how the ways to teach compare at each horizon, and the share of the
    most frequent word, which a model reaches that has learned nothing but frequencies."""
    known = context.runs()
    with one_thread():
        courses = {run: lessons.courses(context, run) for run in known}
        everything = pl.concat(courses.values())
        summary = windows.summary(
            context, READER, context.dataset(TEXT), context.entry.sentences, context.entry.ngrams
        )
        rows = [
            row
            for run in TEXT_PUPILS
            if run in known
            for row in lessons.ends(
                context, run, courses[run], (("prog", "os"), ("os", "ce"), ("prog", "ce"))
            )
        ]
        held = context.dataset(TEXT).filter(part="held").select("tokens", "kind").explode("tokens", "kind")
        words = held.filter(pl.col("kind") > 0)["tokens"]
        common = (words == words.mode().sort()[0]).to_numpy().astype(float)
        rows += lessons.contrast(context, "most frequent word", stats.mean, common)
    return {
        "phases": phases.phases(courses[READER]),
        "ngram_summary": summary,
        "arms": lessons.averages(context, everything),
        "models": lessons.models(context, everything),
        "contrasts": pl.DataFrame(rows, infer_schema_length=None),
    }
