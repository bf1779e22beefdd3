"""EXP-INDIR and EXP-INCOMP: states seen through a map, and labels that are hidden."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.languages import automata
from pipeline.studies.automata.comparisons import (
    AHEAD,
    CLOSED,
    HIDDEN,
    HIDDEN_LSTM,
    INDIRECT,
    SEEN_BEST,
    SEEN_LSTM,
    SHARES,
)
from pipeline.studies.automata.measures.arms import (
    Arm,
    Floats,
    Sample,
    arms,
    compare,
    frame,
    learned,
    measured,
    over_runs,
)
from pipeline.studies.automata.names import hidden, seen


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return both tables of supervision, and their comparisons."""
    with one_thread():
        known = {
            name: arm for name, arm in arms(context).items() if arm.entry["experiment"] in ("indirect", "incomplete")
        }
        tested, runs = measured(context, known)
    lengths = {name: int(context.dataset(arm.entry["dataset"])["length"][0]) for name, arm in known.items()}
    mapped = {name: arm for name, arm in known.items() if arm.entry["experiment"] == "indirect"}
    rows = [_indirect(arm, tested[name][0], lengths[name]) for name, arm in mapped.items()]
    incomplete = [
        row
        for name, arm in known.items()
        if name not in mapped
        for row in _incomplete(arm, tested[name][0], learned(context, arm))
    ]
    return {
        "runs": runs,
        "indirect": frame(rows),
        "incomplete": frame(incomplete),
        "comparisons": _compared(context, known, {name: accuracy for name, (accuracy, _) in tested.items()}, lengths),
    }


def _indirect(arm: Arm, accuracy: Floats, length: int) -> dict[str, Any]:
    task = arm.task.name
    return {
        "task": task,
        "arm": arm.arm,
        "n": len(accuracy),
        "acc_max": accuracy.max(),
        "acc_median": float(np.median(accuracy)),
        "constant": automata.constant_accuracy(task, length),
        "majority": automata.majority_accuracy(task, length),
        "published": INDIRECT[task],
    }


def _incomplete(arm: Arm, accuracy: Floats, solves: np.ndarray) -> Iterator[dict[str, Any]]:
    same = {"task": arm.task.name, "arm": arm.arm, "revealed": arm.entry["revealed"]}
    for replica, value, is_solved in zip(arm.replicas, accuracy, solves, strict=True):
        yield same | {"replica": replica, "accuracy": value, "learned": bool(is_solved)}


def _compared(
    context: Inputs, known: dict[str, Arm], accuracy: dict[str, Floats], lengths: dict[str, int]
) -> pl.DataFrame:
    found = Measurements(context)
    samples = {name: Sample(arm, accuracy[name]) for name, arm in known.items()}
    for comparison in HIDDEN.values():
        # What is learned from few labels is what is asked: such a model counts where its twin with all labels does.
        few = {
            name: Sample(replace(each.arm, validation=np.ones(len(each.values))), each.values)
            for name, each in samples.items()
        }
        compare(context, found, comparison, samples, few)
    for task, comparison in HIDDEN_LSTM.items():
        runs = [run for share in SHARES[task] if (run := hidden(task, "lstm", share)) in samples]
        smallest = {run: over_runs([samples[each] for each in runs], np.min) for run in runs[:1]}
        compare(context, found, comparison, smallest)
    for task, comparison in CLOSED.items():
        closed = {}
        if (run := seen(task, "gpt")) in samples:
            base = automata.constant_accuracy(task, lengths[run])
            closed[run] = Sample(known[run], (accuracy[run] - base) / (1 - base))
        compare(context, found, comparison, closed)
    for comparison in (*SEEN_BEST.values(), *SEEN_LSTM.values(), *AHEAD.values()):
        compare(context, found, comparison, samples)
    return found.table()
