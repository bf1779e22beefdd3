"""Pruning a random Transformer to a target (DYCK-TH6: Wen et al. 2023, Theorem 2, Lemmas 2 to 14).

A *target* is a list of layers of eq. (6), X -> g(LN_C(W_V X A) + X), with g a 2-layer ReLU network without
biases; a *parent* has four layers per target layer, wider, with 4-layer networks, its weights drawn from
U(-1, 1) before the target is looked at. Every weight of the parent is kept or zeroed, never changed, so that
the parent computes the target. The algorithm is the one of the proof, made exact where the proof shows only
that something exists:

* which candidates to keep for one target weight: the best of all subsets (`subset_sums`);
* a linear map by two pruned matrices, with a ReLU between them or, as in W_K' W_Q, without (`prune_product`);
* a target layer by two parent layers: the first prepares [X; values], the second has the attention and g;
* all other parent layers: the identity.

Matrices and columns stand as in the paper: X is (width, N), one column per token; attention patterns have one
column per query and columns that sum to 1. A layer is a dict of matrices W_V (m, m), W_K, W_Q (m_a, m), and
W_1, W_2, ... of its network. Stacks of inputs are (width, B, N). All numbers are float64.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from pipeline.errors import SandglassError
from pipeline.kit.streams import one_thread, stream

Array = NDArray[np.float64]
Matrix = Any  # an array or a scipy.sparse one: pruned layers keep few of very many weights
Layer = Mapping[str, Matrix]

MATRICES = ("W_V", "W_K", "W_Q", "W_1", "W_2", "W_3", "W_4")  # of a parent layer
SMALLEST = 0.5  # factors that are kept as they are, of W_1, W_3, W_Q and W_V: |w| at least this
POOLS = 6  # candidate pools drawn per input; the one with the smallest worst error is kept
BLOCK = 64  # rows of subset sums in memory at once


# --- Subset sums -----------------------------------------------------------------------------------------


def subset_sums(values: Array, targets: Array) -> tuple[NDArray[np.bool_], Array]:
    """Return, for every row of ``values`` (rows, n), the subset whose sum is nearest to its entry of ``targets``.

    The search is exact, by meeting in the middle: the 2^(n/2) sums of each half, one sorted and searched for
    what the other leaves. Rows run in parallel on the cores that the engine grants (`cores`); a result does
    not depend on how many these are. Returns the subsets (rows, n) and the distances |sum - target| (rows,).
    """
    size = min(BLOCK, max(1, -(-len(targets) // cores())))
    blocks = [slice(start, start + size) for start in range(0, len(targets), size)]
    with ThreadPoolExecutor(cores()) as pool:  # numpy sorts and searches without the interpreter's lock
        solutions = list(pool.map(lambda rows: _block(values[rows], targets[rows]), blocks))
    subsets, errors = zip(*solutions, strict=True)
    return np.concatenate(subsets), np.concatenate(errors)


def cores() -> int:
    """Return how many cores this step may use: what the engine granted (it sets OMP_NUM_THREADS), else all of them."""
    granted = os.environ.get("OMP_NUM_THREADS", "")
    return int(granted) if granted.isdigit() and int(granted) else len(os.sched_getaffinity(0))


def _block(values: Array, targets: Array) -> tuple[NDArray[np.bool_], Array]:
    n = values.shape[1]
    left, right = _all_sums(values[:, : n // 2]), _all_sums(values[:, n // 2 :])
    left_sorted, right_sorted = np.sort(left, axis=1), np.sort(right, axis=1)
    chosen, errors = np.zeros((len(targets), 2), np.int64), np.zeros(len(targets))
    for row, target in enumerate(targets):
        sums, remainders = left_sorted[row], (target - right_sorted[row])[::-1]  # both ascend: a fast search
        above = np.searchsorted(sums, remainders).clip(1, max(len(sums) - 1, 1))
        near = np.stack([above - 1, above.clip(max=len(sums) - 1)])
        distance = np.abs(sums[near] - remainders)
        side, at = np.unravel_index(distance.argmin(), distance.shape)
        errors[row] = distance[side, at]
        # The sums themselves say where they stood before sorting; among equal ones the first.
        chosen[row, 0] = np.flatnonzero(left[row] == sums[near[side, at]])[0]
        chosen[row, 1] = np.flatnonzero(right[row] == right_sorted[row, ::-1][at])[0]
    bits = [chosen[:, [0]] >> np.arange(n // 2) & 1, chosen[:, [1]] >> np.arange(n - n // 2) & 1]
    return np.concatenate(bits, axis=1).astype(bool), errors


def _all_sums(values: Array) -> Array:
    """Return the sum of every subset of each row of (rows, n), (rows, 2^n); bit j of the column says if j is in it."""
    sums = np.zeros((len(values), 1))
    for j in range(values.shape[1]):
        sums = np.concatenate([sums, sums + values[:, [j]]], axis=1)
    return sums


# --- Parents ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """Widths of a parent and of the target that it is pruned to; ``n`` candidates per weight and sign."""

    m: int  # embedding of the target
    m_a: int  # attention of the target: its keys and queries
    w: int  # hidden units of g
    layers: int  # of the target
    n: int
    m_large: int

    @property
    def w_large(self) -> int:
        """Hidden units of the parent's networks."""
        return 4 * max(4 * self.m, self.w) * self.n + 60

    @property
    def ma_large(self) -> int:
        """Width of the parent's keys and queries."""
        return int(2.2 * self.m * self.n + 20)

    @property
    def matrices(self) -> dict[str, tuple[int, int]]:
        """Shape of every matrix of a parent layer."""
        M, A, w = self.m_large, self.ma_large, self.w_large
        attention = {"W_V": (M, M), "W_K": (A, M), "W_Q": (A, M)}
        return attention | {"W_1": (w, M), "W_2": (w, w), "W_3": (w, w), "W_4": (M, w)}

    @property
    def weights(self) -> int:
        """Number of weights of the whole parent."""
        return 4 * self.layers * sum(rows * columns for rows, columns in self.matrices.values())


