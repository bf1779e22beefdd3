"""What the classifier of pairs determines, by formulas (Liu 2024, Lemma 1, Theorems 2 and 3; chapter 5.1, 5.2, 5.4)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.languages.diffusions import CONDITIONAL, MARGINAL, Contrast, OrnsteinUhlenbeck, perturbed, random_chain
from pipeline.models.pair_classifier import log_quadratic
from pipeline.studies.selfsup.measures import diffusion_bounds as bounds
from pipeline.studies.selfsup.measures import diffusion_recovery as recovery
from pipeline.studies.selfsup.names import SOURCE
from schemas.theory import rows

if TYPE_CHECKING:
    from pipeline.studies.selfsup.diffusion_params import RatiosCheck

LEMMA_1, THEOREM_2, THEOREM_3 = (SOURCE.format(what) for what in ("Lemma 1", "Theorem 2", "Theorem 3"))
# Of finite differences for a second derivative at five points, whose error is of order STEP^4.
STEP, STENCIL = 1e-3, np.array([-1, 16, -30, 16, -1]) / 12


def check(entry: RatiosCheck, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Lemma 1, Eqs. 2.2 to 2.4, 2.11, 2.12, 2.24, 2.30 and 2.32."""
    rng = stream(seed, entry.study, key)
    found = [
        *_round_trip(entry, rng),
        *_population(entry, rng),
        *_curvature(entry, rng),
        *_closeness(entry),
        *_normalisation(entry, rng),
        *_second_factor(entry),
    ]
    return rows(entry.study, key, LEMMA_1, ({"claim": "15", "part": "identities"} | each for each in found))


