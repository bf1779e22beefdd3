"""Closing brackets of balanced strings by the kind that was due (Li 2025, section 3.2.1.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeline.languages import dyck_strings as language

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def closers_due(tokens_NxT: NDArray[np.integer], lengths: ArrayLike, brackets: int) -> NDArray[np.int8]:
    """Return (N, T) the kind, 0 or 1, of the bracket that was open wherever a closing one was written, up to the first
    sign after which a string cannot be completed; else -1.

    >>> closers_due(np.array([[4, 0, 1, 3, 2, 5], [4, 1, 2, 0, 2, 5]]), [6, 6], 4).tolist()
    [[-1, -1, -1, 1, 0, -1], [-1, -1, 1, -1, -1, -1]]
    """
    lengths = np.asarray(lengths)
    first, _ = language.first_errors(tokens_NxT, lengths, brackets)
    last = np.where(first == language.VALID, lengths - 1, first)
    n, width = tokens_NxT.shape
    due = np.full((n, width), -1, np.int8)
    stack, depth, rows = np.zeros((n, width + 1), np.int8), np.zeros(n, np.int64), np.arange(n)
    for i in range(1, width):
        token = tokens_NxT[:, i]
        push = (i <= last) & (token < 2)
        pop = (i <= last) & ((token == 2) | (token == 3)) & (depth > 0)
        due[pop, i] = stack[rows[pop], depth[pop] - 1]
        stack[rows[push], depth[push]] = token[push]
        depth += np.where(push, 1, np.where(pop, -1, 0))
    return due