@dataclass(frozen=True)
class Parent:
    """A random Transformer of ``4 * shape.layers`` layers, drawn from its own streams of ``seed``.

    A layer is drawn again, to the same bits, whenever it is asked for: whole parents are too large to keep.
    """

    shape: Shape
    seed: int
    names: tuple[str | int, ...]

    def __len__(self) -> int:
        return 4 * self.shape.layers

    def layer(self, index: int) -> dict[str, Array]:
        """Return the weights of layer ``index``, i.i.d. U(-1, 1)."""
        rng = stream(self.seed, *self.names, "weights", index)
        return {name: rng.uniform(-1, 1, size) for name, size in self.shape.matrices.items()}

    def pools(self, index: int) -> np.random.Generator:
        """Return the stream that proposes pools in layer ``index``: part of the search for a mask, not of the
        parent."""
        return stream(self.seed, *self.names, "pools", index)


# --- Pruning ---------------------------------------------------------------------------------------------

EITHER, POSITIVE, LINEAR = (1, -1), (1,), (0,)  # which pools an input of `prune_product` needs


def prune_product(
    first: Array,
    second: Array,
    target: Array,
    outputs: NDArray[np.int64],
    inputs: NDArray[np.int64],
    signs: tuple[int, ...],
    n: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], float]:
    """Return masks of ``first`` (h, in) and ``second`` (out, h) after which second s(first x) = target x
    (Lemmas 2, 7).

    Row r and column c of ``target`` belong to ``outputs[r]`` and ``inputs[c]``; all other outputs are 0, and all
    other inputs ignored. Every input gets ``n`` hidden units of its own (twice as many where s is a ReLU and the
    input has `EITHER` sign): of ``first`` only their weight on this input is kept, of ``second`` the subset whose
    products with it add up to the target. ``signs`` is `POSITIVE` for inputs that are never negative, `LINEAR`
    where s is the identity. Also returns the largest distance of a sum from its target.

    Raises SandglassError if there are too few hidden units.
    """
    kept_first, kept_second = np.zeros(first.shape, bool), np.zeros(second.shape, bool)
    unused = np.ones(len(first), bool)
    worst = 0.0
    for column, i in zip(target.T, inputs, strict=True):
        rows = np.flatnonzero(column)
        for sign in signs if len(rows) else ():
            weights = first[:, i] * sign if sign else np.abs(first[:, i])
            eligible = np.flatnonzero(unused & (weights >= SMALLEST))
            if len(eligible) < n:
                raise SandglassError(
                    f"pruning: {len(eligible)} hidden units are left for the {n} candidates of a weight"
                )
            pools_PxN = np.stack([rng.choice(eligible, n, replace=False) for _ in range(POOLS)])
            values_PxOxN = second[outputs[rows]][:, pools_PxN].swapaxes(0, 1) * first[pools_PxN, i][:, None]
            subsets, errors = subset_sums(values_PxOxN.reshape(-1, n), np.tile(column[rows], POOLS))
            errors_PxO = errors.reshape(POOLS, -1)
            best = int(errors_PxO.max(1).argmin())
            pool, subset_OxN = pools_PxN[best], subsets.reshape(POOLS, -1, n)[best]
            unused[pool] = False
            kept_first[pool, i] = True
            kept_second[np.ix_(outputs[rows], pool)] = subset_OxN
            worst = max(worst, float(errors_PxO[best].max()))
    return kept_first, kept_second, worst


