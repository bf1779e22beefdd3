"""Exact losses of attention when the value matrix is frozen (Li 2025, sections 2.1.7.5 to 2.1.7.8).

A query word b gives an unnormalised weight of beta to the keys that are b, of alpha to other words of its topic and of
1 to all others (Assumption 2.1.2). Documents are without end, so attended shares of words are those of equation 2.20.
Two variants of the normaliser are kept: ``paper`` as Proposition 2.1.2 prints it, which leaves out the keys that are
[MASK], and ``consistent``, in which these have the weight 1 as Assumption 2.1.2 says.

Losses are per masked position, without queries that are [MASK]: those do not depend on alpha and beta (equation 2.21).
Formulas take any numbers that mix with integers: floats, arrays, Fraction, Decimal.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import optimize
from torch import Tensor

from pipeline.languages.topic import Floats, Population

Number = Any  # float, array, Fraction or Decimal
KINDS, VARIANTS = ("block", "diag"), ("paper", "consistent")


class Optimum(NamedTuple):
    """Where a stage-2 loss is least; of a block value matrix only gamma is determined, and alpha = beta = gamma."""

    alpha: Number
    beta: Number
    gamma: Number
    loss: Number


def gamma(population: Population, alpha: Number, beta: Number) -> Number:
    """Return ((v - 1) alpha + beta) / v, the mean weight of the words of the query's topic."""
    return ((population.v - 1) * alpha + beta) / population.v


def offsets(population: Population, variant: str) -> tuple[Number, Number]:
    """Return what z_1 and z_2 are without the words of the query's topic (Proposition 2.1.2): for a query of a topic of
    the document, and for one of another topic."""
    T, v, tau = population.topics, population.v, population.tau
    p_1, p_2 = population.present, population.absent
    mask = population.masking.hidden if variant == "consistent" else 0
    return (v * (tau - 1) * p_1 + v * (T - tau) * p_2 + mask, v * tau * p_1 + v * (T - tau - 1) * p_2 + mask)


def normalisers(population: Population, alpha: Number, beta: Number, variant: str) -> tuple[Number, Number]:
    """Return z_1 and z_2 of Proposition 2.1.2."""
    own = beta + alpha * (population.v - 1)
    d_1, d_2 = offsets(population, variant)
    return population.present * own + d_1, population.absent * own + d_2


def _q(population: Population, variant: str, shift: Number) -> Callable[[Number, Number], Number]:
    """Return q of section 2.1.7.7 as a function of p and z: what the value matrix makes of a mean share p / z.

    ``shift`` is u* of Theorem 2.1.2, which the proof leaves out; it needs the shares of all words to add up with that
    of [MASK], so it is 0 in the variant ``paper``.
    """
    c_3 = 1 / (1 - population.masking.a)
    kappa = c_3 * population.masking.rho / population.words
    if variant == "paper":
        return lambda p, z: c_3 * p / z - kappa
    return lambda p, z: (c_3 * p - kappa) / z + shift * (1 - 1 / z)


def block_loss(population: Population, alpha: Number, beta: Number, variant: str, shift: Number = 0) -> Number:
    """Return the loss with the value matrix of Theorem 2.1.2 (section 2.1.7.7, the three cases, not simplified)."""
    T, v, tau = population.topics, population.v, population.tau
    p_1, p_2, masking = population.present, population.absent, population.masking
    z_1, z_2 = normalisers(population, alpha, beta, variant)
    q, g = _q(population, variant, shift), gamma(population, alpha, beta)
    s_1, o_1, e_1 = q(p_1 * g, z_1), q(p_1, z_1), q(p_2, z_1)
    s_2, o_2, e_2 = q(p_2 * g, z_2), q(p_1, z_2), q(p_2, z_2)
    own = (1 - s_1) ** 2 + (v - 1) * s_1**2 + v * (tau - 1) * o_1**2 + v * (T - tau) * e_1**2
    other = (1 - o_1) ** 2 + v * s_1**2 + (v * (tau - 1) - 1) * o_1**2 + v * (T - tau) * e_1**2
    foreign = (1 - o_2) ** 2 + (v * tau - 1) * o_2**2 + v * s_2**2 + v * (T - tau - 1) * e_2**2
    return (
        (masking.keep + masking.random / T) * own
        + masking.random * (tau - 1) / T * other
        + masking.random * (T - tau) / T * foreign
    )


