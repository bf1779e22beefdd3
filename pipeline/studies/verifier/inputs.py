"""What trained models of this study read and predict, for whoever uses one (`pipeline.load_run`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import SandglassError
from pipeline.languages import dyck_strings as language
from pipeline.languages import test_cases


def encode(entry: dict[str, Any], *strings: str) -> NDArray[np.int64]:
    """Return (B, T) what the model of a run reads for strings of brackets, or for documents of test cases as words
    between spaces; B, which begins either, may be left out.

    Raises SandglassError for other signs, and for several lengths.

    >>> encode({"task": "strings"}, "([", "B()").tolist()
    [[4, 0, 1], [4, 0, 2]]
    >>> test_cases.text(encode({"task": "cases"}, "def f ADD NL")[0])
    'B def f ADD NL'
    """
    cases = entry["task"] == "cases"
    try:
        whole = [text if text.startswith("B") else "B" + " " * cases + text for text in strings]
        return np.array([test_cases.encode(text) if cases else language.parse(text) for text in whole], np.int64)
    except (KeyError, ValueError):
        shown = ", ".join(map(repr, strings[:3]))
        expected = "words of test cases between spaces" if cases else "brackets ()[], and E at an end"
        raise SandglassError(f"cannot encode {shown}: expected {expected}, of one number") from None


def labels(entry: dict[str, Any], outputs: int) -> list[str]:
    """Return what each output stands for.

    >>> labels({"task": "strings"}, 4)
    ['(', '[', ')', ']']
    """
    return list((test_cases.SIGNS if entry["task"] == "cases" else language.SIGNS)[:outputs])
