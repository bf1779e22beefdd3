"""Strongly ferromagnetic models: what is reached, what is stuck, and what separates the two (Li 2025, section 4.1.4.2).

The family of Definition 4.1.12 with one field h_G / c on each of ``c`` clique spins, none elsewhere, and coupling
J = J_0 + h_G, which is Assumption 4.1.5. Bounds are those of the source; everything else is exact, by lumped chains.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.languages import ising
from pipeline.languages.ising import Floats
from pipeline.studies.parallel.exact import chains

ROUNDING = 10**6  # steps, beyond which powers of a matrix are not trusted
LONGEST = 1e300  # steps: more are not told from each other
MIXED = 1024  # steps after which a clique that is stuck for longer has forgotten where in its well it started


@dataclass(frozen=True)
class Clique:
    """A compliant model: its size, spins in all, J_0 and h_G. Raises ValueError if it is none."""

    c: int
    N: int
    J0: float
    h_G: float

    def __post_init__(self) -> None:
        if not 1 < self.c <= self.N or not self.J0 > 0 or not self.h_G > 0:
            raise ValueError(f"expected 1 < c <= N, J0 > 0 and h_G > 0 (Assumption 4.1.5), got {self}")

    @property
    def J(self) -> float:
        """Return the coupling, J_0 + ||h||_1."""
        return self.J0 + self.h_G

    @property
    def h(self) -> float:
        """Return the field on each clique spin."""
        return self.h_G / self.c

    @property
    def start(self) -> int:
        """Return the largest number of +1 spins with a sum of at most -2: the worst start of Proposition 4.1.5."""
        return (self.c - 2) // 2

    def gibbs(self, k: int) -> Floats:
        """Return k-Gibbs on the number of +1 clique spins."""
        return chains.lumped_gibbs(self.N, self.c, k, self.J, self.h)

    def independent(self) -> Floats:
        """Return independent parallel sampling on that number."""
        return chains.lumped_independent(self.c, self.J, self.h)


# Proposition 4.1.4: k-Gibbs reaches the mode


def reach_rate(model: Clique, k: int, printed: bool = False) -> float:
    """Return c_R1, the bound on the probability that a step does not end in R_1; ``printed`` as in the main text.

    The main text has e^(2 J_0 + 2 c - 2) where the proof has e^(2 J_0) + 2^c - 2.
    """
    J0, h_G, c = model.J0, model.h_G, model.c
    top = 2 * (J0 + h_G)
    rest = 2 * J0 + 2 * c - 2 if printed else np.logaddexp(2 * J0, math.log(2**c - 2))
    return 1 - all_masked(model.N, c, k) * float(special.expit(top - rest))


def all_masked(N: int, c: int, k: int) -> float:
    """Return C(N-c, k-c) / C(N, k): the probability that all of the clique is masked."""
    return dict(chains.hypergeometric(N, c, k)).get(c, 0.0)


def reach_steps(model: Clique, k: int, delta: float) -> int:
    """Return T of Proposition 4.1.4. Raises ValueError for k < c, where it says nothing."""
    if k < model.c:
        raise ValueError(f"Proposition 4.1.4 needs k >= c, got k = {k} and c = {model.c}")
    return math.ceil(math.log(delta) / math.log(reach_rate(model, k)))


def misses(P: Floats, steps: int) -> float:
    """Return the probability not to reach the last state in so many steps, from the worst start."""
    return float(chains.avoids(P, np.arange(len(P) - 1), steps).max())


def steps_needed(P: Floats, delta: float, most: int = 10**9) -> int | None:
    """Return the fewest steps after which `misses` is at most ``delta``, by bisection; None beyond ``most``."""
    high = 1
    while misses(P, high) > delta:
        high *= 2
        if high > most:
            return None
    low = high // 2  # not enough, or 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if misses(P, middle) <= delta else (middle, high)
    return high


# Proposition 4.1.5: independent parallel sampling is stuck


def stuck_rate(c: int, J0: float) -> float | None:
    """Return c_stuck = 2 r^2 / c with r = -1 + tanh(J_0) c / 2; None where r <= 0, where its square says nothing."""
    r = -1 + math.tanh(J0) * c / 2
    return 2 * r**2 / c if r > 0 else None


def unguarded_rate(c: int, J0: float) -> float:
    """Return c_stuck as printed, without asking for r > 0."""
    return 2 * (-1 + math.tanh(J0) * c / 2) ** 2 / c


def stuck_steps(rate: float | None, delta: float) -> int:
    """Return T = floor(delta / 2 e^c_stuck); 0 without a rate."""
    return 0 if rate is None else math.floor(delta / 2 * math.exp(rate))


def stuck_stay(model: Clique, steps: int) -> float:
    """Return the probability that the clique's sum stays at most -2 for so many steps, from the worst start."""
    low = np.arange(model.start + 1)
    return float(chains.avoids(model.independent(), low, steps)[model.start])


