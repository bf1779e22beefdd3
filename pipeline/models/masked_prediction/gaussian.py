"""Means and transitions of a conditionally Gaussian HMM from what predictors say (Liu 2024, Theorems 5, 8 and 9).

A predictor of x_2 from x_1 is f(x) = M T phi(x). Far out it shows the columns of M T, between them the posterior, and
from its logarithms the differences of means; what is left are two candidates, M and its mirror image H M (Lemma 7), of
which one has a stochastic T.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import optimize

from pipeline.errors import SandglassError
from pipeline.languages import gaussian_hmm
from pipeline.languages.hmm import Floats
from pipeline.models.masked_prediction import tensors
from pipeline.models.masked_prediction.fitting import through_scaling, transition_of

Oracle = Callable[[Floats], Floats]  # points (d, n) to predictions (d, n)
FAR = 1e6  # distance at which a posterior is 0 or 1
SAME = 1e-6  # relative distance below which two predictions are one


class Candidate(NamedTuple):
    """M (d, k) and T (k, k) that give the predictor, and the sums of T's columns (k,): 1, or -1 of the mirror image."""

    means: Floats
    transition: Floats
    sums: Floats


def recover(oracle: Oracle, dimension: int, states: int, rng: np.random.Generator) -> list[Candidate]:
    """Return the two candidates, that with columns of T that sum to 1 first (Theorem 5, constructively).

    Means have norm 1. Raises SandglassError if the predictor does not show ``states`` values far out.
    """
    product = far_values(oracle, dimension, states, rng)  # M T, in any order of states
    points = rng.standard_normal((dimension, 100 * states))
    phi = np.linalg.pinv(product) @ oracle(points)
    # log(phi_i / phi_1) = (mu_i - mu_1) . x where norms are equal
    ratios = np.log(phi[1:]) - np.log(phi[0])
    differences = np.linalg.lstsq(points.T, ratios.T, rcond=None)[0]  # (d, k - 1)
    found = [_with_first(first, differences, product) for first in _first_means(product, differences)]
    return sorted(found, key=lambda each: -each.sums.sum())


def far_values(oracle: Oracle, dimension: int, states: int, rng: np.random.Generator, rounds: int = 20) -> Floats:
    """Return the k values (d, k) that the predictor takes far out: columns of M T, one for each mean that wins there.

    Directions are drawn, 400 in each round, until all are found: a mean whose cone is narrow takes more of them.
    """
    known = np.zeros((dimension, 0))
    for _ in range(rounds):
        units = rng.standard_normal((dimension, 400))
        units /= np.linalg.norm(units, axis=0)
        values = oracle(FAR * units)
        for value in values.T:
            apart = np.linalg.norm(known - value[:, None], axis=0)
            if (apart > SAME * np.linalg.norm(value)).all():
                known = np.column_stack([known, value])
        if known.shape[1] >= states:
            break
    if known.shape[1] != states:
        raise SandglassError(f"the predictor takes {known.shape[1]} values far out: expected {states}")
    return known


def _first_means(product: Floats, differences: Floats) -> list[Floats]:
    """Return both mu_1 of norm 1 in the span of M T with 2 d_i . mu_1 + |d_i|^2 = 0 for every difference d_i."""
    basis = np.linalg.qr(product)[0]
    conditions = 2 * differences.T @ basis
    at = np.linalg.lstsq(conditions, -np.square(differences).sum(0), rcond=None)[0]
    along = np.linalg.svd(conditions)[2][-1]
    middle = along @ at
    # |at + s along|^2 = 1
    reach = np.sqrt(max(middle**2 - at @ at + 1, 0.0))
    return [basis @ (at + (-middle + sign * reach) * along) for sign in (1, -1)]


def _with_first(first: Floats, differences: Floats, product: Floats) -> Candidate:
    means = first[:, None] + np.column_stack([np.zeros(len(first)), differences])
    transition = np.linalg.pinv(means) @ product
    return Candidate(means, transition, transition.sum(0))