def _round_trip(entry: RatiosCheck, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield rows on h* -> p*, and on the excess risk, for random chains (chapter 5.1)."""
    back, split, doubled, numerator = [], [], [], []
    for _ in range(entry.draws):
        chain = random_chain(rng, int(rng.integers(3, 12)))
        P, q, pi = chain.kernel, chain.noise, chain.stationary
        bayes = bounds.classifier(P, q)
        back.append(np.abs(bayes * q / (1 - bayes) - P).max())
        h = rng.random(P.shape)
        split.append(abs(bounds.risk(chain, h) - bounds.risk(chain, bayes) - bounds.excess_risk(chain, h)))
        sides = bounds.doubled(chain, perturbed(rng, P, rng.uniform(0.05, 0.9)))
        doubled.append(sides.lhs / sides.rhs)
        # Bayes' rule with the numerator that Eq. 2.11 prints in its third line: pairs with label 0.
        negative, both = pi[:, None] * q, pi[:, None] * (P + q)
        numerator.append(np.abs(negative / both - bayes).max())
    size = f"{entry.draws} random chains of 3 to 11 states"
    yield {
        "check": "round-trip",
        "statement": "h* q/(1 - h*) is the kernel: largest error",
        "size": size,
        "measured": max(back),
        "comparison": "<=",
        "bound": 1e-12,
        "source": SOURCE.format("Eq. 2.12"),
    }
    yield {
        "check": "excess-risk",
        "statement": "R(h) - R(h*) is E (h - h*)^2 for random h: largest difference",
        "size": size,
        "measured": max(split),
        "comparison": "<=",
        "bound": 1e-12,
        "source": SOURCE.format("Eq. 2.10"),
    }
    statement = "Bayes' rule gives h*: largest difference between both sides of Eq. 2.11"
    notes = {"size": size, "erratum": "selfsup-eq-2-11", "source": SOURCE.format("Eq. 2.11")}
    yield notes | {
        "check": "bayes-printed",
        "statement": f"{statement}, with label 0 in the numerator",
        "form": "printed",
        "measured": max(numerator),
        "comparison": ">=",
        "bound": 0.01,
    }
    yield notes | {
        "check": "bayes-corrected",
        "statement": f"{statement}, with label 1 in the numerator",
        "form": "corrected",
        "measured": max(back),
        "comparison": "<=",
        "bound": 1e-12,
    }
    statement = "E_{z' ~ p*} (h - h*)^2 over the excess risk, which Theorem 3 takes to be 2 eps_tr: largest"
    notes = {"size": size, "erratum": "selfsup-factor-two", "source": SOURCE.format("Eq. 2.32")}
    yield notes | {
        "check": "factor-two-printed",
        "statement": f"{statement} (the text after Eq. 2.32: at most 1)",
        "form": "printed",
        "measured": max(doubled),
        "comparison": ">=",
        "bound": 1.001,
    }
    yield notes | {
        "check": "factor-two-corrected",
        "statement": f"{statement} (Eq. 2.30: at most 2)",
        "form": "corrected",
        "measured": max(doubled),
        "comparison": "<=",
        "bound": 2.0,
    }


def _population(entry: RatiosCheck, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield rows on the Ornstein-Uhlenbeck process: its Bayes classifier is log-quadratic, and no other h has a
    lower risk (chapter 4, E1)."""
    process = OrnsteinUhlenbeck(entry.rho)
    z, z_prime = np.linspace(-6, 6, 161), np.linspace(-9, 9, 601)
    scale = 1 / math.sqrt(entry.rho)
    phi = log_quadratic.features(scale * z[:, None, None], scale * z_prime[None, :, None])
    apart, split = [], []
    laws = [Contrast(MARGINAL, 0.0, scale), Contrast(MARGINAL, 1.5, 2 * scale), Contrast(CONDITIONAL, 0.5, scale)]
    for contrast in laws:
        reference = recovery.of_ou(process, entry.eta, contrast, scale * z, scale * z_prime)
        weights = log_quadratic.truth(process, entry.eta, contrast)
        apart.append(np.abs(phi @ weights - reference.log_p + reference.log_q).max())
        # The two labels apart, so that the identity of Lemma 1 is not assumed: sums of (1 - h)^2 and of h^2.
        noise = reference.mixture - reference.joint / 2
        for _ in range(entry.perturbations):
            h = np.clip(reference.bayes + rng.uniform(-0.3, 0.3) * np.sin(phi @ rng.normal(size=len(weights))), 0, 1)
            risk = (reference.joint / 2 * (1 - h) ** 2).sum() + (noise * h**2).sum()
            split.append(abs(risk - reference.bayes_risk - (reference.mixture * (h - reference.bayes) ** 2).sum()))
    names = ", ".join(contrast.name for contrast in laws)
    yield {
        "check": "log-quadratic",
        "statement": "log p* - log q is a quadratic function of (z, z'): largest error of its coefficients' value",
        "size": f"eta = {entry.eta:g}, q = {names}",
        "measured": max(apart),
        "comparison": "<=",
        "bound": 1e-10,
        "source": SOURCE.format("section 2.1.1.1"),
    }
    yield {
        "check": "population-optimum",
        "statement": "Away from h* the risk is larger by E (h - h*)^2 exactly: largest difference",
        "size": f"{entry.perturbations} random h for each of q = {names}",
        "measured": max(split),
        "comparison": "<=",
        "bound": 1e-9,
    }


def _curvature(entry: RatiosCheck, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield rows on r'' (chapter 5.2, Eqs. 2.23 to 2.26)."""
    u, delta = rng.uniform(0.01, 0.99, entry.points), rng.uniform(-0.7, 1 / 6, entry.points)
    values = np.stack([bounds.excess(delta + step * STEP, u) for step in (-2, -1, 0, 1, 2)])
    differences = STENCIL @ values / STEP**2
    off = np.abs(differences - bounds.excess_curvature(delta, u))
    size = f"{entry.points} random u in (0, 1), delta in (-0.7, 1/6]"
    yield {
        "check": "curvature-closed-form",
        "statement": "r'' is 2 u^2 v^2 (1 - 2 u delta)/(1 + u delta)^4: largest difference from finite differences",
        "size": size,
        "measured": off.max(),
        "comparison": "<=",
        "bound": 1e-6,
        "source": SOURCE.format("Eq. 2.23"),
        "detail": f"step {STEP:g}",
    }
    u_grid = np.linspace(1e-6, 1 - 1e-6, 400)[:, None]
    delta_grid = np.linspace(-1 + 1e-9, 1 / 6, 400)[None, :]
    ratio = bounds.excess_curvature(delta_grid, u_grid) / bounds.least_curvature(u_grid)
    yield {
        "check": "curvature-bound",
        "statement": "r'' is at least 2 u^2 v^3 for delta in (-1, 1/6]: least quotient",
        "size": "400 x 400 values of u and delta",
        "measured": ratio.min(),
        "comparison": ">=",
        "bound": 1.0,
        "source": SOURCE.format("Eq. 2.26"),
        "detail": f"the quotient is at least {ratio.min():.9f}",
    }
    half = bounds.excess_curvature(np.linspace(-0.999, 0.499, 400)[None, :], u_grid)
    yield {
        "check": "curvature-further",
        "statement": "r'' is positive for all delta < 1/2, so that 7/6 is not sharp: least",
        "size": "400 x 400 values of u and delta up to 0.499",
        "measured": half.min(),
        "comparison": ">=",
        "bound": 0.0,
        "source": THEOREM_2,
    }
    p, q = np.array([1.0, 30.0]), np.array([1.0, 30.0])  # the same ratio, in two units of length
    printed = bounds.printed_curvature(p, q, 1.1)
    truth = bounds.excess_curvature(np.array(0.05), p / (p + q))
    notes = {"erratum": "selfsup-eq-2-24", "source": SOURCE.format("Eq. 2.24"), "size": "p* = q = 1, and 30"}
    yield notes | {
        "check": "eq-2-24-printed",
        "statement": "The printed lower bound on r'' over r'', which depends on p*/q alone, at p* = q = 30",
        "form": "printed",
        "measured": (printed / truth)[1],
        "comparison": ">=",
        "bound": 1.0 + 1e-6,
        "detail": f"at p* = q = 1 the quotient is {(printed / truth)[0]:.3g}",
    }
    yield notes | {
        "check": "eq-2-24-corrected",
        "form": "corrected",
        "statement": "2 u^2 v^3 over r'' at delta = 0.05, in both units: largest",
        "measured": (bounds.least_curvature(p / (p + q)) / truth).max(),
        "comparison": "<=",
        "bound": 1.0,
    }


def _closeness(entry: RatiosCheck) -> Iterator[dict[str, Any]]:
    """Yield rows on Eq. 2.4: on R^d no constant bounds p*/q from both sides."""
    process = OrnsteinUhlenbeck(entry.rho)
    contrast = Contrast(MARGINAL, 0.0, 1 / math.sqrt(entry.rho))
    largest = []
    for reach in (4, 8, 16):
        at = np.linspace(-reach, reach, 401) / math.sqrt(entry.rho)
        pair = at[:, None, None], at[None, :, None]
        ratio = process.log_kernel(*pair, entry.eta) - contrast.log_density(*pair)
        largest.append(float(np.abs(ratio).max()))
    yield {
        "check": "closeness-printed",
        "erratum": "selfsup-closeness",
        "form": "printed",
        "statement": "Eq. 2.4 asks for one c_q at all z, z': log c_q on a box of twice the side over that on the box, "
        "least",
        "size": f"OU, rho = {entry.rho:g}, eta = {entry.eta:g}, q = pi, |z|, |z'| <= 4, 8, 16 standard deviations",
        "measured": min(b / a for a, b in pairwise(largest)),
        "comparison": ">=",
        "bound": 3.9,
        "source": SOURCE.format("Eq. 2.4"),
        "detail": "log c_q " + ", ".join(f"{value:.3g}" for value in largest),
    }


def _normalisation(entry: RatiosCheck, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield rows on Eq. 2.22, which takes p(z, .) to integrate to 1, as Eq. 2.12 does not make it do."""
    masses, signed, normed = [], [], []
    for _ in range(entry.draws):
        chain = random_chain(rng, int(rng.integers(3, 12)))
        law = chain.stationary[:, None] * chain.kernel
        h = bounds.classifier(chain.kernel * (1 + rng.uniform(0, 1 / 6, chain.kernel.shape)), chain.noise)
        p = h * chain.noise / (1 - h)
        mass = p.sum(1)
        masses.append(np.abs(mass - 1).max())
        signed.append(float((law * np.log(chain.kernel / p)).sum()))
        normed.append(float((law * np.log(chain.kernel / p * mass[:, None])).sum()))
    notes = {
        "size": f"{entry.draws} random chains, h of p* (1 + delta), delta in [0, 1/6]",
        "erratum": "selfsup-normalisation",
        "source": SOURCE.format("Eq. 2.22"),
    }
    yield notes | {
        "check": "normalisation-printed",
        "form": "printed",
        "statement": "E log p*/p is a divergence, if p is as Eq. 2.12 gives it: largest (a divergence is not negative)",
        "measured": max(signed),
        "comparison": "<=",
        "bound": -1e-6,
        "detail": f"rows of p sum to 1 within {max(masses):.2g}",
    }
    yield notes | {
        "check": "normalisation-corrected",
        "form": "corrected",
        "statement": "With rows of p normalised it is not negative: least",
        "measured": min(normed),
        "comparison": ">=",
        "bound": 0.0,
    }


def _second_factor(entry: RatiosCheck) -> Iterator[dict[str, Any]]:
    """Yield rows on the second factor of Eq. 2.32 where q does not depend on z (chapter 3.4, item 2).

    Its integrand is p*^5/q^2 in the tails. With q = N(0, v) in one dimension the integral over z' and z is finite
    exactly if v > 2 a^2/rho + 2 s^2/5; with q = pi, v = 1/rho, that is a^2 < 3/8.
    """
    process = OrnsteinUhlenbeck(entry.rho)
    a2, s2 = process.decay(entry.eta) ** 2, process.variance(entry.eta)
    least = 2 * a2 / entry.rho + 2 * s2 / 5
    notes = {
        "size": f"OU, rho = {entry.rho:g}, eta = {entry.eta:g}, d = 1, p = p*",
        "source": SOURCE.format("Eq. 2.33"),
        "erratum": "selfsup-second-factor",
    }

    def growth(variance: float) -> float:
        contrast = Contrast(MARGINAL, 0.0, math.sqrt(variance))
        return 2 * math.log10(
            bounds.second_factor(process, entry.eta, contrast, 12)
            / bounds.second_factor(process, entry.eta, contrast, 8)
        )

    yield notes | {
        "check": "second-factor-printed",
        "form": "printed",
        "statement": "E (max(p, p*) + q)^4/q^2 with the q(z') of section 2.1.1.2, q = pi: decades by which it grows "
        "where |z| is cut at 12 standard deviations instead of 8",
        "measured": growth(1 / entry.rho),
        "comparison": ">=",
        "bound": 5.0,
    }
    conditional = Contrast(CONDITIONAL, 0.0, math.sqrt(2 * entry.eta))
    near, far = (bounds.second_factor(process, entry.eta, conditional, reach) for reach in (8, 12))
    yield notes | {
        "check": "second-factor-corrected",
        "form": "corrected",
        "statement": "The same with the q(z'|z) = N(z, 2 eta) that the proof uses: relative growth",
        "measured": abs(far / near - 1),
        "comparison": "<=",
        "bound": 1e-9,
    }
    factors = [bounds.second_factor(process, eta, Contrast(CONDITIONAL, 0.0, math.sqrt(2 * eta))) for eta in entry.etas]
    slope = float(np.polyfit(np.log(entry.etas), np.log(factors), 1)[0])
    yield {
        "check": "second-factor-slope",
        "claim": "16",
        "part": "scaling",
        "source": THEOREM_3,
        "statement": "The second factor of Eq. 2.32 for p = p*, q = N(z, 2 eta) grows as eta^(-d/2): slope of its "
        "logarithm against log eta",
        "size": f"OU, rho = {entry.rho:g}, d = 1, eta in {entry.etas}",
        "measured": slope,
        "comparison": "within",
        "bound": -0.485,
        "tolerance": 0.065,
        "detail": ", ".join(f"{value:.3f}" for value in factors),
    }
    yield {
        "check": "second-factor-wide",
        "size": notes["size"],
        "source": notes["source"],
        "statement": "A marginal q = N(0, v) gives a finite value for v > 2 a^2/rho + 2 s^2/5: decades of growth at a "
        "v a quarter above that",
        "measured": growth(1.25 * least),
        "comparison": "<=",
        "bound": 0.01,
        "detail": f"2 a^2/rho + 2 s^2/5 = {least:.4f}",
    }
    yield {
        "check": "second-factor-narrow",
        "size": notes["size"],
        "source": notes["source"],
        "statement": "and none below: decades of growth at a v a tenth below that",
        "measured": growth(0.9 * least),
        "comparison": ">=",
        "bound": 1.0,
    }
