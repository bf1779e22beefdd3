"""DYCK-TH8: what small ReLU networks can do (Wen et al. 2023, appendix C.6, Lemmas 15 to 20).

Each construction runs as it is printed and, where that is wrong, as it should read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.dyck.params import LemmaCheck

Array = NDArray[np.float64]

# Points and their dimension in Lemmas 15 and 16, entries in Lemmas 17, 18 and 20.
POINTS, DIMENSION, ENTRIES = 20, 5, 6
DIRECTIONS = 200  # tried for Lemma 15; the one of the largest gap is taken
CEILING = 2.0  # M of Lemmas 17 to 19
NETWORKS, UNITS, INPUTS = 4, 5, 3  # K, m, n of Lemma 19

ROUNDING, ROUNDING_15 = 1e-12, 1e-9  # Lemma 15 divides by the gap
WRONG = 0.1  # far above rounding


def check(entry: LemmaCheck, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory`; every construction meets ``entry.draws`` random inputs."""
    lemmas = {15: _lemma_15, 16: _lemma_16, 17: _lemma_17, 18: _lemma_18, 19: _lemma_19, 20: _lemma_20}
    checks = [
        {"source": f"Wen et al. 2023, Lemma {number}"} | row
        for number, lemma in lemmas.items()
        for row in lemma(entry.draws, stream(seed, "dyck", theory_id, number))
    ]
    return theory.rows("dyck", theory_id, "Wen et al. 2023, appendix C.6", checks)


def relu(x: NDArray[Any]) -> Array:
    """Return max(x, 0)."""
    return np.maximum(x, 0)


# Lemma 15


def interpolation(points: Array, values: Array, direction: Array) -> tuple[Array, Array]:
    """Return offsets and weights z of the network of `interpolated`; ``points`` (n, d) differ along ``direction``."""
    offsets = points @ direction
    order = np.argsort(offsets)
    gamma = np.diff(offsets[order]).min() / 2
    z = np.zeros(len(points))
    for i, point in enumerate(order):
        z[i] = values[point] / gamma - 2 * z[:i].sum()
    return offsets[order], z


def interpolated(x: Array, direction: Array, offsets: Array, z: Array) -> Array:
    """Return sum_i z_i ReLU(<w, x> - o_i + gamma) - z_i ReLU(<w, x> - o_i - gamma), a network of width 2n."""
    gamma = np.diff(offsets).min() / 2
    along = (x @ direction)[..., None] - offsets
    return (relu(along + gamma) - relu(along - gamma)) @ z