def diagonal_loss(population: Population, alpha: Number, beta: Number, variant: str) -> Number:
    """Return the loss with the diagonal value matrix of Definition 2.1.2 (section 2.1.7.8, the four cases, not
    simplified)."""
    T, v, tau = population.topics, population.v, population.tau
    p_1, p_2, masking = population.present, population.absent, population.masking
    z_1, z_2 = normalisers(population, alpha, beta, variant)
    q = _q(population, variant, 0)
    b_1, a_1, o_1, e_1 = q(p_1 * beta, z_1), q(p_1 * alpha, z_1), q(p_1, z_1), q(p_2, z_1)
    b_2, a_2, o_2, e_2 = q(p_2 * beta, z_2), q(p_2 * alpha, z_2), q(p_1, z_2), q(p_2, z_2)
    rest = v * (tau - 1) * o_1**2 + v * (T - tau) * e_1**2
    same = (1 - b_1) ** 2 + (v - 1) * a_1**2 + rest
    topical = (1 - a_1) ** 2 + b_1**2 + (v - 2) * a_1**2 + rest
    other = (1 - o_1) ** 2 + b_1**2 + (v - 1) * a_1**2 + rest - o_1**2
    foreign = (1 - o_2) ** 2 + (v * tau - 1) * o_2**2 + b_2**2 + (v - 1) * a_2**2 + v * (T - tau - 1) * e_2**2
    return (
        (masking.keep + masking.random / (v * T)) * same
        + masking.random * (v - 1) / (T * v) * topical
        + masking.random * (tau - 1) / T * other
        + masking.random * (T - tau) / T * foreign
    )


LOSSES: dict[str, Callable[..., Number]] = {"block": block_loss, "diag": diagonal_loss}


def family(population: Population, alpha: float, beta: float, mask: float = 1.0) -> Floats:
    """Return (V, V - 1) the weights of keys (rows) for the query words 1 to T v (columns); [MASK] has ``mask``."""
    topic = population.topic_V
    weights = np.where(topic[:, None] == topic[1:], alpha, 1.0)
    weights[np.arange(1, population.words + 1), np.arange(population.words)] = beta
    weights[0] = mask
    return weights


def enumerated(population: Population, W_VxV: Floats, weights_VxQ: Floats) -> float:
    """Return the same loss by going through all documents, labels and query words, for any weights of keys.

    ``weights_VxQ`` (V, V - 1) holds the unnormalised weight of each key (row) for each query word (column).
    """
    x, p, masking = population.masked_DxV, population.law_DxV, population.masking
    attended_DxVxQ = x[:, :, None] * weights_VxQ
    attended_DxVxQ = attended_DxVxQ / attended_DxVxQ.sum(1, keepdims=True)
    output_DxVxQ = np.einsum("wv,dvq->dwq", W_VxV, attended_DxVxQ)
    squared_DxQ = (output_DxVxQ**2).sum(1)
    words = np.arange(population.words)
    kept_DxQ = squared_DxQ - 2 * output_DxVxQ[:, words + 1, words] + 1  # the query is the label
    label_DxQ = np.einsum("dw,dwq->dq", p, output_DxVxQ)
    changed_DxQ = squared_DxQ - 2 * label_DxQ + 1  # the query is a random word, whatever the label is
    kept = (p[:, 1:] * kept_DxQ).sum(1).mean()
    return float(masking.keep * kept + masking.random * changed_DxQ.mean(1).mean())


def family_minimum(population: Population, W_VxV: Floats, free_mask: bool) -> tuple[float, Floats]:
    """Return the least loss by enumeration over alpha and beta, and over the weight of [MASK] if that is free, with
    the three weights."""

    def weights(point: Floats) -> Floats:
        return np.exp(np.append(point, 0.0)[:3])

    def at(point: Floats) -> float:
        return enumerated(population, W_VxV, family(population, *weights(point)))

    minimum = optimize.minimize(
        at,
        np.zeros(3 if free_mask else 2) + 1.0,
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-15, "maxiter": 5000, "maxfev": 5000},
    )
    return float(minimum.fun), weights(minimum.x)


def free_minimum(population: Population, W_VxV: Floats, start_VxQ: Floats, steps: int) -> tuple[float, Floats]:
    """Return the loss that L-BFGS reaches over all logits (V, V - 1) of keys for query words, and the weights of keys.

    Weights (V, V - 1) are relative to the mean weight of other topics' words, which is 1.
    """
    x = torch.from_numpy(population.masked_DxV)
    p, W = torch.from_numpy(population.law_DxV), torch.from_numpy(W_VxV)
    masking, words = population.masking, torch.arange(population.words)

    def loss(logits: Tensor) -> Tensor:
        attended_DxVxQ = torch.softmax(x.log()[:, :, None] + logits, 1)
        output_DxVxQ = torch.einsum("wv,dvq->dwq", W, attended_DxVxQ)
        squared_DxQ = (output_DxVxQ**2).sum(1) + 1
        kept = p[:, 1:] * (squared_DxQ - 2 * output_DxVxQ[:, words + 1, words])
        changed = squared_DxQ - 2 * torch.einsum("dw,dwq->dq", p, output_DxVxQ)
        return masking.keep * kept.sum(1).mean() + masking.random * changed.mean()

    def at(flat: Floats) -> tuple[float, Floats]:
        logits = torch.from_numpy(flat.reshape(start_VxQ.shape)).requires_grad_()
        value = loss(logits)
        (gradient,) = torch.autograd.grad(value, logits)
        return value.item(), gradient.numpy().ravel()

    minimum = optimize.minimize(
        at,
        start_VxQ.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps, "maxfun": 2 * steps, "ftol": 0.0, "gtol": 1e-9, "maxcor": 20},
    )
    weights = np.exp(minimum.x.reshape(start_VxQ.shape))
    topic = population.topic_V
    other = (topic[:, None] != topic[1:]) & (topic[:, None] >= 0)
    return float(minimum.fun), weights / (np.where(other, weights, 0).sum(0) / other.sum(0))


