"""E10: small GPT-2s that learn the last tokens of spans (Liu 2024, section 4.2.9)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.measures import lessons, phases, windows
from pipeline.studies.distillation.names import ENDINGS, ENDINGS_PUPILS, GPT


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return phases, distances by windows, courses, and how the ways to teach compare on each level."""
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
        found = phases.phases(pl.concat([courses[run] for run in teachers]))
        summary = pl.concat(near)
        rows: list[dict[str, Any]] = []
        for run in ENDINGS_PUPILS:
            if run not in courses:
                continue
            rows += lessons.ends(context, run, courses[run], (("half", "os"), ("half", "ce")))
        for run in teachers:
            rows += lessons.contrast(context, f"{run}, checkpoints between inflection and peak", stats.median,
                                     _distances(found.filter(run=run), summary.filter(run=run)))  # fmt: skip
    return {
        "phases": found,
        "ngram_summary": summary,
        "arms": lessons.averages(context, everything),
        "models": lessons.models(context, everything),
        "contrasts": pl.DataFrame(rows, infer_schema_length=None),
    }


def _distances(found: pl.DataFrame, summary: pl.DataFrame) -> np.ndarray:
    """Return for each teacher how many kept checkpoints lie between its inflection and the peak of L_robust(3)."""
    values = []
    for model, c1 in found.select("model", "c1").iter_rows():
        own = summary.filter(model=model, measure="robust", ngram=3).sort("step")
        steps = own["step"].to_list()
        values.append(abs(int(own["q50"].arg_max()) - steps.index(c1)))  # type: ignore[arg-type]
    return np.array(values, float)
