"""EXP-STAB: dropout against none, and moving averages of weights against the weights, at one depth."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.automata.comparisons import AVERAGE, DECAY, DROPOUT
from pipeline.studies.automata.measures.arms import Sample, arms, compare, frame, learned, sequences


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return accuracies by dropout and by average of weights, at the depth of the models that train with dropout.

    Models without dropout are those of the depth experiment.
    """
    at: dict[float, dict[str, Sample]] = {0.0: {}}  # by decay, 0 for the weights themselves
    rows: list[dict[str, Any]] = []
    with one_thread():
        every = {name: arm for name, arm in arms(context).items() if arm.arm == "gpt"}
        depths = {arm.depth for arm in every.values() if arm.entry["dropout"]}
        for name, arm in every.items():
            if arm.depth not in depths:
                continue
            tested = sequences(context, arm)
            for decay in (0.0, *arm.entry["averages"]):
                accuracy = (arm.averaged(decay) if decay else arm).accuracy(tested)[0]
                at.setdefault(decay, {})[name] = Sample(arm, accuracy)
                same = {"task": arm.task.name, "depth": arm.depth, "dropout": arm.entry["dropout"]}
                rows += [
                    same | {"average": decay, "replica": replica, "accuracy": value, "learned": bool(solves)}
                    for replica, value, solves in zip(arm.replicas, accuracy, learned(context, arm), strict=True)
                ]
    found = Measurements(context)
    for comparison in DROPOUT.values():
        compare(context, found, comparison, at[0.0])
    for comparison in AVERAGE.values():
        compare(context, found, comparison, at.get(0.9, {}), at[0.0])
    for comparison in DECAY.values():
        compare(context, found, comparison, at.get(0.95, {}), at.get(0.85, {}))
    return {"stabilisers": frame(rows), "comparisons": found.table()}
