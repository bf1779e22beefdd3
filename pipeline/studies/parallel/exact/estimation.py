"""Asymptotics of pseudolikelihood by enumeration (Li 2025, sections 4.1.2 and 4.3.2 to 4.3.3).

A *scheme* is a list of masks with weights, or with a weight for each state (adaptive). p is the true law over S states,
phi (S, d) are sufficient statistics. With one mask for each sample the estimator's asymptotic covariance is the inverse
of H = E[s s^T], where s = phi - E[phi | what is not masked] is the score of the conditional law at the truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pipeline.languages import ising
from pipeline.languages.ising import Floats


@dataclass(frozen=True)
class Scheme:
    """Masks of ``N`` positions, and (M, S) the probability of each given each state, which sums to 1 over masks."""

    N: int
    masks: tuple[int, ...]
    given_MxS: Floats

    def __post_init__(self) -> None:
        """Raise ValueError if the masks do not cover all positions, or probabilities do not sum to 1."""
        ising.check_cover(self.N, list(self.masks))
        if self.given_MxS.shape != (len(self.masks), 2**self.N):
            raise ValueError(f"weights of shape {self.given_MxS.shape} for {len(self.masks)} masks of {self.N} spins")
        if (self.given_MxS < 0).any() or np.abs(self.given_MxS.sum(0) - 1).max() > 1e-9:
            raise ValueError("the probabilities of masks must be non-negative and sum to 1 for each state")


def fixed(N: int, masks: Sequence[int], weights: Sequence[float] | Floats | None = None) -> Scheme:
    """Return a scheme whose masks do not depend on the state (Definition 4.1.2); uniform without ``weights``."""
    chosen = np.full(len(masks), 1 / len(masks)) if weights is None else np.asarray(weights, float)
    return Scheme(N, tuple(masks), np.repeat(chosen[:, None], 2**N, 1))


def uniform(N: int, k: int) -> Scheme:
    """Return all masks of ``k``, equally likely (Definition 4.1.3)."""
    return fixed(N, ising.masks(N, k))


def adaptive(rng: np.random.Generator, N: int) -> Scheme:
    """Return all non-empty masks with flat Dirichlet probabilities for each state (Definition 4.1.7)."""
    masks = tuple(range(1, 2**N))
    return Scheme(N, masks, rng.dirichlet(np.ones(len(masks)), 2**N).T.copy())


def conditional_mean(p_S: Floats, phi_SxD: Floats, N: int, mask: int, given_S: Floats | float = 1.0) -> Floats:
    """Return (S, d) E[phi | x off the mask], where ``given_S`` weighs states as p(K | x) does.

    Contexts without mass are NaN.
    """
    near = ising.companions(N, mask)
    weight = (p_S * given_S)[near]
    with np.errstate(invalid="ignore"):
        return np.einsum("sj,sjd->sd", weight, phi_SxD[near]) / weight.sum(1)[:, None]


def scores(p_S: Floats, phi_SxD: Floats, scheme: Scheme) -> Iterator[tuple[Floats, Floats]]:
    """Yield for each mask the joint probability (S,) of state and mask, and the score (S, d), 0 where that is 0."""
    for mask, given in zip(scheme.masks, scheme.given_MxS, strict=True):
        score = phi_SxD - conditional_mean(p_S, phi_SxD, scheme.N, mask, given)
        yield p_S * given, np.where((given > 0)[:, None], score, 0.0)


def information(p_S: Floats, phi_SxD: Floats, scheme: Scheme) -> Floats:
    """Return H (d, d) = E[s s^T] over states and masks: of the full mask, the Fisher information."""
    return sum((weight[:, None] * score).T @ score for weight, score in scores(p_S, phi_SxD, scheme))  # type: ignore[return-value]


def averaged_covariance(p_S: Floats, phi_SxD: Floats, scheme: Scheme) -> Floats:
    """Return the asymptotic covariance H^-1 V H^-1 where each sample is averaged over all its masks (``allmask``)."""
    H = information(p_S, phi_SxD, scheme)
    parts = zip(scores(p_S, phi_SxD, scheme), scheme.given_MxS, strict=True)
    mean = sum(given[:, None] * score for (_, score), given in parts)
    V = (p_S[:, None] * mean).T @ mean
    inverse = np.linalg.inv(H)
    return inverse @ V @ inverse


def population_loss(theta_BxD: Floats, p_S: Floats, phi_SxD: Floats, scheme: Scheme, drop: bool = False) -> Floats:
    """Return (B,) E[-log p_theta(x_K | x_-K, K)] under the law p; with ``drop`` what leaves K out of the condition."""
    weights = theta_BxD @ phi_SxD.T
    loss = np.zeros(len(theta_BxD))
    for mask, given in zip(scheme.masks, scheme.given_MxS, strict=True):
        seen = given > 0
        tilted = weights if drop else weights + np.log(np.where(seen, given, 1e-300))
        near = tilted[:, ising.companions(scheme.N, mask)]
        top = near.max(-1)
        normaliser = top + np.log(np.exp(near - top[..., None]).sum(-1))
        loss -= ((p_S * given) * np.where(seen, tilted - normaliser, 0.0)).sum(1)
    return loss


def loss_gradient(theta_D: Floats, p_S: Floats, phi_SxD: Floats, scheme: Scheme, step: float = 1e-5) -> Floats:
    """Return (d,) the gradient of `population_loss` by central differences."""
    shift = step * np.eye(len(theta_D))
    losses = population_loss(np.concatenate([theta_D + shift, theta_D - shift]), p_S, phi_SxD, scheme)
    ahead, behind = np.split(losses, 2)
    return (ahead - behind) / (2 * step)


def dropped_gradient(theta_D: Floats, p_S: Floats, phi_SxD: Floats, scheme: Scheme) -> Floats:
    """Return (d,) the gradient at ``theta_D`` of the loss that leaves K out of the condition, in closed form."""
    law = np.exp(theta_D @ phi_SxD.T)
    total = np.zeros(phi_SxD.shape[1])
    for mask, given in zip(scheme.masks, scheme.given_MxS, strict=True):
        total += (p_S * given) @ (conditional_mean(law, phi_SxD, scheme.N, mask) - phi_SxD)
    return total


def loss_hessian(theta_D: Floats, p_S: Floats, phi_SxD: Floats, scheme: Scheme, step: float = 1e-3) -> Floats:
    """Return (d, d) the second derivatives of `population_loss`, by central differences of fourth order.

    A difference of losses has an error of about 1e-16 / step^2, one of fourth order a further step^4.
    """
    d, eye = len(theta_D), step * np.eye(len(theta_D))
    pairs = [(a, b) for a in range(d) for b in range(a, d)]

    def mixed(scale: float) -> Floats:
        one = np.array([eye[a] for a, _ in pairs]) * scale
        two = np.array([eye[b] for _, b in pairs]) * scale
        points = np.concatenate([one + two, one - two, two - one, -one - two]) + theta_D
        up, left, right, down = np.split(population_loss(points, p_S, phi_SxD, scheme), 4)
        return (up - left - right + down) / (4 * (step * scale) ** 2)

    values = (4 * mixed(1.0) - mixed(2.0)) / 3
    H = np.zeros((d, d))
    for (a, b), value in zip(pairs, values, strict=True):
        H[a, b] = H[b, a] = value
    return H


def increment(p_S: Floats, phi_SxD: Floats, N: int, k: int) -> Floats:
    """Return C_k = H_{k+1} - H_k by its closed form: the mean of E[s_a s_a^T] over masks S of k and a outside S.

    s_a = E[phi | x off S] - E[phi | x off S and a] (Li 2025, Eq. 4.19).
    """
    parts = []
    for chosen in combinations(range(N), k):
        inner = conditional_mean(p_S, phi_SxD, N, ising.mask_of(N, chosen)) if k else phi_SxD
        for a in set(range(N)) - set(chosen):
            outer = conditional_mean(p_S, phi_SxD, N, ising.mask_of(N, (*chosen, a)))
            parts.append((p_S[:, None] * (inner - outer)).T @ (inner - outer))
    return np.mean(parts, 0)


def worst_ratio(gamma: Floats, fisher: Floats) -> float:
    """Return the largest eigenvalue of Gamma I: how much wider than the MLE the estimator is, in the worst
    direction."""
    root = np.linalg.cholesky(fisher)
    return float(np.linalg.eigvalsh(root.T @ gamma @ root)[-1])


def excess(first: Floats, second: Floats) -> float:
    """Return the smallest eigenvalue of ``first - second``, relative to the largest entry of both: >= 0 says that
    ``first`` is the larger."""
    return float(np.linalg.eigvalsh(first - second)[0] / max(np.abs(first).max(), np.abs(second).max()))
