"""E9: other temperatures, shares of masked tokens and grammars (Liu 2024, section 4.2.8.6)."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.comparisons import ALL_PUPILS, BY_TAU, CFG3I_END, CFG3I_SOON, ON_OTHERS, SHRINKING
from pipeline.studies.distillation.measures import lessons
from pipeline.studies.distillation.names import BERT, OTHER_PUPILS

Finals = dict[str, dict[str, lessons.Floats]]  # accuracies after the last step, by run and arm


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return mean accuracies, models one by one, and how progressive students compare with one-shot ones, by horizon
    and between the shortest and the longest."""
    with one_thread():
        courses = {run: lessons.courses(context, run) for run in context.runs() if run != BERT}
    everything = pl.concat(courses.values())
    found = Measurements(context)
    teachers = lessons.number(context, BERT)  # of all tasks
    compare(found, {run: lessons.of_teachers(lessons.finals(own), teachers) for run, own in courses.items()})
    return {
        "arms": lessons.averages(context, everything),
        "models": lessons.models(context, everything),
        "comparisons": found.table(),
    }


def compare(found: Measurements, finals: Finals) -> None:
    """Compare progressive students with one-shot ones of the same run, and what they gain between horizons."""
    for (size, place, arm), comparison in BY_TAU.items():
        final = finals.get(ALL_PUPILS[size]["cfg3b"][place - 1], {})
        lessons.add(found, comparison, final.get("half"), final.get(arm))
    for (size, kind), comparison in ON_OTHERS.items():
        final = finals.get(ALL_PUPILS[size][kind][0], {})
        lessons.add(found, comparison, final.get("half"), final.get("os"))
    for (size, kind), comparison in SHRINKING.items():
        lessons.add(found, comparison, *(_gain(final) for final in _ends(finals, ALL_PUPILS[size][kind])))
    of_cfg3i = OTHER_PUPILS["cfg3i"]
    lessons.add(found, CFG3I_END, finals.get(of_cfg3i[-1], {}).get("half"))
    lessons.add(found, CFG3I_SOON, *(final.get("half") for final in _ends(finals, of_cfg3i)))


def _ends(finals: Finals, runs: tuple[str, ...]) -> tuple[dict[str, lessons.Floats], dict[str, lessons.Floats]]:
    """Return the accuracies at the shortest and at the longest horizon that was trained; nothing of a single one."""
    known = [finals[run] for run in runs if run in finals]
    return (known[0], known[-1]) if len(known) > 1 else ({}, {})


def _gain(final: dict[str, lessons.Floats]) -> lessons.Floats | None:
    """Return what progressive students gain over one-shot ones, as a share of the accuracy of these."""
    return (final["half"] - final["os"]) / np.maximum(final["os"], 1e-12) if final else None
