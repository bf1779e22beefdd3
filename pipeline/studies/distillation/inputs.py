"""What trained models of this study read and predict, for whoever uses one (`pipeline.load_run`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.languages import parity
from pipeline.models.distillation import mlp


def encode(entry: dict[str, Any], *strings: str) -> NDArray[Any]:
    """Return (B, d) what the models of a run read for strings of signs such as ``+-+``: signs for an MLP, ids for a
    Transformer. All models of a replica read the same, and outputs are (models, B, classes).

    Raises SandglassError for another letter, or strings of several lengths.

    >>> encode({"model": "distillation/mlp"}, "+-").tolist()
    [[1.0, -1.0]]
    """
    if bad := sorted({letter for text in strings for letter in text} - {"+", "-"}):
        raise SandglassError(f"symbol {bad[0]!r} is not in the alphabet: +, -")
    if len({len(text) for text in strings}) > 1:
        raise SandglassError("inputs have different lengths")
    bits = np.array([[int(letter == "-") for letter in text] for text in strings], np.uint8)
    return parity.signs(bits) if entry["model"] == "distillation/mlp" else bits.astype(np.int64)


def checked(spec: Any, inputs: Tensor) -> Tensor:
    """Return inputs (B, d) with the axis of the models side by side, (1, B, d).

    Raises SandglassError if they are not what the models read.
    """
    length, real = (spec.inputs, True) if isinstance(spec, mlp.Spec) else (spec.t_max, False)
    if inputs.ndim != 2 or inputs.shape[1] != length or inputs.is_floating_point() != real:
        kind = "real numbers" if real else "integers"
        raise SandglassError(
            f"expected {kind} of shape (B, {length}), got {inputs.dtype} of shape {tuple(inputs.shape)}"
        )
    return inputs[None]


def labels(entry: dict[str, Any], outputs: int) -> list[str]:
    """Return what each output stands for: of two, the sign of the product; else leaves of the tree.

    >>> labels({}, 2)
    ['+', '-']
    """
    return ["+", "-"] if outputs == 2 else [f"leaf {number}" for number in range(outputs)]
