"""Ising models on few spins, by enumeration (Li 2025, Definition 4.1.12 and equations 4.5 to 4.8).

p(x) is proportional to exp(sum_i h_i x_i + sum_{i<j} J_ij x_i x_j), x in {-1, +1}^N: each unordered pair counts once.
States are numbered 0 .. 2^N - 1, the first spin the most significant bit, +1 as 1; a mask is a number of N bits in the
same order, set where a position is masked (predicted). Parameters are one vector theta of d = N (N + 1) / 2 numbers:
couplings J_12, J_13, .., then fields h_1 .. h_N. All logarithms are natural.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]
MOST = 14  # spins whose states are enumerated


def _sized(N: int) -> None:
    if not 1 <= N <= MOST:
        raise ValueError(f"states of {N} spins are not enumerated; expected 1 to {MOST} spins")


@cache
def states(N: int) -> NDArray[np.int8]:
    """Return (2^N, N) all states; the first spin changes last. Raises ValueError for more than `MOST` spins.

    >>> states(2).tolist()
    [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    """
    _sized(N)
    return np.array(list(product((-1, 1), repeat=N)), np.int8)


def pairs(N: int) -> list[tuple[int, int]]:
    """Return the pairs i < j in the order of their couplings."""
    return list(combinations(range(N), 2))


@cache
def statistics(N: int) -> Floats:
    """Return (2^N, d) the sufficient statistics phi(x): products of pairs, then spins."""
    x = states(N).astype(float)
    return np.concatenate([*(x[:, [i]] * x[:, [j]] for i, j in pairs(N)), x], 1)


def parameters(couplings_NxN: ArrayLike, fields_N: ArrayLike) -> Floats:
    """Return theta (d,) of a matrix of couplings, whose upper triangle is read, and fields.

    Raises ValueError if they do not fit each other.
    """
    J, h = np.asarray(couplings_NxN, float), np.asarray(fields_N, float)
    if J.shape != (len(h), len(h)):
        raise ValueError(f"couplings of shape {J.shape} do not fit {len(h)} fields")
    return np.concatenate([J[np.triu_indices(len(h), 1)], h])


def couplings(theta: Floats, N: int) -> tuple[Floats, Floats]:
    """Return J (N, N), symmetric with zeros on its diagonal, and h (N,)."""
    J = np.zeros((N, N))
    J[np.triu_indices(N, 1)] = theta[: -N or None]
    return J + J.T, np.asarray(theta[-N:], float)


def clique(N: int, c: int, J: float, fields_N: ArrayLike = 0.0) -> Floats:
    """Return theta of the clique family: coupling ``J`` among the first ``c`` spins, 0 elsewhere; fields as given.

    Raises ValueError unless 1 <= c <= N.
    """
    if not 1 <= c <= N:
        raise ValueError(f"a clique of {c} does not fit {N} spins")
    inside = np.arange(N) < c
    return parameters(J * np.outer(inside, inside), np.broadcast_to(np.asarray(fields_N, float), (N,)))


def log_law(theta: ArrayLike, N: int) -> Floats:
    """Return (.., 2^N) log p of every state, for parameters (.., d)."""
    weights = np.asarray(theta, float) @ statistics(N).T
    weights -= weights.max(-1, keepdims=True)
    return weights - np.log(np.exp(weights).sum(-1, keepdims=True))


def law(theta: ArrayLike, N: int) -> Floats:
    """Return (.., 2^N) the probability of every state."""
    return np.exp(log_law(theta, N))


# Masks


def masks(N: int, k: int) -> list[int]:
    """Return all masks of ``k`` of ``N`` positions. Raises ValueError unless 1 <= k <= N.

    >>> masks(3, 2)
    [6, 5, 3]
    """
    if not 1 <= k <= N:
        raise ValueError(f"masks of {k} of {N} positions: expected 1 to {N}")
    return [mask_of(N, chosen) for chosen in combinations(range(N), k)]


def mask_of(N: int, positions: tuple[int, ...]) -> int:
    """Return the mask of some positions, counted from 0."""
    return sum(1 << (N - 1 - i) for i in positions)


def positions(N: int, mask: int) -> list[int]:
    """Return the positions of a mask, counted from 0."""
    return [i for i in range(N) if mask >> (N - 1 - i) & 1]


def check_cover(N: int, chosen: list[int]) -> None:
    """Raise ValueError unless masks are of ``N`` positions, not empty, and cover all positions together."""
    if any(not 0 < mask < 1 << N for mask in chosen):
        raise ValueError(f"masks {chosen}: expected numbers from 1 to {(1 << N) - 1}")
    lacking = [i + 1 for i in range(N) if not any(mask >> (N - 1 - i) & 1 for mask in chosen)]
    if lacking:
        raise ValueError(f"masks {chosen} do not cover position {lacking[0]} of {N}")


@cache
def submasks(mask: int) -> Ints:
    """Return (2^k,) the numbers whose bits are all in ``mask``, ascending."""
    found = [0]
    for bit in range(mask.bit_length()):
        if mask >> bit & 1:
            found += [number | 1 << bit for number in found]
    return np.array(found)


@cache
def contexts(N: int, mask: int) -> Ints:
    """Return (2^(N-k), 2^k) the states, a row for each value of what is not masked."""
    _sized(N)
    return submasks((1 << N) - 1 & ~mask)[:, None] + submasks(mask)[None, :]


@cache
def companions(N: int, mask: int) -> Ints:
    """Return (2^N, 2^k) for each state those that agree with it off the mask."""
    return (np.arange(1 << N) & ~mask)[:, None] + submasks(mask)[None, :]


# Samples


def counts(rng: np.random.Generator, law_S: Floats, n: int, repetitions: int) -> Ints:
    """Return (R, S) how often each state comes in each of R samples of ``n``."""
    return rng.multinomial(n, law_S / law_S.sum(), size=repetitions)


def masked_counts(rng: np.random.Generator, counts_RxS: Ints, k: int, N: int) -> Ints:
    """Return (R, M, S) how often each state comes with each mask of ``k``: one mask for each sample, independent of it.

    Given how often a state comes, its masks are multinomial.
    """
    M = comb(N, k)
    drawn = rng.multinomial(counts_RxS, np.full(M, 1 / M))  # (R, S, M)
    return np.ascontiguousarray(drawn.swapaxes(1, 2))


def random_parameters(rng: np.random.Generator, N: int, sigma: float) -> Floats:
    """Return theta of a fully connected model, every entry normal with standard deviation ``sigma`` (PAR-D6)."""
    return sigma * rng.standard_normal(N * (N + 1) // 2)


# The strongly ferromagnetic family of section 4.1.4.2


def assumption(J: float, fields_N: ArrayLike, c: int) -> tuple[float, float]:
    """Return h_G, the sum of the clique's fields, and J_0 = J - ||h||_1 (Assumption 4.1.5; clique: the first ``c``).

    Raises ValueError where the assumption does not hold: h_G > sum of |h_i| outside the clique, J > ||h||_1.
    """
    h = np.asarray(fields_N, float)
    h_G, outside, J_0 = float(h[:c].sum()), float(np.abs(h[c:]).sum()), float(J - np.abs(h).sum())
    if not h_G > outside:
        raise ValueError(f"Assumption 4.1.5 does not hold: h_G = {h_G:g} is not above {outside:g}, the fields outside")
    if not J_0 > 0:
        raise ValueError(f"Assumption 4.1.5 does not hold: J = {J:g} is not above ||h||_1 = {np.abs(h).sum():g}")
    return h_G, J_0