def recover_from_end(
    predictions: Floats, points: Floats, case: int, rng: np.random.Generator
) -> tuple[Floats, Floats, float]:
    """Return M, T and how well they fit, from E[x_a (x) x_b | x_c] (k, d, d) at k independent points (d, k).

    The shown token is the first (case 1) or the last (case 3) of three, W = sum over points of x (x) prediction
    (Theorem 8). A known norm fixes a column up to its sign alone: all choices of signs are tried, and that is kept
    whose posterior agrees best with the first component; how well is the largest difference. Raises SandglassError
    for another case.
    """
    k = points.shape[1]
    shares, second, third = _components(predictions, points, rng)
    best: tuple[Floats, Floats, float] | None = None
    for signs in itertools.product((1.0, -1.0), repeat=k):
        means, transition = _signed(second, third, np.array(signs), case)
        phi = gaussian_hmm.posterior(means, points)
        apart = float(np.abs((transition if case == 1 else transition.T) @ phi - shares).max())
        if best is None or apart < best[2]:
            best = means, transition, apart
    assert best is not None
    return best


def _components(predictions: Floats, points: Floats, rng: np.random.Generator) -> tensors.Components:
    """Return the weights (k, n) of the states at each point, which sum to 1, and B and C (d, k) whose products they
    weigh."""
    k = points.shape[1]
    weighted = np.einsum("dn,nab->dab", points, predictions)
    first, second, third = tensors.jennrich(weighted, k, rng)
    shares = np.linalg.pinv(points) @ first
    scale = np.linalg.solve(shares, np.ones(k))
    return (shares * scale).T, second, third / scale


def _signed(second: Floats, third: Floats, signs: Floats, case: int) -> tuple[Floats, Floats]:
    """Return M and T for one choice of signs of the columns whose norm is known."""
    if case == 1:  # B = M, C = M T
        length = np.linalg.norm(second, axis=0) * signs
        means = second / length
        return means, np.linalg.pinv(means) @ (third * length)
    if case == 3:  # B = M T', C = M
        length = np.linalg.norm(third, axis=0) * signs
        means = third / length
        return means, (np.linalg.pinv(means) @ (second * length)).T
    raise SandglassError(f"case {case!r} has no component with columns of known norm: expected 1 or 3")


def recover_from_middle(oracle: Oracle, dimension: int, states: int, rng: np.random.Generator) -> list[Candidate]:
    """Return the two candidates that are left where the middle token of three is shown, ``sums`` those of T's rows.

    ``oracle`` takes points (d, n) to E[x_1 (x) x_3 | x_2] (n, d, d) = sum_i phi_i B_i (x) C_i, B = M T' and C = M T.
    The posterior at any point follows by least squares, M from its logarithms as in Theorem 5: M or its mirror
    image. Columns of T are then scaled to sum to 1, which a sign of B_i and C_i together allows for both. T of the
    mirror image is 2 w 1' - T with w = (M'M)^-1 1 / (1' (M'M)^-1 1), whose rows sum to 1 exactly if all w are 1/k.
    That with the sums closest to 1 comes first.
    """
    points = rng.standard_normal((dimension, states))
    _, second, third = _components(oracle(points), points, rng)
    more = rng.standard_normal((dimension, 100 * states))
    products = np.einsum("ai,bi->abi", second, third).reshape(-1, states)
    phi = np.linalg.lstsq(products, oracle(more).reshape(more.shape[1], -1).T, rcond=None)[0]
    ratios = np.log(phi[1:]) - np.log(phi[0])
    differences = np.linalg.lstsq(more.T, ratios.T, rcond=None)[0]
    found = []
    for first in _first_means(third, differences):
        means = first[:, None] + np.column_stack([np.zeros(dimension), differences])
        moved = np.linalg.pinv(means) @ third
        transition = moved / moved.sum(0)
        found.append(Candidate(means, transition, transition.sum(1)))
    return sorted(found, key=lambda each: float(np.abs(each.sums - 1).max()))


