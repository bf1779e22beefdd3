"""What trained models of this study read and predict, for whoever uses one (`pipeline.load_run`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import SandglassError
from pipeline.languages import dyck_strings as language


def encode(entry: dict[str, Any], *strings: str) -> NDArray[np.int64]:
    """Return (B, T) what the model of a run reads for strings of brackets; B, which begins a string, may be left out.

    Raises SandglassError for other signs, and for strings of several lengths.

    >>> encode({}, "([", "B()").tolist()
    [[4, 0, 1], [4, 0, 2]]
    """
    try:
        rows = [language.parse(text if text.startswith("B") else f"B{text}") for text in strings]
        return np.array(rows, np.int64)
    except ValueError:
        shown = ", ".join(map(repr, strings[:3]))
        raise SandglassError(f"cannot encode {shown}: expected brackets ()[] of one number, and E at an end") from None


def labels(entry: dict[str, Any], outputs: int) -> list[str]:
    """Return what each output stands for.

    >>> labels({}, 4)
    ['(', '[', ')', ']']
    """
    return list(language.SIGNS[:outputs])
