"""EXP-STAB: dropout against none, at one depth."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.automata.measures import contrasts
from pipeline.studies.automata.measures.arms import arms, measured
from pipeline.studies.automata.measures.contrasts import Floats, difference


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return accuracies with and without dropout; models without it are those of the depth experiment."""
    with one_thread():
        every = arms(context)
        dropped = {name: arm for name, arm in every.items() if arm.entry["dropout"]}
        shapes = {(arm.task.name, arm.depth) for arm in dropped.values()}
        known = dropped | {
            name: arm
            for name, arm in every.items()
            if arm.arm == "gpt" and not arm.entry["dropout"] and (arm.task.name, arm.depth) in shapes
        }
        tested, _ = measured(context, known)
    rows: list[dict[str, Any]] = []
    cells: dict[tuple[str, float], Floats] = {}
    for name, arm in known.items():
        cells[arm.task.name, arm.entry["dropout"]] = tested[name][0]
        rows += [
            {
                "task": arm.task.name,
                "depth": arm.depth,
                "dropout": arm.entry["dropout"],
                "replica": replica,
                "accuracy": accuracy,
            }
            for replica, accuracy in zip(arm.replicas, tested[name][0], strict=True)
        ]
    found = [
        difference(context, f"{task} dropout {rate:g} - none", cells[task, rate], cells[task, 0.0])
        for task, rate in sorted(cells)
        if rate and (task, 0.0) in cells
    ]
    return {"stabilisers": contrasts.table(rows), "contrasts": contrasts.compared(found)}
