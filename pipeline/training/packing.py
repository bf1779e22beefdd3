"""Packing short sequences into full rows, so that no time goes into padding.

Complete Dyck sequences average 8.4 tokens but reach 26: padded to the longest, two thirds of every
batch is padding. Rows of several sequences under a block-causal mask with restarted positions give
the same loss and the same gradient to rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Int


class Packed(NamedTuple):
    """``where`` (tokens,): the place of token j of the batch (sequence after sequence) in the flattened
    rows; ``positions`` and ``segments`` (rows, row_length), -1 on what is left of a row."""

    where: np.ndarray
    positions: np.ndarray
    segments: np.ndarray


def pack(lengths: Int[np.ndarray, " n"], row_length: int) -> Packed:
    """Best-fit decreasing: the longest sequence first, each into the fullest row that still takes it.

    >>> packed = pack(np.array([3, 5, 2]), row_length=5)
    >>> packed.segments.tolist()
    [[1, 1, 1, 1, 1], [0, 0, 0, 2, 2]]
    """
    order = np.argsort(-lengths, kind="stable").tolist()
    sizes = lengths.tolist()
    rows_with_room: list[list[int]] = [[] for _ in range(row_length + 1)]
    start = np.empty(len(sizes), dtype=np.int64)
    rows = 0
    for sequence in order:
        size = sizes[sequence]
        for room in range(size, row_length):
            if rows_with_room[room]:
                row = rows_with_room[room].pop()
                break
        else:
            room, row = row_length, rows
            rows += 1
        start[sequence] = (row + 1) * row_length - room
        rows_with_room[room - size].append(row)
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    index = np.repeat(start, lengths) + within
    positions = np.full(rows * row_length, -1, dtype=np.int64)
    segments = positions.copy()
    positions[index] = within
    segments[index] = np.repeat(np.arange(len(sizes)), lengths)
    return Packed(index, positions.reshape(rows, row_length), segments.reshape(rows, row_length))
