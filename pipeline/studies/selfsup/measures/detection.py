"""How many triples tell one HMM from another that predicts single tokens alike: the power of two tests.

The null model has the law P over triples, the other one P'. *The likelihood ratio* of both is the best test there is,
for who knows both (Neyman and Pearson): its mean and variance over n triples follow from those of log(P'/P) under each,
and it is nearly normal. *Pearson's test* holds counts against P alone, without a second model: its statistic is nearly
chi-squared with d^3 - 1 degrees of freedom, under P' noncentral with n chi2(P', P) (Patnaik 1949; Cochran 1952).

Near angle 0, chi2 is I theta^2 with I the Fisher information along the turn, so that n falls as theta^-2.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy import optimize, stats

from pipeline.languages import hmm
from pipeline.languages.hmm import Floats


def chi_squared(other: Floats, law: Floats) -> float:
    """Return sum (P' - P)^2 / P over all cells."""
    return float((np.square(other - law) / law).sum())


def information(emission: Floats, transition: Floats) -> float:
    """Return the Fisher information of the angle at 0 in one triple: sum (dP/dtheta)^2 / P."""
    step = 1e-4
    ahead, behind = (hmm.joint(*hmm.twin(emission, transition, hmm.rotation(angle))) for angle in (step, -step))
    law = hmm.joint(emission, transition)
    return float((np.square((ahead - behind) / (2 * step)) / law).sum())


class Test(Protocol):
    """A test of one law against another."""

    def needed(self, power: float) -> float:
        """Return how many triples give this power."""

    def near(self, power: float, divergence: float) -> float:
        """Return how many triples would if the laws were close, with this chi-squared divergence: I theta^2."""

    def power(self, n: float) -> float:
        """Return the power with ``n`` triples."""

    def rejects(self, counts: Floats) -> Floats:
        """Return (draws,) what the test says of each sample of counts (draws, ...)."""


class Ratio:
    """The test of two known laws by their likelihood ratio, at a level alpha."""

    def __init__(self, law: Floats, other: Floats, alpha: float) -> None:
        self.scores = np.log(other / law)
        self._alpha = alpha
        self._means, self._spreads = zip(*(self._moments(each) for each in (law, other)), strict=True)

    def _moments(self, law: Floats) -> tuple[float, float]:
        mean = float((law * self.scores).sum())
        return mean, float(np.sqrt((law * np.square(self.scores - mean)).sum()))

    def needed(self, power: float) -> float:
        """Return how many triples give this power."""
        apart = self._means[1] - self._means[0]  # the sum of both Kullback-Leibler divergences
        reach = stats.norm.ppf(1 - self._alpha) * self._spreads[0] + stats.norm.ppf(power) * self._spreads[1]
        return float((reach / apart) ** 2)

    def near(self, power: float, divergence: float) -> float:
        """Return (z_alpha + z_power)^2 / divergence: close laws have scores of one variance, the divergence."""
        return float((stats.norm.ppf(1 - self._alpha) + stats.norm.ppf(power)) ** 2 / divergence)

    def power(self, n: float) -> float:
        """Return the power with ``n`` triples."""
        bar = self._bar(n)
        return float(stats.norm.sf((bar - n * self._means[1]) / (np.sqrt(n) * self._spreads[1])))

    def rejects(self, counts: Floats) -> Floats:
        """Return (draws,) whether each sample (draws, d, d, d) of counts is taken for one of the other law."""
        n = counts[0].sum()
        return np.asarray((counts * self.scores).sum((1, 2, 3)) > self._bar(n))

    def _bar(self, n: float) -> float:
        return float(n * self._means[0] + stats.norm.ppf(1 - self._alpha) * np.sqrt(n) * self._spreads[0])


class Pearson:
    """Pearson's test of one law, at a level alpha, by all triples or by a marginal."""

    def __init__(self, law: Floats, other: Floats, alpha: float) -> None:
        self._law, self._alpha = law, alpha
        self._freedom = law.size - 1
        self._apart = chi_squared(other, law)

    def needed(self, power: float) -> float:
        """Return how many triples give this power."""
        return self.near(power, self._apart)

    def near(self, power: float, divergence: float) -> float:
        """Return how many triples give this power at a chi-squared divergence, which is all that counts."""
        bar = stats.chi2.ppf(1 - self._alpha, self._freedom)

        def short(shift: float) -> float:
            return float(stats.ncx2.sf(bar, self._freedom, shift) - power)

        top = 1.0
        while short(top) < 0:
            top *= 2
        return float(optimize.brentq(short, 1e-9, top, xtol=1e-10) / divergence)

    def power(self, n: float) -> float:
        """Return the power with ``n`` triples; that of equal laws is the level."""
        bar = stats.chi2.ppf(1 - self._alpha, self._freedom)
        shift = n * self._apart
        return float(stats.ncx2.sf(bar, self._freedom, shift) if shift > 0 else self._alpha)

    def rejects(self, counts: Floats) -> Floats:
        """Return (draws,) whether each sample of counts (draws, ...) is too far from the law."""
        axes = tuple(range(1, counts.ndim))
        expected = counts[0].sum() * self._law
        statistic = (np.square(counts - expected) / expected).sum(axes)
        return np.asarray(statistic > stats.chi2.ppf(1 - self._alpha, self._freedom))
