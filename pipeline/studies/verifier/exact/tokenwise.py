"""Sampling token by token under a verifier: exact laws, expected calls, and simulations (Li 2025, section
3.1).

Laws of an oracle and values of a verifier are lists of arrays by the length of the prefix
(`pipeline.languages.constrained`): laws (S^h, S), h = 0 .. D - 1; values (S^h,), h = 0 .. D. A *call* is one
symbol drawn from the oracle (Definition 3.1.6); what is asked of the verifier does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.languages.constrained import Array, Levels, Task, prefix_mass

Ints = NDArray[np.int64]
FAILED = -1  # in place of a string
BLOCK = 64  # strings that a trial draws at a time, of which it uses those up to the first that is accepted


# Exact


def action_level_law(laws: Sequence[Array], values: Sequence[Array]) -> tuple[Array, float]:
    """Return the law of action-level rejection sampling over strings, (S^D,), and the probability that it is
    stuck.

    From a prefix it proposes a symbol and takes it with a probability proportional to the value of the longer
    prefix. With values 0 and 1 this is tokenwise rejection sampling (Definition 3.1.5). It is stuck where
    every symbol that the oracle can draw has value 0.
    """
    mass, stuck = np.ones(1), 0.0
    for law, value in zip(laws, values[1:], strict=True):
        weights = law * value.reshape(law.shape)
        total = weights.sum(1)
        stuck += float(mass[total == 0].sum())
        share = np.divide(weights, total[:, None], out=np.zeros_like(weights), where=total[:, None] > 0)
        mass = (mass[:, None] * share).ravel()
    return mass, stuck


def action_level_calls(laws: Sequence[Array], values: Sequence[Array], largest: float = 1.0) -> float:
    """Return the expected number of calls of `action_level_law`, which takes a symbol with probability value
    / largest.

    Infinite where it can be stuck. Raises ValueError if a value that can be met is above ``largest``.
    """
    mass, calls = np.ones(1), 0.0
    for law, value in zip(laws, values[1:], strict=True):
        weights = law * value.reshape(law.shape)
        reached = mass > 0
        if (value.reshape(law.shape)[reached] > largest).any():
            raise ValueError(f"a value is above {largest:g}, so that no probability of taking it can be proportional")
        total = weights.sum(1)
        if (total[reached] == 0).any():
            return float("inf")
        calls += float((mass[reached] * largest / total[reached]).sum())
        share = np.divide(weights, total[:, None], out=np.zeros_like(weights), where=total[:, None] > 0)
        mass = (mass[:, None] * share).ravel()
    return calls


def rejection_calls(task: Task) -> float:
    """Return the expected number of calls of rejection sampling (Definition 3.1.4), D / p_O(A); infinite for
    p_O(A) = 0."""
    return task.length / task.mass if task.mass > 0 else float("inf")


def total_variation(law: Array, other: Array, stuck: float = 0.0) -> float:
    """Return the total variation distance of two laws over strings; the first lacks ``stuck``, which is no
    string."""
    return 0.5 * (float(np.abs(law - other).sum()) + stuck)


def divergence(target: Array, law: Array) -> float:
    """Return KL(target || law) in nats; infinite where ``law`` lacks a string of the target."""
    seen = target > 0
    with np.errstate(divide="ignore"):
        return float((target[seen] * (np.log(target[seen]) - np.log(law[seen]))).sum())


# Simulated


@dataclass(frozen=True)
class Outcome:
    """What trials of a sampler gave: calls (N,), and the number of each string (N,), `FAILED` where there is
    none."""

    calls: Ints
    strings: Ints

    @property
    def failed(self) -> float:
        """Return the share of trials without a string."""
        return float((self.strings == FAILED).mean())

    @property
    def mean(self) -> float:
        """Return the mean number of calls."""
        return float(self.calls.mean())

    @property
    def error(self) -> float:
        """Return the standard error of the mean number of calls."""
        return float(self.calls.std(ddof=1) / np.sqrt(len(self.calls)))


def draw(rng: np.random.Generator, laws: Sequence[Array], shape: tuple[int, ...]) -> Ints:
    """Return numbers of strings, drawn symbol by symbol from the oracle."""
    prefix = np.zeros(shape, np.int64)
    for law in laws:
        prefix = prefix * law.shape[1] + _symbol(rng, law, prefix)
    return prefix


def _symbol(rng: np.random.Generator, law: Array, prefix: Ints) -> Ints:
    """Return one symbol for each prefix from its law (S^h, S). One of probability 0 is never returned."""
    cumulated = np.cumsum(law, axis=1)[prefix]
    at = rng.random(prefix.shape)[..., None] * cumulated[..., -1:]
    return (at >= cumulated).sum(-1).clip(max=law.shape[1] - 1)


def simulate_rejection(rng: np.random.Generator, task: Task, trials: int, max_calls: int) -> Outcome:
    """Run rejection sampling (Definition 3.1.4) ``trials`` times; a trial fails that would need over
    ``max_calls`` calls."""
    calls, strings = np.zeros(trials, np.int64), np.full(trials, FAILED)
    active = np.arange(trials)
    while len(active):
        drawn = draw(rng, task.laws, (len(active), BLOCK))
        accepted = task.members[drawn]
        # No more strings than the guard allows: those after it were never drawn.
        left = (max_calls - calls[active]) // task.length
        accepted &= np.arange(BLOCK) < left[:, None]
        done, first = accepted.any(1), accepted.argmax(1)
        used = np.where(done, first + 1, np.minimum(BLOCK, left))
        calls[active] += used * task.length
        strings[active[done]] = drawn[done, first[done]]
        active = active[~done & (left > BLOCK)]
    return Outcome(calls, strings)


def simulate_tokenwise(
    rng: np.random.Generator, laws: Levels, values: Levels, trials: int, max_calls: int, largest: float = 1.0
) -> Outcome:
    """Run tokenwise rejection sampling (Definition 3.1.5) ``trials`` times, or its form for values between 0
    and 1.

    A drawn symbol is taken with probability value / largest. A trial fails whose empty prefix the verifier
    rejects, and one that would need over ``max_calls`` calls.
    """
    calls, prefix, at = (np.zeros(trials, np.int64) for _ in range(3))
    strings = np.full(trials, FAILED)
    active = np.arange(trials) if values[0][0] > 0 else np.arange(0)
    while len(active):
        calls[active] += 1
        depths = at[active]
        for h in np.unique(depths).tolist():
            here = active[depths == h]
            longer = prefix[here] * laws[h].shape[1] + _symbol(rng, laws[h], prefix[here])
            taken = rng.random(len(here)) * largest < values[h + 1][longer]
            prefix[here[taken]] = longer[taken]
            at[here[taken]] += 1
        done = at[active] == len(laws)
        strings[active[done]] = prefix[active[done]]
        active = active[~done & (calls[active] < max_calls)]
    return Outcome(calls, strings)


def scan(values: Levels, symbols: int) -> tuple[int, int]:
    """Return the number of the string that a scan of the verifier finds, or `FAILED`, and how often it asked
    the verifier.

    At each position it asks for one symbol after another until one is accepted, with no call of the oracle
    (section 3.1.3).
    """
    prefix, asked = 0, 0
    for value in values[1:]:
        for symbol in range(symbols):
            asked += 1
            if value[prefix * symbols + symbol] > 0:
                prefix = prefix * symbols + symbol
                break
        else:
            return FAILED, asked
    return prefix, asked


def enumerated_calls(task: Task, values: Levels) -> float:
    """Return D + the expected number of positions with one symbol that can be completed, of two (section
    3.1.3).

    That is what tokenwise rejection costs over fair bits: one call where both are accepted, two on average
    where one is. Raises ValueError for another oracle.
    """
    if task.symbols != 2 or any((law != 0.5).any() for law in task.laws):
        raise ValueError("the count is of an oracle that draws fair bits")
    law, stuck = action_level_law(task.laws, values)
    if stuck:
        return float("inf")
    single = 0.0
    for h, value in enumerate(values[1:]):
        at = law.reshape(2**h, -1).sum(1)
        single += float(at[value.reshape(-1, 2).sum(1) == 1].sum())
    return task.length + single


def string_mass(laws: Sequence[Array]) -> Array:
    """Return the law of the oracle over strings, (S^D,)."""
    return prefix_mass(laws)[-1]
