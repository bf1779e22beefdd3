"""Examples that are drawn anew at every step of a training.

Drawing a few sequences costs some twenty calls of numpy, whose arithmetic is next to nothing. So the examples of
several steps are drawn at once. They are still a pure function of the stream and the step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

TOGETHER = 16  # steps whose examples are drawn at once


class Fresh:
    """The examples of one replica: ``sample(rng, n)`` makes n of them, ``rng(k)`` is the stream of block k of steps."""

    def __init__(
        self,
        sample: Callable[[np.random.Generator, int], np.ndarray],
        rng: Callable[[int], np.random.Generator],
        batch: int,
    ) -> None:
        self._sample = sample
        self._rng = rng
        self._batch = batch
        self._block = -1
        self._drawn = np.empty(0)

    def at(self, step: int) -> np.ndarray:
        """Return (B, …) the examples of a step, counted from 0."""
        block, index = divmod(step, TOGETHER)
        if block != self._block:
            self._drawn = self._sample(self._rng(block), TOGETHER * self._batch)
            self._block = block
        return self._drawn[index * self._batch : (index + 1) * self._batch]