class Mask:
    """The weights of one parent layer that are kept: none at first."""

    def __init__(self, parent: Parent, index: int) -> None:
        self.layer, self.n, self.rng = parent.layer(index), parent.shape.n, parent.pools(index)
        self.kept = {name: np.zeros(matrix.shape, bool) for name, matrix in self.layer.items()}
        self.worst = 0.0

    def network(self, first: Array, second: Array, outputs: NDArray[np.int64]) -> None:
        """Keep weights for x -> second ReLU(first x) on the first rows of the input, for the rows ``outputs``
        (Lemma 6)."""
        hidden = np.arange(len(first))
        self._product("W_2", "W_1", first, hidden, np.arange(first.shape[1]), EITHER)
        self._product("W_4", "W_3", second, outputs, hidden, POSITIVE)

    def linear(self, matrix: Array, outputs: NDArray[np.int64]) -> None:
        """Keep weights for x -> matrix x (Lemmas 4 and 20); nothing of the attention is kept, and LN_C(0) = 0."""
        eye = np.eye(len(matrix))
        self.network(np.concatenate([matrix, -matrix]), np.concatenate([eye, -eye], axis=1), outputs)

    def bilinear(self, form: Array) -> None:
        """Keep weights for W_K' W_Q = form on the first rows of the input (Lemma 7)."""
        rows = np.arange(len(form))
        keys, queries = self.layer["W_K"].T, self.layer["W_Q"]
        self.kept["W_Q"], kept, worst = prune_product(queries, keys, form, rows, rows, LINEAR, self.n, self.rng)
        self.kept["W_K"], self.worst = kept.T, max(self.worst, worst)

    def _product(
        self, second: str, first: str, target: Array, outputs: NDArray, inputs: NDArray, signs: tuple[int, ...]
    ) -> None:
        self.kept[first], self.kept[second], worst = prune_product(
            self.layer[first], self.layer[second], target, outputs, inputs, signs, self.n, self.rng
        )
        self.worst = max(self.worst, worst)

    def pruned(self) -> dict[str, Matrix]:
        return {
            name: sparse.csr_array((self.layer[name][at], np.nonzero(at)), shape=at.shape)
            for name, at in self.kept.items()
        }


@dataclass(frozen=True)
class Pruned:
    """What is left of a parent: its layers (sparse), and the worst distance of a product from its target."""

    layers: list[dict[str, Matrix]]
    worst: float

    @property
    def kept(self) -> int:
        """Number of weights that are left."""
        return sum(matrix.nnz for layer in self.layers for matrix in layer.values())

    def condensed(self) -> list[dict[str, Array]]:
        """Return layers that compute the same, as small arrays: without the hidden units that nothing reads."""
        return [_condensed(layer) for layer in self.layers]


