"""What trained models of this study read and predict, for whoever uses one (`pipeline.load_run`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import SandglassError
from pipeline.languages import automata


def encode(entry: dict[str, Any], *strings: str) -> NDArray[np.int64]:
    """Return (B, T) what the model of a run reads for inputs: symbols as `shown` by its automaton, separated by spaces.

    Raises SandglassError for a symbol outside the alphabet.

    >>> encode({"task": "grid9"}, "R R L").tolist()
    [[1, 1, 0]]
    """
    symbols = automata.task(entry["task"]).automaton.symbols
    for word in (word for text in strings for word in text.split()):
        if word not in symbols:
            raise SandglassError(f"symbol {word!r} is not in the alphabet of {entry['task']}: {', '.join(symbols)}")
    rows = [[symbols.index(word) for word in text.split()] for text in strings]
    if len({len(row) for row in rows}) > 1:
        raise SandglassError("inputs have different lengths")
    return np.array(rows, np.int64)


def labels(entry: dict[str, Any], outputs: int) -> list[str]:
    """Return what each output stands for: the states that have this label, or its number where several have.

    >>> labels({"task": "grid4"}, 4)
    ['0', '1', '2', '3']
    """
    of = automata.task(entry["task"])
    names = [[of.automaton.states[q] for q in np.flatnonzero(of.observe == label)] for label in range(outputs)]
    return [states[0] if len(states) == 1 else str(label) for label, states in enumerate(names)]