# Optima, each by two ways that share no step but the formulas of losses


def numeric_optimum(population: Population, kind: str, variant: str) -> Optimum:
    """Return the optimum in float64: by Brent's method in log gamma, or by Nelder and Mead's in log alpha and beta."""
    scale = population.tau / float(population.masking.a)  # what gamma / tau tends to is 1 / a
    loss = LOSSES[kind]
    if kind == "block":
        minimum = optimize.minimize_scalar(
            lambda t: float(loss(population, math.exp(t), math.exp(t), variant)),
            bounds=(math.log(scale) - 7, math.log(scale) + 7),
            method="bounded",
            options={"xatol": 1e-10},
        )
        g = math.exp(minimum.x)
        return Optimum(g, g, g, float(minimum.fun))

    def at(point: Floats) -> float:
        return float(loss(population, math.exp(point[0]), math.exp(point[1]), variant))

    start = np.log([0.1, scale * population.v])
    minimum = optimize.minimize(at, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 0.0, "maxiter": 2000})
    alpha, beta = np.exp(minimum.x)
    return Optimum(alpha, beta, gamma(population, alpha, beta), float(minimum.fun))


def exact_optimum(population: Population, kind: str, variant: str) -> Optimum:
    """Return the optimum to 30 digits and more, as fractions or decimals.

    Of a block matrix: the loss is a polynomial of degree 2 in 1 / z_1 plus one in 1 / z_2, so that gamma is a root of
    a quartic (`stationarity`), which bisection encloses. Of a diagonal matrix: at a given sum s = beta + (v - 1) alpha
    the loss is a parabola in beta, whose vertex is known; s is found by golden section in decimals.
    """
    return _exact_block(population, variant) if kind == "block" else _exact_diagonal(population, variant)


def stationarity(population: Population, variant: str) -> Callable[[Fraction], Fraction]:
    """Return the quartic in gamma that has the sign of the derivative of `block_loss`, in exact fractions."""
    exact: Any = population.exact(Fraction)
    T, v, tau, masking = exact.topics, exact.v, exact.tau, exact.masking
    p_1, p_2 = exact.present, exact.absent
    d_1, d_2 = offsets(exact, variant)
    c_3 = 1 / (1 - masking.a)
    kappa = c_3 * masking.rho / exact.words
    fixed, scaled = (kappa, Fraction(0)) if variant == "paper" else (Fraction(0), kappa)

    def own(d: Fraction) -> tuple[Fraction, Fraction]:
        """q(p gamma / z) as constant and coefficient of 1 / z: gamma is (z - d) / (v p)."""
        return c_3 / v - fixed, -c_3 * d / v - scaled

    def others(p: Fraction) -> tuple[Fraction, Fraction]:
        return -fixed, c_3 * p - scaled

    s_1, o_1, e_1, s_2, o_2, e_2 = own(d_1), others(p_1), others(p_2), own(d_2), others(p_1), others(p_2)
    kept, other, foreign = (
        masking.keep + masking.random / T,
        masking.random * (tau - 1) / T,
        masking.random * (T - tau) / T,
    )
    first = _parabola(
        [
            (kept, 1, s_1),
            (kept * (v - 1), 0, s_1),
            (kept * v * (tau - 1), 0, o_1),
            (kept * v * (T - tau), 0, e_1),
            (other, 1, o_1),
            (other * v, 0, s_1),
            (other * (v * (tau - 1) - 1), 0, o_1),
            (other * v * (T - tau), 0, e_1),
        ]
    )
    second = _parabola(
        [
            (foreign, 1, o_2),
            (foreign * (v * tau - 1), 0, o_2),
            (foreign * v, 0, s_2),
            (foreign * v * (T - tau - 1), 0, e_2),
        ]
    )

    def quartic(g: Fraction) -> Fraction:
        z_1, z_2 = v * p_1 * g + d_1, v * p_2 * g + d_2
        return -(p_1 * (first[0] * z_1 + 2 * first[1]) * z_2**3 + p_2 * (second[0] * z_2 + 2 * second[1]) * z_1**3)

    return quartic