def stays_for(model: Clique, delta: float) -> float:
    """Return the most steps for which `stuck_stay` is at least 1 - delta.

    By bisection; beyond `ROUNDING` steps by the quasi-stationary law, since powers of a matrix are no longer exact to
    rounding: what leaves it in a step is a sum of small positive numbers, and exact.
    """
    high = 1
    while stuck_stay(model, high) >= 1 - delta:
        high *= 2
        if high > ROUNDING:
            return _stays_long(model, delta)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if stuck_stay(model, middle) >= 1 - delta else (low, middle)
    return float(low)


def _stays_long(model: Clique, delta: float) -> float:
    """Return T with h(u) e^(-leak T) = 1 - delta, what is left in the long run from the worst start u; at most
    `LONGEST`."""
    P, low = model.independent(), np.arange(model.start + 1)
    mixed = np.linalg.matrix_power(P[np.ix_(low, low)], MIXED)  # rank one: the same row everywhere, but for a factor
    quasi = mixed[-1] / mixed[-1].sum()
    left = mixed.sum(1) / (quasi @ mixed.sum(1))
    leak = float(quasi @ P[low, model.start + 1 :].sum(1))
    return min((math.log(left[-1]) - math.log(1 - delta)) / leak, LONGEST) if leak > 1 / LONGEST else LONGEST


# Corollary 4.1.1: one step against M


def separating(delta: float, M: int) -> tuple[int, float, float]:
    """Return the smallest c, J_0 and h_G of Assumption 4.1.6."""
    c = math.ceil(8 * (1 + math.log(4 * M / delta)))
    return c, 0.5 * c * math.log(2), 0.5 * math.log(2 * (4 - delta) / delta)


def fewest_masked(N: int, c: int, delta: float) -> int:
    """Return the smallest k of Assumption 4.1.7."""
    return max(c, math.ceil(N - delta * (N + 1) / ((4 - delta) * c + delta)))


def one_step(model: Clique, k: int) -> float:
    """Return the probability that one step of k-Gibbs ends in R_1, from the worst start with a sum of at most -2.

    Only masks that take in all -1 spins can do that. For any number of spins.
    """
    c = model.c
    weights = chains.clique_log_weights(c, model.J, model.h)
    found = []
    for u in range(model.start + 1):
        total = 0.0
        for m, chance in chains.hypergeometric(model.N, c, k):
            a = m - (c - u)  # of the masked spins these were +1, so that all that are -1 are masked
            if a >= 0:
                redrawn = special.log_softmax(chains.log_choose(m) + weights[u - a : u - a + m + 1])
                total += chance * dict(chains.hypergeometric(c, u, m))[a] * math.exp(redrawn[-1])
        found.append(total)
    return min(found)


def avoids_mode(model: Clique, steps: int) -> float:
    """Return the probability that independent parallel sampling avoids R_1 for so many steps, from the worst start."""
    outside = np.arange(model.c)
    return float(chains.avoids(model.independent(), outside, steps)[: model.start + 1].min())


# Proposition 4.3.3: modes


@dataclass(frozen=True)
class Modes:
    """Ratios of probabilities: least of R_1 over most of R_-1, least of R_-1 over most of R_0, and R_1 over its mirror
    image in R_-1, smallest and largest."""

    up_down: float
    down_rest: float
    mirror: tuple[float, float]


def modes(theta: Floats, N: int, c: int) -> Modes:
    """Return these ratios of a model whose clique is the first ``c`` spins."""
    p, x = ising.law(theta, N), ising.states(N)
    sums = x[:, :c].sum(1)
    up, down, rest = (p[sums == c], p[sums == -c], p[np.abs(sums) < c])
    mirrored = up / down  # in both, the other spins come in the same order
    return Modes(
        float(up.min() / down.max()), float(down.min() / rest.max()), (float(mirrored.min()), float(mirrored.max()))
    )


def compliant(rng: np.random.Generator) -> tuple[Floats, int, int, float, float]:
    """Return a random model under Assumption 4.1.5 whose fields are not uniform: theta, N, c, h_G, J_0."""
    N = int(rng.integers(2, 8))
    c = int(rng.integers(2, N + 1))
    h = rng.normal(0, 0.5, N)
    h[:c] += (np.abs(h[c:]).sum() - h[:c].sum() + rng.uniform(0.01, 1)) / c
    J0 = float(rng.uniform(0.01, 1.5))
    J = float(np.abs(h).sum() + J0)
    h_G, J0 = ising.assumption(J, h, c)
    return ising.clique(N, c, J, h), N, c, h_G, J0
