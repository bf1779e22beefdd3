"""Transformers that decode all positions in parallel, and weights by which two blocks are any product kernel.

The class is that of Li 2025, Eq. 4.55 to 4.64: columns are positions, attention is a softmax over keys in each
column without scale, mask or normalisation. The weights are constructed here; the source cites universal
approximation instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import log

import numpy as np
from scipy import special

from pipeline.languages.ising import Floats, Ints


@dataclass(frozen=True)
class Block:
    """Weights of one block: heads (W_O d x m, W_V, W_K, W_Q m x d), and W_1 r x d, b_1 r, W_2 d x r, b_2 d."""

    heads: tuple[tuple[Floats, Floats, Floats, Floats], ...]
    W1: Floats
    b1: Floats
    W2: Floats
    b2: Floats

    def __call__(self, X_dxN: Floats) -> Floats:
        """Return Eq. 4.57 and 4.58 on columns (.., d, N)."""
        out = X_dxN
        for W_O, W_V, W_K, W_Q in self.heads:
            scores = (W_K @ X_dxN).swapaxes(-1, -2) @ (W_Q @ X_dxN)
            out = out + W_O @ W_V @ X_dxN @ special.softmax(scores, axis=-2)
        return out + self.W2 @ np.maximum(self.W1 @ out + self.b1[:, None], 0) + self.b2[:, None]


@dataclass(frozen=True)
class Decoder:
    """A parallel decoder: embeddings of tokens (d, V) and of positions (d, N), blocks, and W_pred (V, d), b_pred."""

    tokens: Floats
    places: Floats
    blocks: tuple[Block, ...]
    W_pred: Floats
    b_pred: Floats

    def columns(self, sequences_BxN: Ints) -> Floats:
        """Return (B, V, N) what the last block says of each token in each column, before the softmax."""
        X: Floats = self.tokens[:, sequences_BxN].transpose(1, 0, 2) + self.places
        for block in self.blocks:
            X = block(X)
        return self.W_pred @ X + self.b_pred[:, None]

    def probabilities(self, sequences_BxN: Ints) -> Floats:
        """Return (B, V, N) the softmax of each column: the law of each position of the next sequence."""
        return special.softmax(self.columns(sequences_BxN), axis=1)

    def likeliest(self, sequences_BxN: Ints) -> Ints:
        """Return (B, N) the likeliest token of each column, the lowest of several (Eq. 4.62)."""
        return self.columns(sequences_BxN).argmax(1)

    def transition(self, sequences_BxN: Ints) -> Floats:
        """Return (B, V^N) the probability of each next sequence, a product over positions (Eq. 4.64).

        The first position changes last.
        """
        columns = self.probabilities(sequences_BxN)
        rows = columns[:, :, 0]
        for j in range(1, columns.shape[2]):
            rows = (rows[:, :, None] * columns[:, None, :, j]).reshape(len(rows), -1)
        return rows


def sequences(V: int, N: int) -> Ints:
    """Return (V^N, N) all sequences, the first position changes last."""
    return np.array(list(product(range(V), repeat=N)))


def decoder(table_SxNxV: Floats) -> Decoder:
    """Return two blocks whose last columns read ``table[s, j]`` where the input is the sequence numbered s.

    Residual: token (V), position (N), slots (N V), gathered slots (N V), output (V). Block 1 writes N into slot (i, v)
    of column i with token v. Block 2 averages over columns with uniform attention, so that every column holds the whole
    sequence, and a unit for each sequence and column writes its row of the table. Raises ValueError for another shape.
    """
    S, N, V = table_SxNxV.shape
    if S != V**N:
        raise ValueError(f"a table of {S} sequences: expected {V}^{N}")
    tok, pos, slot, gath = 0, V, V + N, V + N + N * V
    out = gath + N * V
    d = out + V
    tokens, places = np.zeros((d, V)), np.zeros((d, N))
    tokens[tok : tok + V] = np.eye(V)
    places[pos : pos + N] = np.eye(N)
    writes = Block((), np.zeros((N * V, d)), np.full(N * V, -1.0), np.zeros((d, N * V)), np.zeros(d))
    for i, v in product(range(N), range(V)):
        unit = i * V + v
        writes.W1[unit, [tok + v, pos + i]] = 1
        writes.W2[slot + unit, unit] = N
    heads = []
    for i in range(N):
        W_O, W_V = np.zeros((d, V)), np.zeros((V, d))
        W_V[:, slot + i * V : slot + (i + 1) * V] = np.eye(V)
        W_O[gath + i * V : gath + (i + 1) * V] = np.eye(V)
        heads.append((W_O, W_V, np.zeros((V, d)), np.zeros((V, d))))
    r = N * S
    reads = Block(tuple(heads), np.zeros((r, d)), np.full(r, -float(N)), np.zeros((d, r)), np.zeros(d))
    for s, sequence in enumerate(product(range(V), repeat=N)):
        for j in range(N):
            unit = s * N + j
            reads.W1[unit, [gath + i * V + v for i, v in enumerate(sequence)] + [pos + j]] = 1
            reads.W2[out : out + V, unit] = table_SxNxV[s, j]
    W_pred = np.zeros((V, d))
    W_pred[:, out : out + V] = np.eye(V)
    return Decoder(tokens, places, (writes, reads), W_pred, np.zeros(V))


def of_product(columns_SxNxV: Floats) -> Decoder:
    """Return the decoder of a kernel with independent positions, given the law of each.

    Raises ValueError for a probability of 0, which no softmax gives: such rows take argmax.
    """
    if not (columns_SxNxV > 0).all():
        raise ValueError("a product kernel must be strictly positive to be a softmax; a map takes of_map")
    return decoder(np.log(columns_SxNxV))


def of_map(next_SxN: Ints, V: int) -> Decoder:
    """Return the decoder whose likeliest tokens are a map of sequences to sequences."""
    return decoder(np.eye(V)[next_SxN] * log(2))


def tried(rng: np.random.Generator, N: int, V: int, steps: int) -> tuple[Floats, np.ndarray]:
    """Return how far the decoder of a random product kernel is from it, and where that of a random map is wrong.

    The first (S,) is the largest difference of a probability in each sequence's row; the second (steps, S) is of each
    composition, begun at each sequence.
    """
    every = sequences(V, N)
    columns = rng.dirichlet(np.ones(V), (len(every), N))
    kernel = of_product(columns)
    width, inner = sizes(V, N)
    assert kernel.tokens.shape[0] == width and len(kernel.blocks[1].b1) == inner
    off: Floats = np.abs(kernel.probabilities(every).swapaxes(1, 2) - columns).max((1, 2))
    following = every[rng.integers(len(every), size=len(every))]
    made, at, expected = of_map(following, V), every, every
    powers = V ** np.arange(N - 1, -1, -1)
    wrong = np.zeros((steps, len(every)), bool)
    for step in range(steps):
        at, expected = made.likeliest(at), following[expected @ powers]
        wrong[step] = (at != expected).any(1)
    return off, wrong


def sizes(V: int, N: int) -> tuple[int, int]:
    """Return width and feed-forward width of the construction, d = 2 V + N + 2 N V and N V^N."""
    return 2 * V + N + 2 * N * V, N * V**N
