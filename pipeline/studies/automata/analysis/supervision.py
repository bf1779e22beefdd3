"""EXP-INDIR and EXP-INCOMP: states seen through a map, and labels that are hidden."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.languages import automata
from pipeline.languages.automata import OBSERVED
from pipeline.studies.automata.measures import contrasts, published
from pipeline.studies.automata.measures.arms import Arm, arms, measured
from pipeline.studies.automata.measures.contrasts import Floats, contrast, difference

Cells = dict[tuple[str, str, float], Floats]  # by task, arm and share of labels


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return both tables of supervision, and the contrasts that claims need."""
    with one_thread():
        known = {
            name: arm
            for name, arm in arms(context).items()
            if arm.entry["experiment"] in ("indirect", "incomplete")
        }
        tested, runs = measured(context, known)
    lengths = {name: int(context.dataset(arm.entry["dataset"])["length"][0]) for name, arm in known.items()}
    seen = {name: arm for name, arm in known.items() if arm.entry["experiment"] == "indirect"}
    hidden = {name: arm for name, arm in known.items() if name not in seen}
    rows = [_indirect(arm, tested[name][0], lengths[name]) for name, arm in seen.items()]
    incomplete = [row for name, arm in hidden.items() for row in _incomplete(arm, tested[name][0])]
    cells = {(arm.task.name, arm.arm, arm.entry["revealed"]): tested[name][0] for name, arm in hidden.items()}
    indirect = {(arm.task.name, arm.arm): tested[name][0] for name, arm in seen.items()}
    comparisons = [
        *_hidden(context, cells),
        *_seen(context, indirect, {arm.task.name: lengths[name] for name, arm in seen.items()}),
    ]
    return {
        "runs": runs,
        "indirect": contrasts.table(rows),
        "incomplete": contrasts.table(incomplete),
        "contrasts": contrasts.compared(comparisons),
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
        "published": published.INDIRECT[task],
    }


def _incomplete(arm: Arm, accuracy: Floats) -> Iterator[dict[str, Any]]:
    for replica, value in zip(arm.replicas, accuracy, strict=True):
        yield {
            "task": arm.task.name,
            "arm": arm.arm,
            "revealed": arm.entry["revealed"],
            "replica": replica,
            "accuracy": value,
        }


def _hidden(context: Inputs, cells: Cells) -> Iterator[dict[str, Any]]:
    for task in sorted({task for task, _, _ in cells}):
        ends = [cells.get((task, "gpt", share)) for share in (1.0, 0.1)]
        if ends[0] is not None and ends[1] is not None:
            yield difference(context, f"{task} GPT, all labels - a tenth", ends[0], ends[1])


def _seen(
    context: Inputs, cells: dict[tuple[str, str], Floats], lengths: dict[str, int]
) -> Iterator[dict[str, Any]]:
    """Yield for each task which part of the gap between a constant and 1 is closed, and how far the LSTM is ahead.

    The constant says the best label at each position; where labels follow from positions (abab (1)), one at all.
    """
    for task in OBSERVED:
        for arm in ("gpt", "lstm"):
            if (task, arm) in cells:
                base = automata.constant_accuracy(task, lengths[task])
                if base == 1:
                    base = automata.majority_accuracy(task, lengths[task])
                closed = (cells[task, arm] - base) / (1 - base)
                yield contrast(context, f"{task} {arm}, gap closed", _mean, closed)
        if (task, "gpt") in cells and (task, "lstm") in cells:
            yield difference(context, f"{task} LSTM - GPT", cells[task, "lstm"], cells[task, "gpt"])


def _mean(sample: Floats, axis: int = -1) -> Floats:
    return np.asarray(np.mean(sample, axis=axis))
