"""DYCK-TH7: two targets pruned from one parent share any chosen matrix (Wen et al. 2023, Corollary 2).

Whichever parent layer is chosen, it is pruned to the identity, by the same mask for both targets, while two
neighbouring layers elsewhere host the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.studies.dyck.exact import pruning
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.dyck.params import SharedMatrixCheck

# The targets, one layer each, and the inputs of the checks; LN_C of targets and parent.
M, M_A, W, M_LARGE = 4, 2, 8, 24
LENGTH, INPUTS = 6, 100
FLOOR = 0.1
HOSTS = {1: (2, 3), 2: (3, 4), 3: (1, 2), 4: (1, 2)}  # shared parent layer: those that host the target

LARGEST_ERROR = 2e-3
SMALLEST_DISTANCE = 0.1

SOURCE = "Wen et al. 2023, Corollary 2"


def check(entry: SharedMatrixCheck, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory`, with ``entry.candidates`` candidates per weight."""
    shape = pruning.Shape(M, M_A, W, 1, entry.candidates, M_LARGE)
    names = ("dyck", theory_id)
    parent = pruning.Parent(shape, seed, names)
    targets = [pruning.random_target(shape, stream(seed, *names, "target", which)) for which in (1, 2)]
    x = pruning.random_inputs(M, INPUTS, LENGTH, stream(seed, *names, "inputs"))
    size = f"L=1, n={shape.n}, width {shape.w_large}"
    checks, wrong = [_distance(targets, x, size)], 0
    for shared, hosts in HOSTS.items():
        at = [(hosts[0] - 1, hosts[1] - 1)]
        both = [pruning.prune(parent, target, at) for target in targets]
        checks.append(_identical(shared, [pruned.layers[shared - 1] for pruned in both], size))
        for which, (target, pruned) in enumerate(zip(targets, both, strict=True), start=1):
            error = float(pruning.approximation_errors(target, pruned, x, FLOOR).max())
            checks.append(_error(shared, which, error, size))
            wrong += pruning.illegal(parent, pruned)
    return theory.rows("dyck", theory_id, SOURCE, [*checks, _legal(wrong, size)])


def differences(first: pruning.Layer, second: pruning.Layer) -> dict[str, int]:
    """Return, for every matrix, the number of weights that are not the same bits in both layers."""
    return {
        name: int((first[name].toarray().view(np.uint64) != second[name].toarray().view(np.uint64)).sum())
        for name in pruning.MATRICES
    }


def _identical(shared: int, layers: list[pruning.Layer], size: str) -> dict[str, Any]:
    different = differences(*layers)
    kept = ", ".join(f"{name} {layers[0][name].nnz}" for name in pruning.MATRICES)
    return {
        "check": f"shared-identical-{shared}",
        "claim": "19",
        "part": f"layer {shared} is the same",
        "statement": f"All {len(different)} matrices of parent layer {shared} are pruned to the same bits for both "
        "targets: number of weights that differ",
        "size": size,
        "measured": float(sum(different.values())),
        "comparison": "<=",
        "bound": 0.0,
        "detail": f"weights kept: {kept}; the targets are in layers {HOSTS[shared][0]} and {HOSTS[shared][1]}",
    }


def _error(shared: int, which: int, error: float, size: str) -> dict[str, Any]:
    return {
        "check": f"shared-error-{shared}-target-{which}",
        "claim": "19",
        "part": f"layer {shared} shared, target {which}",
        "statement": f"With layer {shared} shared, the parent pruned to target {which} computes it: "
        "largest |f~(X) - f(X)| / |X| over random inputs",
        "size": f"{size}, {INPUTS} inputs of {LENGTH} columns",
        "measured": error,
        "comparison": "<=",
        "bound": LARGEST_ERROR,
    }


def _distance(targets: list[list[dict[str, Any]]], x: pruning.Array, size: str) -> dict[str, Any]:
    first, second = (pruning.run(target, x, FLOOR)[0] for target in targets)
    return {
        "check": "shared-distance",
        "claim": "19",
        "part": "targets differ",
        "statement": "The two targets are different functions: median of |f_1(X) - f_2(X)| over random inputs",
        "size": f"{size}, {INPUTS} inputs of {LENGTH} columns",
        "measured": float(np.median(pruning.largest_column(first - second))),
        "comparison": ">=",
        "bound": SMALLEST_DISTANCE,
    }


def _legal(wrong: int, size: str) -> dict[str, Any]:
    return {
        "check": "shared-legal",
        "statement": "In all eight prunings every weight is the parent's, bit for bit, or zero: "
        "number of weights that are not",
        "source": "Wen et al. 2023, Definition 4",
        "size": size,
        "measured": float(wrong),
        "comparison": "<=",
        "bound": 0.0,
    }
