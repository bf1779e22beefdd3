"""E9: other temperatures, shares of masked tokens and grammars (Liu 2024, section 4.2.8.6)."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.measures import lessons
from pipeline.studies.distillation.names import OTHER_PUPILS, PUPILS, WIDER


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return mean accuracies, models one by one, and how progressive students compare with one-shot ones."""
    known = context.runs()
    with one_thread():
        courses = {run: lessons.courses(context, run) for run in known}
        everything = pl.concat(courses.values())
        rows: list[dict[str, Any]] = []
        for run in (*PUPILS, *WIDER, *OTHER_PUPILS):
            if run not in courses:
                continue
            pairs = (("half", "os"), ("half", "warm"), ("halfwarm", "os"), ("half", "ce"))
            rows += lessons.ends(context, run, courses[run], pairs)
    return {
        "arms": lessons.averages(context, everything),
        "models": lessons.models(context, everything),
        "contrasts": pl.DataFrame(rows, infer_schema_length=None),
    }
