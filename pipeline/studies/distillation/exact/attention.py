"""Two Transformers of one layer that compute a sparse parity (Liu 2024, section 4.2.7.2.1, Propositions 9 and 10).

Their MLPs interpolate (section 3.4.4.1, Lemmas 10 and 11). A token is a bit: 1 where the sign of the string is -1, so
that the parity is +1 exactly if the bits of the support have an even sum. Both read the output at the last position.
All in float64.

Suffixes name axes: N strings, d positions, X points of a table, I and O coordinates.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.errors import SandglassError

Array = NDArray[np.float64]
UNITS = 4  # of an indicator


@dataclass(frozen=True)
class Mlp:
    """Layers (weights (in, out), biases (out,)) with a ReLU between two of them."""

    layers: list[tuple[Array, Array]]

    def __call__(self, x_NxI: Array) -> Array:
        """Return (N, O)."""
        *hidden, (W, b) = self.layers
        for W_1, b_1 in hidden:
            x_NxI = np.maximum(x_NxI @ W_1 + b_1, 0)
        outputs: Array = x_NxI @ W + b
        return outputs

    @property
    def hidden(self) -> list[int]:
        """Units of the hidden layers."""
        return [len(b) for _, b in self.layers[:-1]]

    def norms(self) -> list[tuple[float, float]]:
        """Return of each layer the largest absolute weight and bias."""
        return [(float(np.abs(W).max()), float(np.abs(b).max())) for W, b in self.layers]


def indicators(points: Sequence[float], spacing: float) -> tuple[Array, Array, Array]:
    """Return weights (4X,), biases (4X,) and the sums (4X, X) that make the indicators of ``points`` (proof of Lemma
    10): 1 up to a quarter of the spacing away, 0 from half of it on."""
    step = spacing / 4
    shifts = np.array([2, 1, -1, -2]) * step
    biases = -(np.asarray(points, float)[:, None] - shifts) / step
    sums = np.kron(np.eye(len(points)), np.array([[1.0], [-1.0], [-1.0], [1.0]]))
    return np.full(biases.size, 1 / step), biases.ravel(), sums


def interpolation(points: Sequence[float], values_XxO: ArrayLike, spacing: float) -> Mlp:
    """Return the network of Lemma 10, which takes these values at points ``spacing`` apart, and around them."""
    weights, biases, sums = indicators(points, spacing)
    values = np.asarray(values_XxO, float).reshape(len(points), -1)
    return Mlp([(weights[None], biases), (sums @ values, np.zeros(values.shape[1]))])


def table(points_XxI: ArrayLike, values_XxO: ArrayLike, spacing: float, bias: int | None = None) -> Mlp:
    """Return the network of Lemma 11, for points of several coordinates; ``bias`` is what its second layer subtracts:
    one less than the coordinates, in print as many."""
    points, values = np.asarray(points_XxI, float), np.asarray(values_XxO, float)
    count = points.shape[1]
    firsts, seconds = [], []
    for i in range(count):
        own = np.unique(points[:, i])
        weights, biases, sums = indicators(own.tolist(), spacing)
        wide = np.zeros((count, len(biases)))
        wide[i] = weights
        firsts.append((wide, biases))
        seconds.append(sums @ (points[:, i] == own[:, None]).astype(float))
    less = count - 1 if bias is None else bias
    return Mlp(
        [
            (np.concatenate([W for W, _ in firsts], 1), np.concatenate([b for _, b in firsts])),
            (np.concatenate(seconds), np.full(len(points), -float(less))),
            (values.reshape(len(points), -1), np.zeros(values.reshape(len(points), -1).shape[1])),
        ]
    )


def vertices(k: int) -> tuple[Array, Array]:
    """Return (2^k, k) all strings of k bits, and (2^k, 1) their parities as signs."""
    bits = np.array(list(itertools.product((0.0, 1.0), repeat=k)))
    return bits, (1 - 2 * (bits.sum(1) % 2))[:, None]


@dataclass(frozen=True)
class Transformer:
    """One attention head without residual or LayerNorm, read at the last position, and an MLP.

    ``tokens`` (2, D) embeds bits and ``positions`` (d, D) places; ``W_Q`` and ``W_K`` are (D, h), ``W_V`` is (D, v).
    """

    tokens: Array
    positions: Array
    W_Q: Array
    W_K: Array
    W_V: Array
    mlp: Mlp
    products: bool = False  # whether tokens and positions are multiplied in place of added

    def embedded(self, bits_Nxd: NDArray[np.integer]) -> Array:
        """Return (N, d, D)."""
        words = self.tokens[bits_Nxd]
        embeddings: Array = words * self.positions if self.products else words + self.positions
        return embeddings

    def attention(self, bits_Nxd: NDArray[np.integer]) -> Array:
        """Return (N, d): the weights of the last query."""
        x = self.embedded(bits_Nxd)
        scores = (x @ self.W_K @ (x[:, -1] @ self.W_Q)[:, :, None])[..., 0]
        weights = np.exp(scores - scores.max(1, keepdims=True))
        pattern: Array = weights / weights.sum(1, keepdims=True)
        return pattern

    def __call__(self, bits_Nxd: NDArray[np.integer]) -> Array:
        """Return (N,): the output at the last position."""
        x = self.embedded(bits_Nxd) @ self.W_V
        return self.mlp((self.attention(bits_Nxd)[:, None] @ x)[:, 0])[:, 0]


def selecting(d: int, support: Sequence[int], c: float, printed: bool = False) -> Transformer:
    """Return the Transformer of Proposition 9: attention with the scores c on ``support`` and 0 elsewhere averages its
    bits, and an MLP by Lemma 10 takes the parity of that average.

    Coordinates of embeddings: bit 1, bit 0, a place in the support, a place outside. The query is 1 for either kind of
    place. ``printed`` is the example below the proposition: the last place has the code of the support, and W_Q = W_K =
    c e_3, so that the scores are c^2 on the support and at the last place.
    """
    k = len(support)
    positions = np.tile([0.0, 0.0, 0.0, 1.0], (d, 1))
    positions[list(support)] = [0, 0, 1, 0]
    W_K, W_Q = np.array([[0.0], [0], [c], [0]]), np.array([[0.0], [0], [1], [1]])
    if printed:
        positions[-1] = [0, 0, 1, 0]
        W_Q = W_K
    points = [m / k for m in range(k + 1)]
    signs = [[(-1.0) ** m] for m in range(k + 1)]
    words = np.array([[0.0, 1, 0, 0], [1, 0, 0, 0]])
    return Transformer(
        words, positions, W_Q, W_K, np.array([[1.0], [0], [0], [0]]), interpolation(points, signs, 1 / k)
    )


def threshold(d: int, k: int) -> float:
    """Return the least c for which Proposition 9 is exact: with it at most 1/(4k) of the attention leaves the
    support."""
    return math.log((4 * k - 1) * (d - k) / k)


def off_mass(d: int, k: int, c: float) -> float:
    """Return the share of attention outside the support, (d - k) / (k e^c + d - k)."""
    return (d - k) / (k * math.exp(c) + d - k)


def spreading(d: int, support: Sequence[int], scaled: bool = True, bias: int | None = None) -> Transformer:
    """Return the Transformer of Proposition 10: attention is 1/d everywhere and copies each bit to a coordinate of its
    own, and an MLP by Lemma 11 takes the parity of the support's coordinates.

    With ``scaled``, W_V multiplies by d, so that values are 0 and 1; without, they are 0 and 1/d, a table whose
    points are 1/d apart.
    """
    k = len(support)
    bits, signs = vertices(k)
    unit = 1.0 if scaled else 1 / d
    own = table(bits * unit, signs, unit, bias)
    W, b = own.layers[0]
    wide = np.zeros((d, W.shape[1]))
    wide[list(support)] = W
    zero = np.zeros((d, 1))
    words = np.repeat([[0.0], [1.0]], d, 1)
    return Transformer(
        words, np.eye(d), zero, zero, np.eye(d) * (d if scaled else 1), Mlp([(wide, b), *own.layers[1:]]), products=True
    )


def cases(d: int, k: int) -> Iterator[tuple[NDArray[np.int64], int, float]]:
    """Yield strings with the support on the first k places, their parities as signs, and probabilities: one string for
    each number of ones on the support and outside, which is all that attention over places of two kinds can see."""
    if not 0 < k < d:
        raise SandglassError(f"a support of {k} among {d} places; it must be smaller, and not empty")
    for inside in range(k + 1):
        for outside in range(d - k + 1):
            bits = np.zeros(d, np.int64)
            bits[:inside] = 1
            bits[d - outside :] = 1
            chance = math.comb(k, inside) * math.comb(d - k, outside) / 2**d
            yield bits, 1 - 2 * (inside % 2), chance


def measured(built: Transformer, d: int, k: int) -> tuple[float, float, float]:
    """Return the probability that the sign of the output is the parity of the first k bits, the largest error, and the
    largest share of attention behind these places, over all strings of fair bits, of a Transformer that sees two
    kinds of places: exactly, from `cases`. NaN if an output is NaN."""
    parts = list(cases(d, k))
    bits, signs, chances = (np.array([part[i] for part in parts]) for i in range(3))
    outputs = built(bits)
    right = math.nan if np.isnan(outputs).any() else float(chances[outputs * signs > 0].sum())
    return right, float(np.abs(outputs - signs).max()), float(built.attention(bits)[:, k:].sum(1).max())