def _parabola(terms: Iterable[tuple[Fraction, int, tuple[Fraction, Fraction]]]) -> tuple[Fraction, Fraction]:
    """Return the coefficients of y and y² in the sum of weight (target - constant - slope y)²."""
    linear = square = Fraction(0)
    for weight, target, (constant, slope) in terms:
        linear -= 2 * weight * (target - constant) * slope
        square += weight * slope**2
    return linear, square


def _exact_block(population: Population, variant: str) -> Optimum:
    quartic = stationarity(population, variant)
    low, high = Fraction(population.tau, 10**3), Fraction(10**6) * population.topics
    if not quartic(low) < 0 < quartic(high):
        return Optimum(*[math.nan] * 4)
    for _ in range(160):
        # Halving in the logarithm first, as the bounds are many powers of ten apart.
        middle = (low + high) / 2 if high < 2 * low else Fraction(math.isqrt(int(low * high * 10**12)), 10**6)
        low, high = (middle, high) if quartic(middle) < 0 else (low, middle)
        low, high = low.limit_denominator(10**60), high.limit_denominator(10**60)
    g = (low + high) / 2
    return Optimum(g, g, g, block_loss(population.exact(Fraction), g, g, variant))


def _exact_diagonal(population: Population, variant: str) -> Optimum:
    with decimal.localcontext() as context:
        context.prec = 80
        exact: Any = population.exact(Decimal)
        v = exact.v

        def best(s: Decimal) -> Optimum:
            """At the sum s: the vertex of the parabola in beta, within 0 and s."""
            at = [diagonal_loss(exact, (s - beta) / (v - 1), beta, variant) for beta in (Decimal(0), s / 2, s)]
            curvature = at[0] - 2 * at[1] + at[2]
            vertex = s / 2 * (1 - (at[2] - at[0]) / (2 * curvature)) if curvature > 0 else s
            beta = min(max(vertex, Decimal(0)), s)
            alpha = (s - beta) / (v - 1)
            return Optimum(alpha, beta, gamma(exact, alpha, beta), diagonal_loss(exact, alpha, beta, variant))

        golden = (Decimal(5).sqrt() - 1) / 2
        middle = (Decimal(exact.tau * v) / exact.masking.a).ln()
        low, high = middle - 7, middle + 7
        left, right = high - golden * (high - low), low + golden * (high - low)
        values = best(left.exp()).loss, best(right.exp()).loss
        for _ in range(150):
            if values[0] < values[1]:
                high, right = right, left
                left = high - golden * (high - low)
                values = best(left.exp()).loss, values[0]
            else:
                low, left = left, right
                right = low + golden * (high - low)
                values = values[1], best(right.exp()).loss
        return best(((low + high) / 2).exp())


# What the theorems say of optima


class Interval(NamedTuple):
    """Where a theorem has the optimal gamma (Theorem 2.1.3) or beta (Theorem 2.1.5): its lower end as printed and as
    the proof gives it, its upper end, and what the optimal alpha / beta is below."""

    printed: float
    proof: float
    high: float
    ratio: float


def interval(population: Population, kind: str) -> Interval:
    """Return the interval of Theorem 2.1.3 for blocks, or of Theorem 2.1.5 for a diagonal matrix."""
    T, v, tau = population.topics, population.v, population.tau
    masking = population.masking
    a, rho, hidden = (float(part) for part in (masking.a, masking.rho, masking.hidden))
    if kind == "block":
        shared = (1 - a + rho) / (2 * (1 - a)) * (tau - 1)
        return Interval(
            shared * (1 + a), shared * (1 - 2 * a), 100 * ((1 - a) / rho + 1) * T, math.inf
        )  # lambda_1, c_5, lambda_2
    low = (1 - a + rho) * v / 100 * tau  # lambda_3
    high = (1 - a) / (math.sqrt(v - 1) - 2 + a) * (1 - hidden) / rho * v * T  # lambda_4
    return Interval(low, low, high, 1 / ((v - 1) * (1 - a)))  # lambda_5


def inside(population: Population, kind: str, optimum: Optimum, form: str) -> bool:
    """Return whether an optimum lies in its theorem's interval, as ``printed`` or as of the ``proof``."""
    ends = interval(population, kind)
    low = ends.proof if form == "proof" else ends.printed
    if kind == "block":
        return low < float(optimum.gamma) < ends.high
    alpha, beta = float(optimum.alpha), float(optimum.beta)
    return low < beta < ends.high and alpha < ends.ratio * beta
