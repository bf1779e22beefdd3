"""How often a verifier that knows nothing must object to send back as often as one that does (Li 2025, Table 3.12)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEAST_RATE = 1e-6
FLATTEST, STEEPEST = 0.25, 2.0  # of the curve of the numbers against the rates, both in logarithms


def matching_rate(sent_back: Callable[[Floats], Floats], wanted_R: Floats, first_R: Floats, trials: int) -> Floats:
    """Return rates of objection (R,), one for each model, at which ``sent_back`` of them comes to ``wanted``.

    They are found by the secant rule between logarithms, from ``first``, with ``trials`` calls. What is to be sent back
    0 times has the rate 0.

    >>> matching_rate(lambda rate: 4 * rate / (1 + rate), np.array([1.0, 0.0]), np.array([0.1, 0.1]), 4).round(3)
    array([0.333, 0.   ])
    """
    rate = np.clip(first_R, LEAST_RATE, 1.0)
    slope = np.ones_like(rate)
    before: tuple[Floats, Floats] | None = None
    for _ in range(trials):
        found = np.maximum(sent_back(rate), LEAST_RATE)
        here = np.log(rate), np.log(found)
        if before is not None:
            run, rise = (now - then for now, then in zip(here, before, strict=True))
            steepness = np.divide(rise, run, out=slope.copy(), where=run != 0)
            slope = np.clip(steepness, FLATTEST, STEEPEST)
        before = here
        wanted = np.maximum(wanted_R, LEAST_RATE)
        rate = np.clip(rate * (wanted / found) ** (1 / slope), LEAST_RATE, 1.0)
    return np.where(wanted_R > 0, rate, 0.0)
