"""What trained models of this study read and predict, for whoever uses one (`pipeline.load_run`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import SandglassError


def encode(entry: dict[str, Any], *strings: str) -> NDArray[np.int64]:
    """Return (B, T) what the model of a run reads for strings of numbers, separated by spaces.

    Raises SandglassError for anything else.

    >>> encode({}, "1 2 3").tolist()
    [[1, 2, 3]]
    """
    try:
        return np.array([[int(word) for word in text.split()] for text in strings], np.int64)
    except ValueError:
        shown = ", ".join(map(repr, strings[:3]))
        raise SandglassError(f"cannot encode {shown}: expected numbers, as many in each string") from None


def labels(entry: dict[str, Any], outputs: int) -> list[str]:
    """Return what each output stands for.

    >>> labels({}, 2)
    ['0', '1']
    """
    return [str(number) for number in range(outputs)]
