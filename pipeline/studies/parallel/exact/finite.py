"""The finite-sample bound of Theorem 4.1.4 on two spins (Li 2025, sections 4.1.3 and 4.3.5).

Two families with one parameter in [-1, 1]: *coupled*, masks of both spins, C_AT = 1; *product*, one field for both,
masks of one spin, C_AT = N / k = 2. Of n samples with m masks each only counts are drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.languages import ising
from pipeline.languages.ising import Floats
from pipeline.studies.parallel.exact.chains import total_variation

N = 2
COUPLED, PRODUCT = FAMILIES = ["coupled", "product"]
MASKED = {COUPLED: 2, PRODUCT: 1}  # k
TENSORISATION = {COUPLED: 1.0, PRODUCT: 2.0}
RANGE = 2.0  # of the parameter


def law(family: str, parameter: float) -> Floats:
    """Return (4,) the law of a family."""
    theta = [parameter, 0, 0] if family == COUPLED else [0, parameter, parameter]
    return ising.law(np.array(theta, float), N)


def least_conditional(family: str) -> float:
    """Return beta: the least conditional probability over the parameters, at an end of their range."""
    return float(law(COUPLED, 1).min()) if family == COUPLED else float(special.expit(-2.0))


def cells(eps: float) -> int:
    """Return C_eps, cells of width eps / (2 Lip) that cover the range; the log conditionals have slopes up to 2."""
    return math.ceil(RANGE / (eps / (2 * 2.0)) - 1e-9)


@dataclass(frozen=True)
class Terms:
    """The parts of the bound: masks, samples, and the distance of the sample from the truth."""

    masks: float
    samples: float
    empirical: float


def terms(n: int, m: int, delta: float, eps: float) -> Terms:
    """Return sqrt(2^{3N} |Omega|^N C_eps / (m delta)), sqrt(ln(8 C_eps / delta) / 2n), sqrt(|Omega|^{3N} / (8 delta
    n))."""
    C = cells(eps)
    return Terms(
        math.sqrt(2 ** (3 * N) * 2**N * C / (m * delta)),
        math.sqrt(math.log(8 * C / delta) / (2 * n)),
        math.sqrt(2 ** (3 * N) / (8 * delta * n)),
    )


def bound(family: str, loss: float, parts: Terms, eps: float) -> float:
    """Return sqrt(C_AT / 2 (loss + B ln(1 / beta) + eps)) + C (Theorem 4.1.4 as its proof has it)."""
    B = parts.masks + parts.samples
    inside = loss + B * math.log(1 / least_conditional(family)) + eps
    return math.sqrt(TENSORISATION[family] / 2 * max(inside, 0.0)) + parts.empirical


@dataclass(frozen=True)
class Found:
    """One fit: distance of the fitted law from the truth, and its loss as likelihood and as divergence."""

    tv: float
    nll: float
    kl: float


def fit(rng: np.random.Generator, family: str, truth: float, n: int, m: int) -> Found:
    """Return the minimiser of the loss with m masks for each of n samples, which is in closed form for both families.

    As a divergence the loss is what is above the conditional entropy of the sample, masks averaged.
    """
    x = ising.states(N)
    counts = rng.multinomial(n, law(family, truth))
    share = counts / n
    if family == COUPLED:
        mean = float(share @ (x[:, 0] * x[:, 1]))
        found = float(np.clip(np.arctanh(np.clip(mean, -0.999999, 0.999999)), -1, 1))
        p = law(family, found)
        nll = -float(share @ np.log(p))
        entropy = float(special.entr(share).sum())
    else:
        first = rng.binomial(counts.astype(np.int64) * m, 0.5) / (n * m)  # of these masks the first spin is predicted
        up = float(first @ (x[:, 0] > 0) + (share - first) @ (x[:, 1] > 0))
        found = float(np.clip(np.arctanh(np.clip(2 * up - 1, -0.999999, 0.999999)), -1, 1))
        p = law(family, found)
        plus = float(special.expit(2 * found))
        nll = -(up * math.log(plus) + (1 - up) * math.log(1 - plus))
        table = share.reshape(2, 2)
        joint = float(special.entr(share).sum())
        marginal = [float(special.entr(table.sum(axis)).sum()) for axis in (0, 1)]
        entropy = joint - float(np.mean(marginal))
    return Found(float(total_variation(p, law(family, truth))), nll, nll - entropy)
