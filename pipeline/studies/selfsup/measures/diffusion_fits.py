"""Log-quadratic classifiers of an Ornstein-Uhlenbeck process: fitted to pairs, and measured against the truth.

In one dimension everything is a sum over a grid (`measures.diffusion_recovery`). In more, the kernel that a classifier
implies is Gaussian in z', so that its divergence and its mean are closed forms in z; what is then left to
average is averaged over points that are drawn once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pipeline.kit import intervals
from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.languages.diffusions import Array, Contrast, OrnsteinUhlenbeck, Pairs
from pipeline.models.pair_classifier import log_quadratic
from pipeline.studies.selfsup.measures import diffusion_recovery as recovery
from pipeline.studies.selfsup.measures.diffusion_recovery import QUANTILES, Recovered, Reference
from schemas.selfsup.diffusions import LOGQUAD

# Of z and z' in one dimension, in stationary standard deviations. z' reaches far: noise may be shifted by three.
Z_REACH, Z_POINTS = 4, 121
Y_REACH, Y_POINTS = 9, 1201


@dataclass(frozen=True)
class Task:
    """A contrastive task: which process, over which time, against which noise. ``drawn`` (N, 2, d) are standard normal
    numbers for averages, which more than one dimension needs. In one dimension the grid of z' goes out ``reach``
    stationary standard deviations, as finely whatever that is."""

    process: OrnsteinUhlenbeck
    eta: float
    contrast: Contrast
    drawn: Array | None = None
    reach: float = Y_REACH

    @cached_property
    def reference(self) -> Reference:
        """Return the grid, in one dimension."""
        scale = 1 / math.sqrt(self.process.rho)
        z = scale * np.linspace(-Z_REACH, Z_REACH, Z_POINTS)
        points = 1 + 2 * round((Y_POINTS - 1) / 2 * self.reach / Y_REACH)
        z_prime = scale * np.linspace(-self.reach, self.reach, points)
        return recovery.of_ou(self.process, self.eta, self.contrast, z, z_prime)

    @cached_property
    def phi(self) -> Array:
        """Return the features on the grid (Z, Y, F), in one dimension."""
        reference = self.reference
        return log_quadratic.features(reference.z[:, None, None], reference.z_prime[None, :, None])

    @cached_property
    def points(self) -> tuple[Array, Array, Array]:
        """Return (N, d) first elements, and second ones that follow and that are noise; in more than one dimension."""
        assert self.drawn is not None
        half = len(self.drawn) // 2
        first, second = self.drawn[:, 0], self.drawn[:, 1]
        z = first[:half] / math.sqrt(self.process.rho)
        follows = self.process.decay(self.eta) * z + math.sqrt(self.process.variance(self.eta)) * second[:half]
        return z, follows, self.contrast.centre(z) + self.contrast.sd * second[half : 2 * half]

    @cached_property
    def ratios(self) -> tuple[Array, Array]:
        """Return log p*/q at the points that follow, and at those that are noise; in more than one dimension."""
        z, *seconds = self.points
        follows, noise = (
            self.process.log_kernel(z, each, self.eta) - self.contrast.log_density(z, each) for each in seconds
        )
        return follows, noise

    @cached_property
    def closeness(self) -> dict[str, float]:
        """Return how close the noise is to the kernel, and the least risk (`schemas.selfsup.diffusions.Fit`)."""
        if self.process.d == 1:
            reference = self.reference
            levels = [reference.closeness(level) for level in QUANTILES]
            divergence, risk = reference.divergence, reference.bayes_risk
        else:
            follows, noise = self.ratios
            both = np.abs(np.concatenate([follows, noise]))
            levels = [float(np.exp(np.quantile(both, level))) for level in QUANTILES]
            divergence = float(follows.mean())
            # The variance of a label, averaged over both kinds of pairs.
            variances = [(special.expit(each) * special.expit(-each)).mean() for each in (follows, noise)]
            risk = float(np.mean(variances))
        return {"cq95": levels[0], "cq99": levels[1], "kl_star_q": divergence, "eps_star": risk}

    def measure(self, weights: Array) -> Recovered:
        """Return what the classifier with these weights (F,) recovers of the kernel."""
        return self.reference.measure(self.phi @ weights) if self.process.d == 1 else self._drawn(weights)

    def _drawn(self, weights: Array) -> Recovered:
        process, d, eta = self.process, self.process.d, self.eta
        a, s2 = process.decay(eta), process.variance(eta)
        z, follows, noise = self.points
        g_follows, g_noise = (log_quadratic.features(z, each) @ weights for each in (follows, noise))
        true_follows, true_noise = self.ratios
        exc = [
            np.square(special.expit(g) - special.expit(true))
            for g, true in ((g_follows, true_follows), (g_noise, true_noise))
        ]
        quadratic, linear = self._exponent(weights)
        precision, cross = -2 * quadratic[d:, d:], quadratic[:d, d:] * 2
        eigenvalues = np.linalg.eigvalsh(precision)
        if eigenvalues[0] <= 0:  # p is no density
            nan = math.nan
            return Recovered(float(np.mean(exc)), nan, nan, nan, nan, nan)
        mean = (z @ cross + linear[d:]) @ np.linalg.inv(precision)
        off = mean - a * z
        spread = s2 * np.trace(precision) - d - np.log(s2 * eigenvalues).sum()
        # log of the mass: log p(z, z') at any z', less the log of the normalised density there.
        log_p = g_follows + self.contrast.log_density(z, follows)
        inside = np.einsum("ni,ij,nj->n", follows - mean, precision, follows - mean)
        normed = (np.log(eigenvalues).sum() - d * math.log(2 * math.pi) - inside) / 2
        with np.errstate(over="ignore"):
            mass, p = np.exp(log_p - normed), np.exp(log_p)
        return Recovered(
            exc=float(np.mean(exc)),
            kl=float((spread + np.einsum("ni,ij,nj->n", off, precision, off).mean()) / 2),
            l1=float(np.abs(p - np.exp(process.log_kernel(z, follows, eta))).mean()),
            mass_err=float(np.abs(mass - 1).mean()),
            slope=float((z * mean).sum() / (z**2).sum()),
            drift_rmse=float(np.sqrt((off**2).sum(1).mean()) / eta),
        )

    def _exponent(self, weights: Array) -> tuple[Array, Array]:
        """Return the symmetric matrix (2d, 2d) and the vector (2d,) of log p = g + log q as a polynomial of (z, z').

        log q is a polynomial as well: the difference of log p* and of the true weights.
        """
        d, a, s2 = self.process.d, self.process.decay(self.eta), self.process.variance(self.eta)
        left = weights - log_quadratic.truth(self.process, self.eta, self.contrast)
        quadratic = np.zeros((2 * d, 2 * d))
        pairs = np.triu_indices(2 * d)
        quadratic[pairs] = left[: len(pairs[0])]
        quadratic = (quadratic + quadratic.T) / 2
        kernel = np.kron(np.array([[-(a**2), a], [a, -1]]) / (2 * s2), np.eye(d))
        return quadratic + kernel, left[len(pairs[0]) : -1]

    def row(self, process_id: str, weights: Array, m: int, seed: int) -> dict[str, Any]:
        """Return a row of `schemas.selfsup.diffusions.Fit`: what a classifier with these weights recovers."""
        found = {name: _null(value) for name, value in self.measure(weights)._asdict().items()}
        return self.about(process_id) | {"T": 2 * m * self.eta, "m": m, "model": LOGQUAD, "seed": seed} | found

    def about(self, process_id: str) -> dict[str, Any]:
        """Return what all rows of a task have in common."""
        q = self.contrast
        law = {"q_id": q.name, "q_kind": q.kind, "mu_q": q.shift, "sd_q": q.sd, "eta": self.eta}
        return {"process_id": process_id, "d": self.process.d} | law | self.closeness


def _null(value: float) -> float | None:
    """Return a number as tables store it: null for what is no number, or overflows."""
    return value if math.isfinite(value) else None


def fitted(pairs: Pairs, m: int) -> Array:
    """Return the weights that are fitted to the first ``m`` pairs."""
    return log_quadratic.fit(Pairs(pairs.x[:m], pairs.x_prime[:m], pairs.y[:m]))


def quotient(
    found: Measurements, comparison: Comparison, first: ArrayLike, second: ArrayLike, confidence: float
) -> None:
    """Measure how many times the geometric mean of ``second`` that of ``first`` is, paired by trajectory.

    An empty sample is one that the parameters leave out.
    """
    one, other = np.asarray(first, float), np.asarray(second, float)
    if not len(one) or not len(other):
        found.not_run(comparison)
        return
    logs = intervals.mean(np.log(one) - np.log(other), confidence)
    value, lo, hi = (float(np.exp(number)) for number in logs[:3])
    found.put(comparison, logs._replace(value=value, lo=lo, hi=hi))
