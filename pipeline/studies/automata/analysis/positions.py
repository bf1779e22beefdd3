"""EXP-PE: sinusoidal and linear positions at the training length and at twice that."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.automata.comparisons import ABAB_LOST, ABAB_ONCE, GRID_LOST, GRID_TWICE
from pipeline.studies.automata.measures.arms import Arm, Sample, arms, compare, frame, learned, sequences
from pipeline.studies.automata.names import POSITIONS


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return accuracies by position code and length, and the comparisons of the codes."""
    rows: list[dict[str, Any]] = []
    at: dict[str, dict[str, Sample]] = {"once": {}, "twice": {}, "lost": {}}
    with one_thread():
        for (_, position), arm in _chosen(context).items():
            T = int(sequences(context, arm)["length"][0])
            probes = sequences(context, arm, "length")
            for factor, name in ((1, "once"), (2, "twice")):
                part = probes.filter(length=factor * T)
                accuracy, _ = arm.accuracy(part)
                at[name][arm.run] = Sample(arm, accuracy)
                about = arm.row_keys() | {"position": position, "length": factor * T, "trained": T}
                rows += [
                    about | {"replica": replica, "accuracy": each, "sequences": part.height, "learned": bool(solves)}
                    for replica, each, solves in zip(arm.replicas, accuracy, learned(context, arm), strict=True)
                ]
            at["lost"][arm.run] = Sample(arm, at["once"][arm.run].values - at["twice"][arm.run].values)
    found = Measurements(context)
    compare(context, found, GRID_TWICE, at["twice"])
    compare(context, found, GRID_LOST, at["lost"])
    compare(context, found, ABAB_ONCE, at["once"])
    compare(context, found, ABAB_LOST, at["lost"])
    return {"positions": frame(rows), "comparisons": found.table()}


def _chosen(context: Inputs) -> dict[tuple[str, str], Arm]:
    """Return the models by task and code: of sinusoidal ones those that are as deep as the linear ones."""
    known = arms(context, [run for runs in POSITIONS.values() for run in runs])
    chosen: dict[tuple[str, str], Arm] = {}
    for task, position in POSITIONS:
        linear = known.get(POSITIONS[task, "linear"][0])
        for arm in (known[run] for run in POSITIONS[task, position] if run in known):
            if linear is None or arm.depth == linear.depth:
                chosen.setdefault((task, position), arm)
    return chosen