def _lemma_15(draws: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    points, values = rng.normal(size=(POINTS, DIMENSION)), rng.normal(size=POINTS)
    tried = rng.normal(size=(DIRECTIONS, DIMENSION))
    tried /= np.linalg.norm(tried, axis=1, keepdims=True)
    gaps = np.diff(np.sort(points @ tried.T, axis=0), axis=0).min(0)
    direction = tried[gaps.argmax()]
    offsets, z = interpolation(points, values, direction)
    error = np.abs(interpolated(points, direction, offsets, z) - values).max()
    return [
        {
            "check": "lemma-15",
            "statement": "A ReLU network of width 2n takes any n values at n different points: largest error",
            "size": f"n={POINTS}, d={DIMENSION}",
            "measured": float(error),
            "comparison": "<=",
            "bound": ROUNDING_15,
            "detail": f"half-gap {gaps.max() / 2:.4f} along the best of {DIRECTIONS} random directions",
        }
    ]


# Lemma 16


def hidden_basis(direction: Array) -> Array:
    """Return orthonormal rows, (n - 2, n), orthogonal to the vector of ones and to ``direction``."""
    span = np.stack([np.ones_like(direction), direction], axis=1)
    return np.linalg.qr(span, mode="complete")[0][:, 2:].T


def _lemma_16(draws: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    points = rng.normal(size=(POINTS, DIMENSION))
    points[0] = 1.0
    basis = hidden_basis(rng.normal(size=DIMENSION))
    gram = np.abs(basis @ basis.T - np.eye(len(basis))).max()
    constant = np.abs(basis.sum(1)).max()
    missing = abs(len(basis) - (DIMENSION - 2))
    missed = np.linalg.norm(points - points @ basis.T @ basis, axis=1) / np.linalg.norm(points, axis=1)
    size = f"{POINTS} points, n={DIMENSION}"
    return [
        {
            "check": "lemma-16-basis",
            "statement": "There are n - 2 orthonormal vectors orthogonal to the vector of ones: largest deviation",
            "size": size,
            "measured": largest(gram, constant, missing),
            "comparison": "<=",
            "bound": ROUNDING,
        },
        {
            "check": "lemma-16-points",
            "statement": "They span none of the given points: smallest share of a point that is outside",
            "size": size,
            "measured": float(missed.min()),
            "comparison": ">=",
            "bound": 1e-3,
        },
    ]


# Lemma 17


def indexed(x: Array, y: NDArray[np.int64], ceiling: float) -> Array:
    """Return x_y by the network of Lemma 17, for ``x`` (..., n) in [0, ceiling] and ``y`` (...) in 1..n."""
    i = np.arange(1, x.shape[-1] + 1)
    step = y[..., None] - i
    return (relu(x + ceiling * step) - relu(x + ceiling * (step - 1))).sum(-1) - ceiling * (y - 1)


def _lemma_17(draws: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    x, y = rng.uniform(0, CEILING, (draws, ENTRIES)), rng.integers(1, ENTRIES + 1, draws)
    i = np.arange(1, ENTRIES + 1)
    step = y[:, None] - i
    cases = np.where(step > 0, CEILING, np.where(step == 0, x, 0))
    on, off = relu(x + CEILING * step), relu(x + CEILING * (step - 1))
    metadata = {"size": f"{draws} inputs, n={ENTRIES}", "erratum": "dyck-lemma-17"}
    return [
        {
            "check": "lemma-17",
            "statement": "The network looks up x_y: largest error",
            "size": metadata["size"],
            "measured": float(np.abs(indexed(x, y, CEILING) - x[np.arange(draws), y - 1]).max()),
            "comparison": "<=",
            "bound": ROUNDING,
            "detail": "the term -M(y - 1) takes a unit of its own: width 2n + 1, the lemma says 2n",
        },
        metadata
        | {
            "check": "lemma-17-cases-printed",
            "statement": "The case analysis as printed, with a sum over i in its second term only, "
            "does not hold: largest difference of its two sides",
            "measured": float(np.abs(on - off.sum(1, keepdims=True) - cases).max()),
            "comparison": ">=",
            "bound": WRONG,
            "form": "printed",
        },
        metadata
        | {
            "check": "lemma-17-cases-corrected",
            "statement": "Without that sum it holds: largest difference of its two sides",
            "measured": float(np.abs(on - off - cases).max()),
            "comparison": "<=",
            "bound": ROUNDING,
            "form": "corrected",
        },
    ]


# Lemma 18


def active_index_printed(x: Array, ceiling: float) -> Array:
    """Return what the network of Lemma 18 gives as printed."""
    i = np.arange(1, x.shape[-1] + 1)
    return (i * (relu(x) - relu(x - ceiling) + ceiling)).sum(-1) / ceiling


def active_index(x: Array, ceiling: float) -> Array:
    """Return the index of the only entry of ``x`` (..., n) that is not 0, which is above ``ceiling``."""
    i = np.arange(1, x.shape[-1] + 1)
    return (i * (relu(x) - relu(x - ceiling))).sum(-1) / ceiling


def _lemma_18(draws: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    i = rng.integers(1, ENTRIES + 1, draws)
    x = np.where(np.arange(1, ENTRIES + 1) == i[:, None], CEILING + rng.exponential(size=(draws, 1)), 0.0)
    metadata = {"size": f"{draws} inputs, n={ENTRIES}", "erratum": "dyck-lemma-18"}
    return [
        metadata
        | {
            "check": "lemma-18-printed",
            "statement": "The network as printed, with + M in every term, never gives the index i of the active "
            "entry: smallest error",
            "measured": float(np.abs(active_index_printed(x, CEILING) - i).min()),
            "comparison": ">=",
            "bound": WRONG,
            "detail": f"it adds n(n + 1)/2 = {ENTRIES * (ENTRIES + 1) // 2}",
            "form": "printed",
        },
        metadata
        | {
            "check": "lemma-18-corrected",
            "statement": "Without + M it gives i: largest error",
            "measured": float(np.abs(active_index(x, CEILING) - i).max()),
            "comparison": "<=",
            "bound": ROUNDING,
            "form": "corrected",
        },
    ]


# Lemma 19


def selected_printed(y: NDArray[np.int64], pre: Array, a: Array, b: Array, ceiling: float) -> Array:
    """Return what Lemma 19 gives as printed: network ``y`` of K, for pre-activations ``pre`` (..., K, m),
    weights ``a`` (K, m) of the hidden units and constants ``b`` (K,), each added once."""
    k = np.arange(1, len(a) + 1)
    step = y[..., None] - k
    gated = relu(pre + ceiling * step[..., None]) - relu(pre + ceiling * (step[..., None] - 1))
    c = np.zeros_like(a)
    for last in range(len(a)):  # sum_{k<=k'} c_k (k' + 1 - k) = M sum_{k<k'} a_k, solved for c_k'
        c[last] = ceiling * a[:last].sum(0) - (c[:last] * np.arange(last + 1, 1, -1)[:, None]).sum(0)
    return (a * gated).sum((-1, -2)) + b.sum() - (relu(step + 1) @ c).sum(-1)


def selected(y: NDArray[np.int64], pre: Array, a: Array, b: Array, ceiling: float) -> Array:
    """Return what Lemma 19 gives corrected: with a gate that also closes on negative pre-activations, and a
    hat for each constant."""
    z = y[..., None] - np.arange(1, len(a) + 1)
    wide = z[..., None]
    gate = relu(pre + ceiling * wide) - relu(pre + 2 * ceiling * wide - ceiling) + ceiling * relu(wide - 1)
    hat = relu(z + 1) - 2 * relu(z) + relu(z - 1)
    return (a * gate).sum((-1, -2)) + hat @ b


def _lemma_19(draws: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    w, shift = rng.normal(size=(NETWORKS, UNITS, INPUTS)), rng.normal(size=(NETWORKS, UNITS))
    a, b = rng.normal(size=(NETWORKS, UNITS)), rng.normal(size=NETWORKS)
    x, y = rng.uniform(0, CEILING, (draws, INPUTS)), rng.integers(1, NETWORKS + 1, draws)
    pre = np.einsum("kmi,di->dkm", w, x) + shift
    ceiling = float(np.abs(pre).max())  # the printed M bounds x, but what it has to exceed are these
    rows = np.arange(draws)
    targets = (a[y - 1] * relu(pre[rows, y - 1])).sum(-1)
    metadata = {"size": f"{draws} inputs, {NETWORKS} networks of width {UNITS}", "erratum": "dyck-lemma-19"}
    without = np.zeros_like(b)

    def error(network: Any, constants: Array) -> float:
        return float(np.abs(network(y, pre, a, constants, ceiling) - targets - constants[y - 1]).max())

    return [
        metadata
        | {
            "check": "lemma-19-printed",
            "statement": "The network as printed does not select f_k: its gate stays open where a pre-activation "
            "is negative, one step above its index (largest error, without constants b_k)",
            "measured": error(selected_printed, without),
            "comparison": ">=",
            "bound": WRONG,
            "detail": f"with M = {ceiling:.2f}, above every pre-activation",
            "form": "printed",
        },
        metadata
        | {
            "check": "lemma-19-constants-printed",
            "statement": "As printed it also adds the constants b_k of all networks: largest error",
            "measured": float(np.abs(selected_printed(y, pre, 0 * a, b, ceiling) - b[y - 1]).max()),
            "comparison": ">=",
            "bound": WRONG,
            "detail": f"of the whole network {error(selected_printed, b):.2f}",
            "form": "printed",
        },
        metadata
        | {
            "check": "lemma-19-corrected",
            "statement": "With the gate ReLU(p + Bz) - ReLU(p + 2Bz - B) + B ReLU(z - 1), z = y - k, and a hat for "
            "each b_k it selects f_k: largest error",
            "measured": error(selected, b),
            "comparison": "<=",
            "bound": ROUNDING,
            "detail": "its width is 2Km and at most 3K more for the terms of z alone",
            "form": "corrected",
        },
    ]


# Lemma 20


def _lemma_20(draws: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    matrix = rng.normal(size=(ENTRIES, ENTRIES))
    matrix *= 2 / np.linalg.norm(matrix, 2)
    x = rng.normal(size=(ENTRIES, draws))
    eye = np.eye(ENTRIES)
    first, second = np.concatenate([matrix, -matrix]), np.concatenate([eye, -eye], axis=1)
    metadata = {"size": f"{draws} inputs, n={ENTRIES}", "erratum": "dyck-lemma-20"}
    return [
        metadata
        | {
            "check": "lemma-20-printed",
            "statement": "The output matrix as printed, [I, -I] transposed, has n columns, but multiplies a vector "
            "of 2n entries: products that exist",
            "measured": float(second.T.shape[1] == len(first @ x)),
            "comparison": "<=",
            "bound": 0.0,
            "size": f"algebra, not an experiment: shapes with n={ENTRIES}",
            "form": "printed",
        },
        metadata
        | {
            "check": "lemma-20-corrected",
            "statement": "[I, -I] ReLU([W; -W] x) = W x: largest error",
            "measured": float(np.abs(second @ relu(first @ x) - matrix @ x).max()),
            "comparison": "<=",
            "bound": ROUNDING,
            "form": "corrected",
        },
        {
            "check": "lemma-20-norms",
            "statement": "For |W| = 2 both matrices have spectral norms of at most 2 sqrt(2): the larger one",
            "size": f"n={ENTRIES}",
            "measured": largest(np.linalg.norm(first, 2), np.linalg.norm(second, 2)),
            "comparison": "<=",
            "bound": 2 * 2**0.5 + ROUNDING,
        },
    ]
