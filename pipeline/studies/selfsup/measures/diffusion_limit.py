"""The limit law of what a fitted classifier gets wrong (beyond the source).

For a class h_w = sigmoid(w . phi) that holds h*, the least-squares fit to m pairs of one trajectory has in the limit

    sqrt(m) (w - w*) ~ N(0, G^-1 S G^-1),   G = E s^2 phi phi^T,   S = E s^3 phi phi^T,   s = h* (1 - h*),

the mean over pairs: the score (y - h*) s phi has conditional mean 0 and variance s^3 phi phi^T given the pair and all
that came before it, so that the dependence of a trajectory leaves no trace. Hence, to the second order in w - w*,

    m Exc -> tr(S G^-1) in the mean,   m KL -> 1/2 tr(F G^-1 S G^-1),   F = E_pi Cov_{p*}(phi | z).

No constant is fitted: how far q is from the kernel decides all three matrices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from pipeline.languages.diffusions import Array
from pipeline.studies.selfsup.measures.diffusion_recovery import Reference


class Limit(NamedTuple):
    """The limits of m E Exc and m E KL, and the forms (F, F) in standard normal numbers that m Exc and m KL tend to."""

    exc: float
    kl: float
    exc_form: Array
    kl_form: Array

    def mean_logs(self, normal_NxF: Array) -> tuple[float, float]:
        """Return E log(m Exc) and E log(m KL) in the limit, over rows of standard normal numbers."""
        exc, kl = (
            float(np.log(np.einsum("nf,fg,ng->n", normal_NxF, form, normal_NxF)).mean())
            for form in (self.exc_form, self.kl_form)
        )
        return exc, kl


def of(reference: Reference, phi: Array) -> Limit:
    """Return the limit law of a task whose features on the grid are ``phi`` (Z, Y, F)."""
    flat = phi.reshape(-1, phi.shape[-1])
    s = (reference.bayes * (1 - reference.bayes)).ravel()
    law = reference.mixture.ravel()
    G, S = ((flat * (law * s**power)[:, None]).T @ flat for power in (2, 3))
    mean = np.einsum("zy,zyf->zf", reference.joint, phi) / reference.joint.sum(1)[:, None]
    weights = reference.joint.sum(1)
    F = (flat * reference.joint.reshape(-1, 1)).T @ flat - (mean * weights[:, None]).T @ mean
    covariance = linalg.solve(G, linalg.solve(G, S, assume_a="sym").T, assume_a="sym")
    root = linalg.cholesky((covariance + covariance.T) / 2, lower=True)
    exc_form, kl_form = root.T @ G @ root, root.T @ F @ root / 2
    return Limit(float(np.trace(exc_form)), float(np.trace(kl_form)), exc_form, kl_form)
