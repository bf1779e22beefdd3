"""Sparse and hierarchical parity (Liu 2024, section 4.2.2, definition 23, and section 4.2.7.3, Figure 4.19).

A string has d independent fair signs, kept as bits: bit 0 is the sign +1 and bit 1 the sign -1, so that the product of
some signs is +1 exactly if the sum of their bits is even. A task is a tree of parities of k signs each, on consecutive
places: node j (from 1) reads places (j - 1) k to j k - 1. From the root, node 1, one goes from node v to 2 v if the
product of its signs is -1 and to 2 v + 1 if it is +1; after ``depth`` nodes the leaf's number is the class. Depth 1 is
sparse parity. There the class is 0 if the product is +1, as the thesis numbers them; in a deeper tree leaves count from
the left, where products are -1.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


def need(k: int, depth: int) -> int:
    """Return how many places of a string matter.

    >>> need(6, 1), need(5, 3)
    (6, 35)
    """
    return k * (2**depth - 1)


def classes(depth: int) -> int:
    """Return the number of classes of a tree."""
    return int(2**depth)


def sample(rng: np.random.Generator, shape: tuple[int, ...], d: int) -> NDArray[np.uint8]:
    """Return bits (*shape, d), fair and independent; those of the first rows do not depend on how many follow."""
    packed = rng.integers(0, 256, (*shape, -(-d // 8)), np.uint8)
    return np.unpackbits(packed, axis=-1)[..., :d]


def node_products(bits: NDArray[np.uint8], k: int, depth: int) -> NDArray[np.uint8]:
    """Return (..., nodes), 0 where the product of a node's signs is +1 and 1 where it is -1."""
    nodes = 2**depth - 1
    own = bits[..., : k * nodes].reshape(*bits.shape[:-1], nodes, k)
    products: NDArray[np.uint8] = np.bitwise_xor.reduce(own, -1)
    return products


def labels(bits: NDArray[np.uint8], k: int, depth: int) -> NDArray[np.int64]:
    """Return the class (...,) of strings of bits (..., d).

    >>> labels(np.array([[0, 0, 1], [0, 1, 1]], np.uint8), 2, 1).tolist()
    [0, 1]
    """
    products = node_products(bits, k, depth)
    if depth == 1:
        return products[..., 0].astype(np.int64)
    node = np.ones(bits.shape[:-1], np.int64)
    for _ in range(depth):
        negative = np.take_along_axis(products, node[..., None] - 1, -1)[..., 0]
        node = 2 * node + 1 - negative
    return node - 2**depth


def signs(bits: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return what an MLP reads: +1 for bit 0 and -1 for bit 1."""
    return (1 - 2 * bits.astype(np.float32)).astype(np.float32)


def leaf_nodes(leaf: int, depth: int) -> list[int]:
    """Return the nodes on the way to a leaf, the root first, numbered from 1.

    >>> leaf_nodes(0, 3), leaf_nodes(7, 3)
    ([1, 2, 4], [1, 3, 7])
    """
    return [(leaf + 2**depth) >> (depth - level) for level in range(depth)]


def node_places(node: int, k: int) -> list[int]:
    """Return the places that a node reads.

    >>> node_places(2, 3)
    [3, 4, 5]
    """
    return list(range((node - 1) * k, node * k))


def support_monomials(places: list[int], degree: int) -> list[tuple[int, ...]]:
    """Return all products of ``degree`` of the places."""
    return list(itertools.combinations(places, degree))


def other_monomials(
    rng: np.random.Generator, places: list[int], d: int, degree: int, count: int
) -> list[tuple[int, ...]]:
    """Return products of ``degree`` places of which at least one is not among ``places``.

    Of degree 1 they are all there are; of higher degrees ``count`` different ones, drawn at random.
    """
    outside = sorted(set(range(d)) - set(places))
    if degree == 1 or not outside:
        return [(place,) for place in outside]
    monomials: dict[tuple[int, ...], None] = {}
    while len(monomials) < count:
        chosen = tuple(sorted(int(place) for place in rng.choice(d, degree, replace=False)))
        if not set(chosen) <= set(places):
            monomials[chosen] = None
    return list(monomials)


def characters(bits: NDArray[np.uint8], monomials: list[tuple[int, ...]]) -> NDArray[np.float64]:
    """Return chi_A(x) (n, monomials) of bits (n, d): the products of the signs at the places A."""
    return np.stack([1.0 - 2.0 * np.bitwise_xor.reduce(bits[:, list(places)], -1) for places in monomials], -1)


def correlations(p: NDArray[np.float64], chi: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return |E[(p - E p) chi_A(x)]| (..., monomials) over n strings: of probabilities p (..., n) and `characters`.

    The thesis does not centre p (section 4.2.2.1); without it the estimate carries noise of 0.5/sqrt(n) more.
    """
    centred = p - p.mean(-1, keepdims=True)
    magnitudes: NDArray[np.float64] = np.abs(centred @ chi) / len(chi)
    return magnitudes


def separation(inside: NDArray[np.float64], outside: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return SEP (...,): the median of correlations (..., in) over the 95 % quantile of others (..., out)."""
    ratios: NDArray[np.float64] = np.median(inside, -1) / np.quantile(outside, 0.95, axis=-1)
    return ratios


def outputs(task: Mapping[str, Any]) -> int:
    """Return the number of classes of a task of ``depth``."""
    return classes(task["depth"])


def examples(rng: np.random.Generator, n: int, task: Mapping[str, Any], held: bool) -> dict[str, NDArray[Any]]:
    """Return ``bits`` (n, d) of n strings and their classes, ``label`` (n,).

    ``task``: ``d``, ``k`` and ``depth``. Strings are drawn fresh, ``held`` ones by the same law.
    """
    bits = sample(rng, (n,), task["d"])
    return {"bits": bits, "label": labels(bits, task["k"], task["depth"])}
