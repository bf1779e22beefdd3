"""What trained models of this study read and predict, for whoever uses one (`pipeline.load_run`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.errors import SandglassError

if TYPE_CHECKING:
    from torch import Tensor


def encode(entry: dict[str, Any], *documents: str) -> NDArray[np.int64]:
    """Return (B, N) the ids of documents: numbers of words separated by spaces, 0 for the mask, as many in each.

    Raises SandglassError for anything else.

    >>> encode({}, "0 3 3 7").tolist()
    [[0, 3, 3, 7]]
    """
    try:
        return np.array([[int(word) for word in text.split()] for text in documents], np.int64)
    except ValueError:
        shown = ", ".join(map(repr, documents[:3]))
        raise SandglassError(f"cannot encode {shown}: expected numbers, as many in each document") from None


def checked(spec: Any, ids: Tensor) -> Tensor:
    """Return (B, V) how often each id is in documents ``ids`` (B, N): what a model of one layer reads to answer a
    masked position; for encoders, the ids.

    Raises SandglassError for ids that are none.
    """
    if ids.ndim != 2 or ids.is_floating_point() or ids.dtype == torch.bool:
        raise SandglassError(f"expected ids (B, N) of whole numbers, got {ids.dtype} of shape {tuple(ids.shape)}")
    if not ids.numel() or int(ids.min()) < 0 or int(ids.max()) >= spec.symbols:
        raise SandglassError(f"expected ids from 0 to {spec.symbols - 1}, one or more of them")
    if hasattr(spec, "layers"):
        return ids.long()
    return torch.nn.functional.one_hot(ids.long(), spec.symbols).sum(1).float()


def labels(entry: dict[str, Any], outputs: int) -> list[str]:
    """Return what each output stands for; of stand-ins for natural language the first four ids are special.

    >>> labels({}, 3)
    ['mask', 'word 1', 'word 2']
    """
    if entry.get("kind") in ("reader", "encoder"):
        return ["pad", "mask", "start", "end", *(f"word {number}" for number in range(1, outputs - 3))]
    return ["mask", *(f"word {number}" for number in range(1, outputs))]
