"""From a predictor of two tokens to the parameters of a hidden Markov model (Liu 2024, Theorem 7).

The predictor, a symbol in each slice, is a tensor W = sum_i A_i (x) B_i (x) C_i of rank k (`pipeline.languages.hmm`).
Jennrich's algorithm (Harshman 1970) finds the components from eigenvectors, alternating least squares polishes them,
and what is known of sums of columns and rows gives O and T. Everything takes stacks of tensors (..., n, d, d).
"""

from __future__ import annotations

import itertools

import numpy as np

from pipeline.errors import SandglassError
from pipeline.languages.hmm import Floats

Components = tuple[Floats, Floats, Floats]  # A (..., n, k), B (..., d, k), C (..., d, k)


def _transposed(matrix: Floats) -> Floats:
    return np.swapaxes(matrix, -1, -2)


def jennrich(tensor: Floats, k: int, rng: np.random.Generator, draws: int = 20) -> Components:
    """Return components of rank k of tensors (..., n, d, d), with columns of any scale.

    The tensor is projected onto its leading k dimensions in the second and third mode. Two random contractions of the
    first mode have common eigenvectors, from which B follows; of ``draws`` pairs of contractions the one with the
    widest gap between eigenvalues is taken, less what is imaginary in them. A slice of zeros (a symbol that was never
    seen) changes nothing.
    """
    n, rows, columns = tensor.shape[-3:]
    left = _leading(np.moveaxis(tensor, -2, -3).reshape(*tensor.shape[:-3], rows, n * columns), k)
    right = _leading(np.moveaxis(tensor, -1, -3).reshape(*tensor.shape[:-3], columns, n * rows), k)
    small = _transposed(left)[..., None, :, :] @ tensor @ right[..., None, :, :]  # (..., n, k, k)
    weights = rng.standard_normal((2, draws, n))
    one, two = np.einsum("vrn,...nab->v...rab", weights, small)  # (..., draws, k, k)
    ratio = one @ np.linalg.pinv(two)
    values, vectors = np.linalg.eig(ratio)
    apart = np.abs(values[..., :, None] - values[..., None, :])
    apart[..., np.arange(k), np.arange(k)] = np.inf
    size = np.abs(values).max(-1)
    # Relative to the size of the eigenvalues, which differs from draw to draw.
    score = (apart.min((-2, -1)) - np.abs(values.imag).max(-1)) / size
    best = score.argmax(-1)[..., None, None, None]
    chosen = np.take_along_axis(vectors, best, -3)[..., 0, :, :].real
    second = left @ chosen
    return second_to_all(tensor, second)


def second_to_all(tensor: Floats, second: Floats) -> Components:
    """Return A, B, C for given B (..., d, k): B's pseudo-inverse unfolds W into matrices A_i C_i' of rank one."""
    slices = np.einsum("...ia,...jab->...ijb", np.linalg.pinv(second), tensor)
    u, s, v = np.linalg.svd(slices, full_matrices=False)
    return _transposed(u[..., 0] * s[..., :1]), second, _transposed(v[..., 0, :])


def _leading(unfolded: Floats, k: int) -> Floats:
    return np.linalg.svd(unfolded, full_matrices=False)[0][..., :k]


def alternating(tensor: Floats, start: Components, sweeps: int) -> Components:
    """Return the components after so many sweeps of alternating least squares from ``start``.

    Columns of B and C are kept at length 1, their size in A, so that no column grows while another vanishes.
    """
    first, second, third = start
    for _ in range(sweeps):
        first = _update("...nab,...ai,...bi->...ni", tensor, second, third)
        second = _unit(_update("...nab,...ni,...bi->...ai", tensor, first, third))
        third = _update("...nab,...ni,...ai->...bi", tensor, first, second)
        length = np.linalg.norm(third, axis=-2, keepdims=True)
        first, third = first * length, third / length
    return first, second, third


def _update(product: str, tensor: Floats, one: Floats, two: Floats) -> Floats:
    gram = (_transposed(one) @ one) * (_transposed(two) @ two)
    return np.einsum(product, tensor, one, two, optimize=_PATHS[product]) @ np.linalg.pinv(gram, hermitian=True)


# Contract the tensor with one matrix, and what comes out with the other.
_PATHS: dict[str, list[str | tuple[int, int]]] = {
    product: ["einsum_path", (0, 2), (0, 1)]
    for product in ("...nab,...ai,...bi->...ni", "...nab,...ni,...bi->...ai", "...nab,...ni,...ai->...bi")
}


def _unit(matrix: Floats) -> Floats:
    return matrix / np.linalg.norm(matrix, axis=-2, keepdims=True)


def parameters(found: Components, case: int) -> tuple[Floats, Floats]:
    """Return O (..., d, k) and T (..., k, k) from the components of a case (proof of Theorem 7).

    Columns of B and C are laws or sums of laws, and sum to 1; their size goes into A. Case 2 takes the size of each row
    from T 1 = 1, which holds for unweighted slices alone. Raises SandglassError for another case.
    """
    first, second, third = found
    sums = second.sum(-2, keepdims=True), third.sum(-2, keepdims=True)
    first, second, third = first * sums[0] * sums[1], second / sums[0], third / sums[1]
    if case == 1:
        return second, np.linalg.pinv(second) @ third
    if case == 2:
        emission = third.sum(-1, keepdims=True) * first
        return emission, np.linalg.pinv(emission) @ third
    if case == 3:
        return third, _transposed(np.linalg.pinv(third) @ second)
    raise SandglassError(f"case {case!r} of two tokens given one: expected 1, 2 or 3")


def recover(tensor: Floats, k: int, case: int, rng: np.random.Generator, sweeps: int = 0) -> tuple[Floats, Floats]:
    """Return O and T from predictors W (..., d, d, d) of a case: Jennrich, and ``sweeps`` of least squares."""
    found = jennrich(tensor, k, rng)
    return parameters(alternating(tensor, found, sweeps) if sweeps else found, case)


def kruskal_rank(matrix: Floats, tolerance: float = 1e-10) -> int:
    """Return the largest r such that every r columns of (n, k) are linearly independent (section 2.2.1.4).

    Columns are taken at length 1, and independent where the r-th singular value is above ``tolerance``.

    >>> kruskal_rank(np.array([[1.0, 0, 1], [0, 1, 0]]))
    1
    """
    lengths = np.linalg.norm(matrix, axis=0)
    if (lengths == 0).any():
        return 0
    unit, k = matrix / lengths, matrix.shape[1]
    for r in range(1, min(matrix.shape) + 1):
        for columns in itertools.combinations(range(k), r):
            if np.linalg.svd(unit[:, columns], compute_uv=False)[-1] <= tolerance:
                return r - 1
    return min(matrix.shape)


def kruskal_holds(found: Components, k: int) -> bool:
    """Return whether the condition of Kruskal's theorem holds (Proposition 1): k_A + k_B + k_C >= 2k + 2."""
    return sum(map(kruskal_rank, found)) >= 2 * k + 2
