"""E9: other temperatures, shares of masked tokens and grammars (Liu 2024, section 4.2.8.6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.measures import lessons
from pipeline.studies.distillation.names import OTHER_PUPILS, OTHER_TEACHERS, OTHER_WIDER, PUPILS, WIDER


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return mean accuracies, models one by one, and how progressive students compare with one-shot ones, by horizon
    and between the shortest and the longest."""
    known = context.runs()
    with one_thread():
        courses = {run: lessons.courses(context, run) for run in known}
        everything = pl.concat(courses.values())
        rows: list[dict[str, Any]] = []
        pairs = (("half", "os"), ("half", "warm"), ("halfwarm", "os"), ("half", "ce"))
        for run in known:
            if run not in OTHER_TEACHERS:
                rows += lessons.ends(context, run, courses[run], pairs)
        for size, groups in (
            ("smaller", {"cfg3b": PUPILS, **OTHER_PUPILS}),
            ("larger", {"cfg3b": WIDER, **OTHER_WIDER}),
        ):
            for kind, runs in groups.items():
                rows += _horizons(
                    context, f"{kind}, {size}", [courses[run] for run in runs if run in courses]
                )
    return {
        "arms": lessons.averages(context, everything),
        "models": lessons.models(context, everything),
        "contrasts": pl.DataFrame(rows, infer_schema_length=None),
    }


def _horizons(context: Inputs, name: str, courses: list[pl.DataFrame]) -> list[dict[str, Any]]:
    """Return what progressive students gain over one-shot ones, as a share of the accuracy of these, at the shortest
    horizon less the same at the longest, and how far the accuracy of the former is from that at the longest."""
    if len(courses) < 2:
        return []
    finals = [lessons.finals(course) for course in (courses[0], courses[-1])]
    gains = [(final["half"] - final["os"]) / np.maximum(final["os"], 1e-12) for final in finals]
    accuracies = [final["half"] for final in finals]
    return [
        *lessons.contrast(context, f"{name}, relative gain, shortest - longest", stats.mean_difference, *gains,
                          paired=True),
        *lessons.contrast(context, f"{name}, half, shortest - longest", stats.mean_difference, *accuracies,
                          paired=True),
    ]  # fmt: skip
