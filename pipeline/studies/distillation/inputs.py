"""What trained models of this study read and predict, for whoever uses one (`pipeline.load_run`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.languages import parity, pcfg
from pipeline.models.distillation import mlp

SHOWN = {"1": 0, "2": 1, "3": 2, "_": pcfg.MASK}


def encode(entry: dict[str, Any], *strings: str) -> NDArray[Any]:
    """Return (B, d) what the models of a run read for strings of signs such as ``+-+``: signs for an MLP, ids for a
    Transformer. For sentences of a grammar such as ``12_3``, where ``_`` is the mask, they are ids behind BOS. All
    models of a replica read the same, and outputs are (models, B, classes), of sentences (models, B, T, ids).

    Raises SandglassError for another letter, or strings of several lengths.

    >>> encode({"model": "distillation/mlp", "language": "parity"}, "+-").tolist()
    [[1.0, -1.0]]
    >>> encode({"model": "distillation/transformer", "language": "pcfg"}, "12_").tolist()
    [[3, 0, 1, 6]]
    """
    sentences = entry["language"] == "pcfg"
    known = SHOWN if sentences else {"+": 0, "-": 1}
    if bad := sorted({letter for text in strings for letter in text} - {*known}):
        raise SandglassError(f"symbol {bad[0]!r} is not in the alphabet: {', '.join(known)}")
    if len({len(text) for text in strings}) > 1:
        raise SandglassError("inputs have different lengths")
    if sentences:
        return np.array([[pcfg.BOS, *(SHOWN[letter] for letter in text)] for text in strings], np.int64)
    bits = np.array([[int(letter == "-") for letter in text] for text in strings], np.uint8)
    return parity.signs(bits) if entry["model"] == "distillation/mlp" else bits.astype(np.int64)


def checked(spec: Any, inputs: Tensor) -> Tensor:
    """Return inputs (B, d) with the axis of the models side by side, (1, B, d); sentences may be shorter than d.

    Raises SandglassError if they are not what the models read.
    """
    length, real = (spec.inputs, True) if isinstance(spec, mlp.Spec) else (spec.t_max, False)
    sentences = not real and not spec.last
    fits = inputs.ndim == 2 and (0 < inputs.shape[1] <= length if sentences else inputs.shape[1] == length)
    if not fits or inputs.is_floating_point() != real:
        kind, most = "real numbers" if real else "integers", "at most " if sentences else ""
        raise SandglassError(
            f"expected {kind} of shape (B, {most}{length}), got {inputs.dtype} of shape {tuple(inputs.shape)}"
        )
    return inputs[None]


def labels(entry: dict[str, Any], outputs: int) -> list[str]:
    """Return what each output stands for: of two, the sign of the product; else leaves of the tree, or ids of tokens.

    >>> labels({"language": "parity"}, 2)
    ['+', '-']
    """
    if entry["language"] == "pcfg":
        return ["1", "2", "3", "BOS", "EOS", "PAD", "MASK", "unused"]
    return ["+", "-"] if outputs == 2 else [f"leaf {number}" for number in range(outputs)]
