"""What trained models of this study read and predict, for whoever uses one (`pipeline.load_run`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import SandglassError
from pipeline.languages import flipflop as language

SYMBOLS = ("-", "0", "1")  # of the automaton: no-op, and what is written


def encode(entry: dict[str, Any], *strings: str) -> NDArray[np.int64]:
    """Return (B, T) what the model of a run reads for strings such as ``w1i0r``, of the automaton ``1--0-``.

    Raises SandglassError for a symbol outside the alphabet, or strings of several lengths.

    >>> encode({"task": "strings", "symbols": 2}, "w1r").tolist()
    [[0, 4, 1]]
    """
    if entry["task"] == "stories":
        rows_of_words = [language.words_of(text) for text in strings]
        if len({len(row) for row in rows_of_words}) > 1:
            raise SandglassError("inputs have different lengths")
        return np.array(rows_of_words, np.int64)
    known = labels(entry, 0) if entry["task"] == "strings" else list(SYMBOLS)
    rows = [text.replace(" ", "") for text in strings]
    if bad := sorted({letter for row in rows for letter in row} - {*known}):
        raise SandglassError(f"symbol {bad[0]!r} is not in the alphabet: {', '.join(known)}")
    if len({len(row) for row in rows}) > 1:
        raise SandglassError("inputs have different lengths")
    return np.array([[known.index(letter) for letter in row] for row in rows], np.int64)


def labels(entry: dict[str, Any], outputs: int) -> list[str]:
    """Return what each output stands for: tokens, or states of the automaton.

    >>> labels({"task": "automaton"}, 2)
    ['0', '1']
    """
    if entry["task"] == "automaton":
        return ["0", "1"]
    if entry["task"] == "stories":
        return list(language.WORDS)
    return [*language.NAMES[: language.DATA], *map(str, range(entry["symbols"]))]
