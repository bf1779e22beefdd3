"""EXP-PE: sinusoidal and linear positions at the training length and at twice that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.automata.measures import contrasts
from pipeline.studies.automata.measures.arms import arms, sequences
from pipeline.studies.automata.measures.contrasts import Floats, difference
from pipeline.studies.automata.names import POSITIONS


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return accuracies by position code and length, and the contrasts that claims need."""
    names = {run: key for key, run in POSITIONS.items()}
    rows: list[dict[str, Any]] = []
    cells: dict[tuple[str, str, int], Floats] = {}
    with one_thread():
        for run, arm in arms(context, list(names)).items():
            task, position = names[run]
            T = int(sequences(context, arm)["length"][0])
            probes = sequences(context, arm, "length")
            for factor in (1, 2):
                part = probes.filter(length=factor * T)
                accuracy, _ = arm.accuracy(part)
                cells[task, position, factor] = accuracy
                rows += [
                    arm.row_keys()
                    | {
                        "position": position,
                        "length": factor * T,
                        "trained": T,
                        "replica": replica,
                        "accuracy": each,
                        "sequences": part.height,
                    }
                    for replica, each in zip(arm.replicas, accuracy, strict=True)
                ]
    return {
        "positions": contrasts.table(rows),
        "contrasts": contrasts.compared(_contrasts(context, cells)),
    }


def _contrasts(context: Inputs, cells: dict[tuple[str, str, int], Floats]) -> Iterator[dict[str, Any]]:
    for task in ("grid9", "abab2"):
        accuracies = {key[1:]: value for key, value in cells.items() if key[0] == task}
        if len(accuracies) < 4:
            continue
        n = min(map(len, accuracies.values()))
        cut = {key: value[:n] for key, value in accuracies.items()}
        for factor in (1, 2):
            name = f"{task} sinusoidal - linear at {'T' if factor == 1 else '2T'}"
            yield difference(context, name, cut["sin", factor], cut["linear", factor])
        gap = {p: cut[p, 1] - cut[p, 2] for p in ("sin", "linear")}
        yield difference(context, f"{task} gap sinusoidal - gap linear", gap["sin"], gap["linear"])
