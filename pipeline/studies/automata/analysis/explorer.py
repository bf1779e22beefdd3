"""Weights for the page's explorer: a tiny trained model and Theorem 10's network for each of four automata.

Inputs may be twice as long as those of training: what a shortcut does beyond them is to be seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.inputs import Inputs
from pipeline.languages.automata import automaton
from pipeline.models.automata import exact, gpt
from pipeline.studies.automata.measures.arms import arms, frame, sequences
from pipeline.studies.automata.names import TINY

BEYOND = 2  # times the training length


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return the weights of the best replica of each tiny model, and of the exact network for inputs twice as long."""
    rows: list[dict[str, Any]] = []
    for run, arm in arms(context, list(TINY)).items():
        best, name = int(np.argmax(arm.validation)), TINY[run]
        length = int(sequences(context, arm)["length"][0])
        accuracy = float(arm.accuracy(sequences(context, arm))[0][best])
        shape = arm.ensemble.spec
        # In the order of the shapes: that of a checkpoint's arrays is another in every process.
        parts = {key: arm.ensemble.params[key][best].numpy() for key in gpt.shapes(shape)}
        sizes = {"layers": shape.layers, "heads": shape.heads, "length": length, "most": BEYOND * length}
        sizes |= {"accuracy": accuracy}
        rows += _rows(name, "trained", parts | {key: np.array([value]) for key, value in sizes.items()})
        rows += _rows(name, "exact", dict(_exact(name, BEYOND * length)))
    return {"explorer": frame(rows)}


def _rows(name: str, kind: str, parts: dict[str, NDArray]) -> Iterator[dict[str, Any]]:
    for part, array in parts.items():
        values = [float(f"{value:.9g}") for value in np.asarray(array, float).ravel()]
        yield {"automaton": name, "kind": kind, "part": part, "shape": list(array.shape), "values": values}


def _exact(name: str, length: int) -> Iterator[tuple[str, NDArray]]:
    """Yield the parts of Theorem 10's network: its layers differ in the keys of the left head alone."""
    known = automaton(name)
    built = exact.prefix_composition(known.next, known.q0, length)
    first = built.network.layers[0]
    right = first.heads[0]
    yield from (("Q", right.Q), ("V", right.V), ("C_right", right.C), ("C_left", first.heads[1].C))
    for i, (W, b) in enumerate(first.mlp):
        yield from ((f"W{i}", W), (f"b{i}", b))
    for level, layer in enumerate(built.network.layers):
        yield f"K_left.{level}", layer.heads[1].K
    yield "kept", first.kept_mlp
    yield "q0", np.array([known.q0])
    yield "depth", np.array([len(built.network.layers)])