def mirror_share(means: Floats) -> Floats:
    """Return w (k,) = (M'M)^-1 1 / (1' (M'M)^-1 1), the weights of the point of the means' affine hull next to 0."""
    raw = np.linalg.solve(means.T @ means, np.ones(means.shape[1]))
    return raw / raw.sum()


def mirrored(means: Floats, transition: Floats) -> tuple[Floats, Floats]:
    """Return H M and 2 w 1' - T: the same E[x_1 (x) x_3 | x_2] as M and T, if M'M has rows of one sum.

    The first and the last token change sign, which their product does not show.
    """
    reflection, _ = gaussian_hmm.householder(means)
    return reflection @ means, 2 * mirror_share(means)[:, None] - transition


def transition_from_density(density: Floats, psi: Floats, phi: Floats) -> Floats:
    """Return T from densities p(x_2 | x_1) (k, k), rows for x_2, from likelihoods ``psi`` and posteriors ``phi``.

    The likelihoods are without the factor (2 pi)^(-d/2), which the densities have: psi' T phi = (2 pi)^(d/2) p
    (Eq. 2.78). ``psi`` and ``phi`` are (k, k), a column for each point.
    """
    found: Floats = np.linalg.solve(psi.T, density) @ np.linalg.inv(phi)
    return found


def densities(means: Floats, transition: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    """Return (2 pi)^(d/2) p(x_2 | x_1) at all pairs of points x_1, x_2 (d, k), and the likelihoods and posteriors."""
    apart = second[:, None, :] - means[:, :, None]
    psi = np.exp(-0.5 * np.square(apart).sum(0))
    phi = gaussian_hmm.posterior(means, first)
    return psi.T @ transition @ phi, psi, phi


# --- from samples --------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """M (d, k), T (k, k), the mean squared error that they have, and how many steps were taken."""

    means: Floats
    transition: Floats
    loss: float
    steps: int


def fit(first: Floats, second: Floats, norm: float, start: Floats, *, steps: int, iterations: int) -> Fit:
    """Return the G-HMM that predicts x_2 from x_1 (d, n) best: mean |M T phi(x_1) - x_2|^2, by L-BFGS (GHMM-FIT).

    ``start`` (d k + k k,) are directions of means, whose norm is known, and logits of T.
    """
    first, second = np.ascontiguousarray(first), np.ascontiguousarray(second)
    d, n = first.shape
    k = _states(len(start), d)

    def unpacked(values: Floats) -> tuple[Floats, Floats, Floats]:
        raw = values[: d * k].reshape(d, k)
        return (raw, norm * raw / np.linalg.norm(raw, axis=0), transition_of(values[d * k :].reshape(k, k), iterations))

    def loss(values: Floats) -> tuple[float, Floats]:
        raw, means, transition = unpacked(values)
        scores = means.T @ first  # norms are equal, and fall out of the softmax
        scores -= scores.max(0)
        phi = np.exp(scores, out=scores)
        phi /= phi.sum(0)
        product = means @ transition
        error = product @ phi - second
        by_product = error @ phi.T * (2 / n)
        by_phi = product.T @ error * (2 / n)
        by_scores = phi * (by_phi - (phi * by_phi).sum(0))
        by_means = first @ by_scores.T + by_product @ transition.T
        unit = means / norm
        by_raw = norm / np.linalg.norm(raw, axis=0) * (by_means - unit * (unit * by_means).sum(0))
        by_logits = through_scaling(transition, means.T @ by_product)
        gradient = np.concatenate([by_raw.ravel(), by_logits.ravel()])
        return float(np.square(error).sum() / n), gradient

    found = optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": steps, "ftol": 1e-14, "gtol": 1e-9}
    )
    _, means, transition = unpacked(found.x)
    return Fit(means, transition, float(found.fun), int(found.nit))


def _states(size: int, dimension: int) -> int:
    """Return k of d k + k k = ``size``."""
    return round((-dimension + np.sqrt(dimension**2 + 4 * size)) / 2)