def _condensed(layer: Layer) -> dict[str, Array]:
    matrices = dict(layer)
    read = np.unique(layer["W_Q"].nonzero()[0])
    matrices |= {name: layer[name][read] for name in ("W_K", "W_Q")}
    for name, reader in itertools.pairwise(MATRICES[3:]):
        read = np.unique(layer[reader].nonzero()[1])
        matrices |= {name: matrices[name][read], reader: matrices[reader][:, read]}
    return {name: matrix.toarray() for name, matrix in matrices.items()}


def prune(parent: Parent, target: Sequence[Layer], hosts: Sequence[tuple[int, int]] | None = None) -> Pruned:
    """Prune ``parent`` to ``target``; target layer l goes to the parent layers ``hosts[l]``, which follow one
    another (default: 2l and 2l + 1, from 0), and all other parent layers become the identity on m rows.

    Raises SandglassError if the parent is too narrow.
    """
    hosts = hosts or [(2 * index, 2 * index + 1) for index in range(len(target))]
    hosted = dict(zip((first for first, _ in hosts), target, strict=True))
    rows = np.arange(parent.shape.m)
    layers: list[dict[str, Matrix]] = []
    worst = 0.0
    while len(layers) < len(parent):
        index = len(layers)
        first = Mask(parent, index)
        if index in hosted:
            second = Mask(parent, index + 1)
            _host(first, second, hosted[index], rows)
            layers += [first.pruned(), second.pruned()]
            worst = max(worst, first.worst, second.worst)
        else:
            first.linear(np.eye(len(rows)), rows)
            layers.append(first.pruned())
            worst = max(worst, first.worst)
    return Pruned(layers, worst)


def _host(first: Mask, second: Mask, layer: Layer, rows: NDArray[np.int64]) -> None:
    """Turn two parent layers into the target ``layer`` (Lemmas 3, 9 and 14)."""
    matrix, columns = preparation(second.layer["W_V"], layer["W_V"])
    second.kept["W_V"][rows, columns] = True
    first.linear(matrix, np.concatenate([rows, columns]))
    second.bilinear(layer["W_K"].T @ layer["W_Q"])
    second.network(layer["W_1"], layer["W_2"], rows)


