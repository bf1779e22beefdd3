"""EXP-DEPTH, EXP-INSTAB, EXP-EVALSD: accuracy by task and depth, its spread over models, and noise of evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import automata
from pipeline.languages.automata import TASKS
from pipeline.studies.automata.measures import contrasts, published
from pipeline.studies.automata.measures.arms import Arm, arms, measured
from pipeline.studies.automata.measures.contrasts import Floats, contrast, difference, trend
from pipeline.studies.automata.names import C2, MAXIMUM, MEDIAN, shown

CURVES = ("c2", "s5")  # Figure 3.5 b, c
SAMPLES, SIZE = 10, {"smoke": 8, "quick": 512, "paper": 2048}

Cells = dict[tuple[str, int], Floats]  # accuracy of each model, by task and depth


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return the tables of the depth experiment."""
    with one_thread():
        known = {name: arm for name, arm in arms(context).items() if _is_cell(name, arm)}
        tested, runs = measured(context, known)
        noise = _noise(context, known)
    cells: Cells = {(arm.task.name, arm.depth or 0): tested[name][0] for name, arm in known.items()}
    lengths = {arm.task.name: context.dataset(arm.entry["dataset"])["length"][0] for arm in known.values()}
    curves = [_curve(context, arm) for arm in known.values() if arm.task.name in CURVES]
    return {
        "runs": runs,
        "depth_grid": _grid(context, cells, lengths),
        "min_depth": _min_depth(context, cells),
        "published_cells": published.cells(),
        "curves": pl.concat(curves) if curves else None,
        "contrasts": contrasts.compared(_contrasts(context, cells, noise)),
        "eval_noise": contrasts.table(noise),
    }


def _is_cell(name: str, arm: Arm) -> bool:
    """Whether a run is a cell of the grid: those beside it have other arms."""
    return (
        arm.arm == "gpt"
        and arm.entry["dropout"] == 0
        and (arm.entry["experiment"] == "depth" or name == C2["gpt"])
    )


def _grid(context: Inputs, cells: Cells, lengths: dict[str, int]) -> pl.DataFrame | None:
    printed = {
        (row["figure"], row["task"], row["depth"]): row["value"]
        for row in published.cells().iter_rows(named=True)
    }
    rows = [
        {
            "task": task,
            "depth": depth,
            "n": len(accuracies),
            "acc_max": accuracies.max(),
            "acc_median": float(np.median(accuracies)),
            "acc_iqr": float(np.subtract(*np.quantile(accuracies, [0.75, 0.25]))),
            "solved": float((accuracies >= context.settings.solved).mean()),
            "constant": automata.constant_accuracy(task, lengths[task]),
            "published_max": printed.get((MAXIMUM, task, depth)),
            "published_median": printed.get((MEDIAN, task, depth)),
        }
        for (task, depth), accuracies in cells.items()
    ]
    return contrasts.table(rows)


def _min_depth(context: Inputs, cells: Cells) -> pl.DataFrame | None:
    rows = []
    printed = published.minimum_depths()
    for task in TASKS:
        depths = sorted(depth for name, depth in cells if name == task)
        if depths:
            enough = [d for d in depths if cells[task, d].max() >= context.settings.solved]
            rows.append(
                {
                    "task": task,
                    "name": shown(task),
                    "threshold": context.settings.solved,
                    "depth": enough[0] if enough else None,
                    "deepest": depths[-1],
                    "published_depth": printed[task][0],
                    "is_upper_bound": printed[task][1],
                }
            )
    return contrasts.table(rows)


def _curve(context: Inputs, arm: Arm) -> pl.DataFrame:
    header = context.run_header(arm.run)
    models = [m for m, lr in enumerate(header["lr"]) if lr == arm.lr]
    columns = [pl.lit(value).alias(name) for name, value in arm.row_keys().items()]
    frame = context.curves(arm.run).filter(pl.col("replica").is_in(models)).drop("accuracy")
    streams = pl.col("replica").replace_strict({m: header["streams"][m] for m in models}).alias("replica")
    return frame.rename({"loss": "train_loss", "accuracy_held": "accuracy"}).select(
        *columns, streams, "step", "train_loss", "accuracy"
    )


def _noise(context: Inputs, known: dict[str, Arm]) -> list[dict[str, Any]]:
    """Return the accuracy of the best C2 model on several samples of test sequences."""
    arm = known.get(C2["gpt"])
    if arm is None:
        return []
    best, rows = int(np.argmax(arm.validation)), []
    length, size = int(context.dataset(arm.entry["dataset"])["length"][0]), SIZE[context.scale]
    for k in range(SAMPLES):
        rng = stream(context.seed, context.study, context.experiment, "noise", k)
        tokens, states = automata.sample("c2", length, size, rng)
        right = arm.answers(tokens)[best] == states
        rows.append(
            {
                "run": arm.run,
                "replica": arm.replicas[best],
                "sample": k,
                "sequences": size,
                "accuracy": float(right.mean()),
            }
        )
    return rows


def _contrasts(context: Inputs, cells: Cells, noise: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for task in TASKS:
        depths = sorted(depth for name, depth in cells if name == task)
        for depth in depths:
            yield contrast(context, f"accuracy {task} L={depth}", stats.mean, cells[task, depth])
        for low, high in ((1, 2), (1, 4)):
            if {low, high} <= {*depths}:
                yield difference(context, f"{task} L={high} - L={low}", cells[task, high], cells[task, low])
        if len(depths) > 2:
            yield trend(context, f"{task} spearman", {depth: cells[task, depth] for depth in depths})
    pairs = (("dyck42", "d8"), ("grid9", "d8"), ("d8", "q8"))
    for depth in (2, 4):
        for easy, hard in pairs:
            if (easy, depth) in cells and (hard, depth) in cells:
                yield difference(
                    context, f"{easy} - {hard} L={depth}", cells[easy, depth], cells[hard, depth]
                )
    if noise:
        spread = float(np.std([row["accuracy"] for row in noise], ddof=1))
        yield {"contrast": "evaluation noise", "value": spread, "lo": None, "hi": None, "n": len(noise)}
