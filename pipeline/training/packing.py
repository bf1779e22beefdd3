"""Packing short sequences into full rows, so that no time goes into padding.

Complete Dyck sequences average 8.4 tokens but reach 26: padded to the longest, two thirds of every
batch is padding. Rows of several sequences under a block-causal mask with restarted positions give
the same loss and the same gradient to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Packed(NamedTuple):
    """``where`` (tokens,): the place of token j of the batch (sequence after sequence) in the flattened
    rows; ``positions`` and ``segments`` (rows, row_length), -1 on what is left of a row."""

    where: np.ndarray
    positions: np.ndarray
    segments: np.ndarray


def pack(lengths: Int[np.ndarray, " n"], row_length: int) -> Packed:
    """Fill rows by best-fit decreasing: the longest sequence first, each in the fullest row that takes it.

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


class Batches:
    """Packed batches of sequences with a target at some of their positions, for objectives to build on.

    ``data``: ``ids`` (corpora, n, T) inputs, start token first; ``lengths`` (corpora, n) inputs in use;
    ``targets`` (corpora, n, T) the output to predict at each input, -1 for none.
    """

    l2 = 0.0
    side_by_side = 1  # ragged: batches are filled up to the longest of the company
    metrics = ("loss", "accuracy", "regulariser")
    evaluated: tuple[str, ...] = ()

    def __init__(self, data: dict[str, np.ndarray]) -> None:
        self.data = data
        self.sequences = data["ids"].shape[1]

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: Sequence[Callable[[], np.random.Generator]]
    ) -> dict[str, np.ndarray]:
        """Return the batch of a step from each replica's corpus, chosen sequences and stream."""
        parts = [self.replica(*chosen) for chosen in zip(corpora, selections, rngs, strict=True)]
        return {name: _stack([part[name] for part in parts]) for name in parts[0]}

    def replica(self, corpus: int, chosen: np.ndarray, rng: Callable[[], np.random.Generator]) -> dict[str, np.ndarray]:
        """Return the batch of one replica."""
        ids, lengths, targets = self.examples(corpus, chosen)
        used = np.arange(ids.shape[1]) < lengths[:, None]
        packed = pack(lengths, ids.shape[1])
        # Outputs are needed where the loss looks, and nowhere else.
        mask = targets >= 0
        return rows(packed, ids[used]) | {"select": packed.where[mask], "targets": targets[mask]}

    def examples(self, corpus: int, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return inputs (n, T), lengths (n,) and targets (tokens,), one after another, of the chosen sequences."""
        ids = self.data["ids"][corpus, chosen]
        lengths = self.data["lengths"][corpus, chosen].astype(np.int64)
        used = np.arange(ids.shape[1]) < lengths[:, None]
        return ids, lengths, self.data["targets"][corpus, chosen][used].astype(np.int64)

    def outputs(
        self, forward: Callable[..., tuple[Tensor, dict[str, Tensor]]], batch: dict[str, Tensor], prefix: str = ""
    ) -> Float[Tensor, "R K O"]:
        """Return the model's outputs at ``select``.

        Replicas with fewer places are filled up with -1; the outputs there count for nothing.
        """
        ids, positions, segments, select = (batch[prefix + name] for name in ("ids", "positions", "segments", "select"))
        return forward(ids.clamp(min=0), positions, segments, select=select.clamp(min=0))[0]

    def evaluate(
        self, forward: Callable[..., tuple[Tensor, dict[str, Tensor]]], held: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """Return nothing: no sequences are held out."""
        return {}


def rows(packed: Packed, tokens: np.ndarray) -> dict[str, np.ndarray]:
    """Return the model's inputs for ``tokens``, one sequence after another, put where ``packed`` says."""
    ids = np.zeros(packed.segments.size, dtype=np.int64)
    ids[packed.where] = tokens
    return {"ids": ids.reshape(packed.segments.shape), "positions": packed.positions, "segments": packed.segments}


def _stack(arrays: list[np.ndarray]) -> np.ndarray:
    """Stack the replicas' arrays; one with fewer rows (or tokens) is filled up with -1, which never counts."""
    size = max(len(array) for array in arrays)
    # -1 is "no target", "no sequence", "no token"; ids must stay valid and are never counted.
    filled = [np.pad(a, [(0, size - len(a))] + [(0, 0)] * (a.ndim - 1), constant_values=-1) for a in arrays]
    return np.stack(filled)