def preparation(weights: Array, values: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return the linear map (2m, m) of the layer before a target layer with W_V = ``values`` (step 2 of Lemma 14).

    Of the parent's W_V, ``weights``, each of the first m rows keeps one weight, in a column beyond m of its own
    (Lemma 9). Returns [I; P W_V divided by these weights] and the columns.
    """
    m = len(values)
    free = np.abs(weights[:m])
    free[:, :m] = 0
    columns = np.zeros(m, np.int64)
    for row in range(m):
        columns[row] = free[row].argmax()
        if free[row, columns[row]] < SMALLEST:
            raise SandglassError(f"pruning: the parent's width {len(weights)} leaves no column for its values")
        free[:, columns[row]] = 0
    scale = weights[np.arange(m), columns]
    return np.concatenate([np.eye(m), _centred(values) / scale[:, None]]), columns


def illegal(parent: Parent, pruned: Pruned) -> int:
    """Return the number of weights of ``pruned`` that are neither the parent's, bit for bit, nor 0 (Definition 4)."""
    wrong = abs(len(parent) - len(pruned.layers))
    for index, layer in enumerate(pruned.layers):
        weights = parent.layer(index)
        wrong += len(weights.keys() ^ layer.keys())
        for name in weights.keys() & layer.keys():
            left = sparse.coo_array(layer[name])
            if left.shape != weights[name].shape:
                wrong += left.size
                continue
            same = left.data == weights[name][left.coords]
            wrong += int((~same & (left.data != 0)).sum())
    return wrong


# --- Running ---------------------------------------------------------------------------------------------


def layer_norm(columns: Array, floor: float) -> Array:
    """Return LN_C of eq. (7) with C = ``floor``, along the first axis."""
    centred = _centred(columns)
    return centred / np.maximum(np.sqrt((centred**2).sum(0, keepdims=True)), floor)


def _centred(columns: Array) -> Array:
    return columns - columns.mean(0, keepdims=True)


def attention(layer: Layer, x: Array) -> Array:
    """Return the causal attention of ``layer`` on ``x`` (m, B, N): (B, keys N, queries N), columns sum to 1."""
    logits = np.einsum("abk,abq->bkq", _apply(layer["W_K"], x), _apply(layer["W_Q"], x))
    logits = np.where(np.tri(x.shape[-1], dtype=bool).T, logits, -np.inf)
    weights = np.exp(logits - logits.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def attend(layer: Layer, x: Array, floor: float, pattern: Array | None = None) -> Array:
    """Return the attention module LN_C(W_V X A) (Definition 7) on ``x`` (m, B, N)."""
    pattern = attention(layer, x) if pattern is None else pattern
    return layer_norm(np.einsum("mbk,bkq->mbq", _apply(layer["W_V"], x), pattern), floor)


def run(layers: Sequence[Layer], x: Array, floor: float) -> tuple[Array, list[Array]]:
    """Return the output (m, B, N) of ``layers`` on ``x`` (m, B, N), and the attention pattern of every layer."""
    patterns = []
    with one_thread():
        for layer in layers:
            patterns.append(attention(layer, x))
            x = network(layer, attend(layer, x, floor, patterns[-1]) + x)
    return x, patterns


def network(layer: Layer, x: Array) -> Array:
    """Return g of ``layer`` on every column of ``x`` (m, B, N): W_1, W_2, ... with a ReLU between any two."""
    names = sorted(name for name in layer if name[2:].isdigit())
    for name in names:
        x = _apply(layer[name], x if name == names[0] else np.maximum(x, 0))
    return x


def _apply(matrix: Matrix, x: Array) -> Array:
    """Apply ``matrix`` to every column of ``x`` (m, B, N); arrays by torch, which can be held to one thread."""
    columns = x.reshape(len(x), -1)
    if isinstance(matrix, np.ndarray):
        product = (torch.from_numpy(matrix) @ torch.from_numpy(columns)).numpy()
    else:
        product = matrix @ columns
    return product.reshape(-1, *x.shape[1:])


def padded(x: Array, rows: int) -> Array:
    """Return ``x`` with rows of zeros below, ``rows`` in all."""
    return np.concatenate([x, np.zeros((rows - len(x), *x.shape[1:]))])


def largest_column(x: Array) -> Array:
    """Return the 1,2-norm of every matrix of (m, B, N): its largest column norm, (B,)."""
    return np.sqrt((x**2).sum(0)).max(-1)


# --- Random targets and inputs ---------------------------------------------------------------------------


def random_target(shape: Shape, rng: np.random.Generator) -> list[dict[str, Array]]:
    """Return ``shape.layers`` layers of Gaussian matrices, each divided by its spectral norm."""
    m, sizes = shape.m, {"W_V": (shape.m, shape.m)} | dict.fromkeys(("W_K", "W_Q"), (shape.m_a, shape.m))
    sizes |= {"W_1": (shape.w, m), "W_2": (m, shape.w)}
    drawn = [{name: rng.normal(size=size) for name, size in sizes.items()} for _ in range(shape.layers)]
    return [{name: matrix / np.linalg.norm(matrix, 2) for name, matrix in layer.items()} for layer in drawn]


def random_inputs(m: int, count: int, length: int, rng: np.random.Generator) -> Array:
    """Return columns of random direction and a norm uniform on [0, 1], (m, count, length)."""
    x = rng.normal(size=(m, count, length))
    return x / np.sqrt((x**2).sum(0)) * rng.random((count, length))


def approximation_errors(target: Sequence[Layer], pruned: Pruned, x: Array, floor: float) -> Array:
    """Return |f~(X padded) - f(X)| / |X| in the 1,2-norm, for every matrix X of ``x`` (m, B, N): (B,)."""
    wide = pruned.layers[0]["W_V"].shape[0]
    difference = run(pruned.condensed(), padded(x, wide), floor)[0] - padded(run(target, x, floor)[0], wide)
    return largest_column(difference) / largest_column(x)
