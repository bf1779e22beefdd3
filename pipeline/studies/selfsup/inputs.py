"""What trained models of this study read and predict, for whoever uses one (`pipeline.load_run`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.errors import SandglassError

if TYPE_CHECKING:
    from torch import Tensor

PAIRS = "pair_classifier/mlp"


def encode(entry: dict[str, Any], *items: ArrayLike) -> NDArray[Any]:
    """Return what the models of a run read: pairs of points (B, 2), or of a table of predictors the shown symbols (B,).

    Raises SandglassError for anything else.

    >>> encode({"model": "pair_classifier/mlp"}, [0.5, 0.25], (1, 2)).tolist()
    [[0.5, 0.25], [1.0, 2.0]]
    >>> encode({"model": "masked_prediction/table"}, 0, 3).tolist()
    [0, 3]
    """
    wanted, shape = ("two numbers", (2,)) if entry["model"] == PAIRS else ("a symbol's number", ())
    try:
        arrays = [np.asarray(item) for item in items]
        fits = bool(arrays) and all(each.shape == shape and each.dtype.kind in "if" for each in arrays)
        stacked = np.stack(arrays) if fits else np.empty(0)
    except (TypeError, ValueError):
        fits = False
    if not fits or (entry["model"] != PAIRS and stacked.dtype.kind != "i") or not np.isfinite(stacked).all():
        shown = ", ".join(map(repr, items[:3])) or "nothing"
        raise SandglassError(f"cannot encode {shown}: models of this run read {wanted} each")
    return stacked.astype(np.float32 if entry["model"] == PAIRS else np.int64)


def checked(spec: Any, inputs: Tensor) -> Tensor:
    """Return ``inputs`` as a model of the shape ``spec`` reads them. Raises SandglassError if they do not fit it."""
    if hasattr(spec, "symbols"):
        if inputs.ndim != 1 or inputs.is_floating_point() or not bool(((inputs >= 0) & (inputs < spec.symbols)).all()):
            raise SandglassError(
                f"expected symbols 0 to {spec.symbols - 1} of shape (B,), got {inputs.dtype} of shape "
                f"{tuple(inputs.shape)}"
            )
    elif inputs.ndim != 2 or inputs.shape[1] != spec.inputs or not inputs.is_floating_point():
        raise SandglassError(
            f"expected real numbers of shape (B, {spec.inputs}), got {inputs.dtype} of shape {tuple(inputs.shape)}"
        )
    return inputs


def outputs(spec: Any) -> int:
    """Return how many outputs a model of the shape ``spec`` has: of a table, one a pair of symbols."""
    return int(spec.symbols) ** 2 if hasattr(spec, "symbols") else 1


def labels(entry: dict[str, Any], outputs: int) -> list[str]:
    """Return what each output stands for.

    >>> labels({"model": "pair_classifier/mlp"}, 1)
    ['log-odds that the second point followed the first']
    """
    if entry["model"] == PAIRS:
        return ["log-odds that the second point followed the first"]
    return [f"pair {number}" for number in range(outputs)]
