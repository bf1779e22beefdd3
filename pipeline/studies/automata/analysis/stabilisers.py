"""EXP-STAB: dropout against none, and moving averages of weights against the weights, at one depth."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.automata.measures import contrasts
from pipeline.studies.automata.measures.arms import Arm, arms, sequences
from pipeline.studies.automata.measures.contrasts import Floats, difference


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return accuracies by dropout and by average of weights, at the depth of the models that train with dropout.

    Models without dropout are those of the depth experiment.
    """
    cells: dict[tuple[str, float, float], Floats] = {}
    rows: list[dict[str, Any]] = []
    with one_thread():
        every = {name: arm for name, arm in arms(context).items() if arm.arm == "gpt"}
        depths = {arm.depth for arm in every.values() if arm.entry["dropout"]}
        for arm in (arm for arm in every.values() if arm.depth in depths):
            tested = sequences(context, arm)
            for decay in (0.0, *arm.entry["averages"]):
                accuracy = (arm.averaged(decay) if decay else arm).accuracy(tested)[0]
                cells[arm.task.name, arm.entry["dropout"], decay] = accuracy
                rows += _rows(arm, decay, accuracy)
    differences = [
        difference(context, f"{task} dropout {rate:g} - none", cells[task, rate, 0.0], cells[task, 0.0, 0.0])
        for task, rate, decay in sorted(cells)
        if rate and not decay and (task, 0.0, 0.0) in cells
    ] + [
        difference(
            context, f"{task} average {decay:g} - none", cells[task, 0.0, decay], cells[task, 0.0, 0.0]
        )
        for task, rate, decay in sorted(cells)
        if decay and not rate
    ]
    for task in sorted({task for task, rate, decay in cells if decay and not rate}):
        decays = sorted(decay for name, rate, decay in cells if name == task and decay and not rate)
        differences.append(
            difference(
                context,
                f"{task} average {decays[-1]:g} - average {decays[0]:g}",
                cells[task, 0.0, decays[-1]],
                cells[task, 0.0, decays[0]],
            )
        )
    return {"stabilisers": contrasts.table(rows), "contrasts": contrasts.compared(differences)}


def _rows(arm: Arm, decay: float, accuracy: Floats) -> list[dict[str, Any]]:
    same = {"task": arm.task.name, "depth": arm.depth, "dropout": arm.entry["dropout"], "average": decay}
    return [
        same | {"replica": replica, "accuracy": value}
        for replica, value in zip(arm.replicas, accuracy, strict=True)
    ]
