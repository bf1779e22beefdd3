"""Hidden Markov models as analyses read them from a dataset."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.languages.hmm import Floats

Models = dict[str, tuple[Floats, Floats]]  # O or M, and T, by the id of the model


def read(frame: pl.DataFrame) -> Models:
    """Return the models of a dataset (`schemas.selfsup.hmm.HmmParam`), in its order."""
    found: dict[str, list[Floats]] = {}
    for (name, _), part in frame.group_by(["instance_id", "matrix"], maintain_order=True):
        rows, columns = part["row"].to_numpy(), part["col"].to_numpy()
        matrix = np.empty((rows.max() + 1, columns.max() + 1))
        matrix[rows, columns] = part["value"].to_numpy()
        found.setdefault(str(name), []).append(matrix)
    return {name: (first, transition) for name, (first, transition) in found.items()}


def by_shape(models: Models) -> dict[tuple[int, int], tuple[list[str], Floats, Floats]]:
    """Return ids, O (n, d, k) and T (n, k, k) of the models of each shape (d, k)."""
    groups: dict[tuple[int, int], list[str]] = {}
    for name, (first, _) in models.items():
        groups.setdefault((first.shape[0], first.shape[1]), []).append(name)
    return {
        shape: (names, np.array([models[name][0] for name in names]), np.array([models[name][1] for name in names]))
        for shape, names in groups.items()
    }
