"""Algorithm 1 with a perfect verifier on an oracle of independent errors, in closed form and simulated
(TOY-COIN).

The oracle gives an error with probability eta, else the symbol 0, which is its most likely one. The verifier
rejects a string exactly if it has an error. Algorithm 1 (Li 2025, section 3.2) then erases the last B
symbols, or as many as there are, at most Q times, and refills them by the most likely symbol, or by sampling
on (the ablation of section 3.2.3).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

ARGMAX, SAMPLE = REFILLS = ("argmax", "sample")


def accuracy(length: int, eta: float, quota: int, stride: int, refill: str) -> float:
    """Return the probability that Algorithm 1 ends without an error.

    With greedy refills every position is sampled once, whatever the stride: P(Bin(D, eta) <= Q).

    >>> round(accuracy(32, 0.05, 4, 4, "argmax"), 4)
    0.9796
    >>> [round(accuracy(32, 0.05, 4, stride, "sample"), 4) for stride in (1, 4)]
    [0.9676, 0.9176]
    """
    _check(length, eta, quota, stride, refill)
    if refill == ARGMAX:
        return float(stats.binom.cdf(quota, length, eta))

    right = np.zeros((quota + 1, length + 1))  # by errors that may still come, and by position
    right[:, length] = 1.0
    for q in range(quota + 1):
        for t in reversed(range(length)):
            after = right[q - 1, t + 1 - min(stride, t + 1)] if q else 0.0
            right[q, t] = (1 - eta) * right[q, t + 1] + eta * after
    return float(right[quota, 0])


def calls(length: int, eta: float, quota: int, stride: int, refill: str) -> float:
    """Return the expected number of calls of Algorithm 1, greedy refills included.

    >>> [round(calls(32, 0.05, 4, stride, "argmax"), 2) for stride in (1, 4)]
    [33.57, 38.0]
    """
    _check(length, eta, quota, stride, refill)

    @cache
    def left(t: int, q: int) -> float:
        """Return the expected number of further calls at position t."""
        if t == length:
            return 0.0
        if q == 0:
            return 1.0 + left(t + 1, 0)
        erased = min(stride, t + 1)
        after = erased + left(t + 1, q - 1) if refill == ARGMAX else left(t + 1 - erased, q - 1)
        return 1.0 + (1 - eta) * left(t + 1, q) + eta * after

    return left(0, quota)


def block_accuracy(length: int, eta: float, block: int, n: int) -> float:
    """Return the probability that block best-of-n with a perfect verifier of blocks ends without an error.

    Raises ValueError if blocks do not fill the string. It takes n D calls.

    >>> round(block_accuracy(32, 0.05, 4, 2), 3), round(block_accuracy(32, 0.05, 4, 4), 3)
    (0.756, 0.991)
    """
    if block < 1 or length % block:
        raise ValueError(f"blocks of {block} do not fill a string of {length}")
    return float((1 - (1 - (1 - eta) ** block) ** n) ** (length // block))


def simulate(
    rng: np.random.Generator, trials: int, length: int, eta: float, quota: int, stride: int, refill: str
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Run Algorithm 1 ``trials`` times; return whether each string is right, its calls, and how many symbols
    were erased.

    Every trial keeps its own string, quota and position, and does what the printed lines say: calls are the
    length plus what was erased.
    """
    _check(length, eta, quota, stride, refill)
    wrong = np.zeros((trials, length), bool)
    at, left, made, erased = (np.full(trials, start) for start in (0, quota, 0, 0))
    place = np.arange(length)
    while len(rows := np.flatnonzero(at < length)):
        wrong[rows, at[rows]] = rng.random(len(rows)) < eta
        at[rows] += 1
        made[rows] += 1
        own = place < at[rows, None]
        rejected = rows[(left[rows] > 0) & (wrong[rows] & own).any(1)]
        back = np.minimum(stride, at[rejected])
        at[rejected] -= back
        left[rejected] -= 1
        erased[rejected] += back
        if refill == ARGMAX:
            within = (place >= at[rejected, None]) & (place < (at[rejected] + back)[:, None])
            wrong[rejected] &= ~within
            at[rejected] += back
            made[rejected] += back
    return np.logical_not(wrong.any(1)), made, erased


def simulate_blocks(
    rng: np.random.Generator, trials: int, length: int, eta: float, block: int, n: int
) -> NDArray[np.bool_]:
    """Run block best-of-n ``trials`` times: of n candidates of each block one without an error is kept, if
    there is one."""
    wrong = rng.random((trials, length // block, n, block)) < eta
    kept = np.logical_not(wrong.any(-1)).any(-1)
    return np.asarray(kept.all(-1))


def _check(length: int, eta: float, quota: int, stride: int, refill: str) -> None:
    if length < 1 or quota < 0 or stride < 1 or not 0 <= eta <= 1:
        raise ValueError(
            "a length and a stride from 1 on, a quota from 0 on and a probability are wanted, "
            f"got length {length}, stride {stride}, quota {quota}, eta {eta:g}"
        )
    if refill not in REFILLS:
        raise ValueError(f"refill must be one of {', '.join(REFILLS)}, got {refill!r}")
