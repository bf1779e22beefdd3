"""Families, losses and descent of the NCE study: closed forms, quadrature, and the chapter's own numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.languages import exponential_families as families
from pipeline.studies.nce.exact import exponential_family as log_ratio
from pipeline.studies.nce.exact.exponential_family import ENCE, NCE

MEANS = np.array([0.5, 2.0, 5.0, 10.0, 16.0])


def hermite(mean: np.ndarray, variance: np.ndarray, points: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Places (N, d) and weights (N,) that integrate polynomials exactly under N(mean, diag(variance))."""
    x, w = np.polynomial.hermite_e.hermegauss(points)
    grids = np.meshgrid(*[m + np.sqrt(v) * x for m, v in zip(mean, variance, strict=True)], indexing="ij")
    weights = np.prod(np.meshgrid(*[w / w.sum()] * len(mean), indexing="ij"), axis=0)
    return np.stack([grid.ravel() for grid in grids], axis=-1), weights.ravel()


# --- families ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theta", [-1.5, 0.0, 3.0])
def test_mean_family_is_normalised_and_has_its_moments(theta: float) -> None:
    x, w = hermite(np.array([theta]), np.array([1.0]))
    t = families.mean_statistics(x[:, 0])
    assert np.allclose((t * w) @ t.T, families.mean_moments(theta))
    assert np.isclose(families.largest_moment(theta), np.linalg.eigvalsh(families.mean_moments(theta))[-1])
    places = np.linspace(theta - 10, theta + 10, 2001)
    density = np.exp(families.mean_point(theta) @ families.mean_statistics(places) - places**2 / 2)
    assert np.isclose(np.trapezoid(density, places), 1)
    assert np.allclose(density, families.normal_density(places, theta))


def test_diagonal_family_is_normalised_and_has_its_moments() -> None:
    mean, variance = np.array([0.5, -1.0]), np.array([2.0, 7.0])
    x, w = hermite(mean, variance)
    t = families.diagonal_statistics(x)
    assert t.shape == (5, len(x))
    assert np.allclose((t * w) @ t.T, families.diagonal_moments(mean, variance))
    log_density = families.diagonal_point(mean, variance) @ t
    exact = -((x - mean) ** 2 / variance + np.log(2 * np.pi * variance)).sum(-1) / 2
    assert np.allclose(log_density, exact)


def test_overlap_is_that_of_the_densities_between() -> None:
    variance = np.array([6.0, 11.0])
    places = np.linspace(-60, 60, 20001)
    product, between = 1.0, families.diagonal_between(variance)
    for s, v in zip(variance, between, strict=True):
        root = np.exp(-(places**2) * (1 + 1 / s) / 4) / np.sqrt(2 * np.pi * np.sqrt(s))
        mass = np.trapezoid(root, places)
        product *= mass
        assert np.isclose(np.trapezoid(root * places**2, places) / mass, v)
    assert np.isclose(families.diagonal_overlap(variance), product)
    assert np.isclose(families.mean_overlap(3.0), math.exp(-9 / 8))


# --- losses -----------------------------------------------------------------------------------------------

EXPECTED = {  # R: L_* e^(R^2/8), sigma_max and sigma_min of NCE times it, kappa of NCE and of eNCE (chapter N1)
    0.5: (0.6839, 0.3042, 0.1829, 1.664, 1.647),
    2.0: (0.5875, 0.4334, 0.04690, 9.242, 6.854),
    5.0: (0.3916, 0.8042, 0.003470, 231.8, 66.05),
    10.0: (0.2316, 1.562, 1.916e-4, 8151, 727.0),
    16.0: (0.1516, 2.500, 2.121e-5, 1.179e5, 4354),
    20.0: (0.1227, 3.127, 7.213e-6, 4.336e5, 10402),
}


def test_landscape_is_that_of_the_chapter() -> None:
    means = np.array(list(EXPECTED))
    optimum, scale = families.mean_optimum(means), families.mean_overlap(means)
    problem = log_ratio.mean_problem(NCE, means)
    largest, smallest = log_ratio.extremes(problem.hessian(optimum)[:, 0])
    kappa_exponential = log_ratio.curvature(ENCE, means)[2]
    landscape = np.stack(
        [problem.loss(optimum)[:, 0] / scale, largest / scale, smallest / scale, largest / smallest, kappa_exponential]
    )
    assert np.allclose(landscape.T, list(EXPECTED.values()), rtol=6e-4)
    assert np.allclose(kappa_exponential, ((means / 2 + np.sqrt(means**2 / 4 + 4)) / 2) ** 4, rtol=1e-12)


def test_losses_at_the_noise_and_the_minimum() -> None:
    start, optimum = np.zeros((len(MEANS), 1, 2)), families.mean_optimum(MEANS)
    for loss, at_noise in ((NCE, math.log(2)), (ENCE, 1.0)):
        problem = log_ratio.mean_problem(loss, MEANS)
        assert np.allclose(problem.loss(start), at_noise, atol=1e-12)
        assert np.abs(problem.gradient(optimum)).max() < 1e-15
        assert np.allclose(problem.gradient(start)[:, 0], np.stack([-MEANS / 4, 0 * MEANS], -1), atol=1e-12)
        closed = np.stack([MEANS**2 + 2, -MEANS, -MEANS, 0 * MEANS + 2], -1).reshape(-1, 2, 2) / 8
        assert np.allclose(problem.hessian(start)[:, 0], closed, atol=1e-10)
    assert np.allclose(log_ratio.mean_problem(ENCE, MEANS).loss(optimum)[:, 0], families.mean_overlap(MEANS))


@given(st.floats(-3, 12), st.floats(-5, 40), st.sampled_from([1.0, 4.0, 6.0]))
@settings(max_examples=60, deadline=None)
def test_closed_form_of_the_exponential_loss_agrees_with_quadrature(b: float, c: float, mean: float) -> None:
    delta = np.array([[[min(b, 1.5 * mean), c]]])
    closed, points = log_ratio.EnceMean(np.array([mean])), log_ratio.Ence(*families.mean_points([mean]))
    for name in ("loss", "gradient", "hessian"):
        exact, estimate = getattr(closed, name)(delta), getattr(points, name)(delta)
        assert np.abs(estimate - exact).max() <= 1e-9 * np.abs(closed.hessian(delta)).max(), name


def test_nce_keeps_its_digits_where_sigmoids_are_tiny() -> None:
    """Points at psi = +-60: the loss and gradient are exp(-60), not 0."""
    statistics = np.array([[[1.0, -1.0], [-1.0, -1.0]]])
    points = log_ratio.Nce(statistics, np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    delta = np.array([[[60.0, 0.0]]])
    assert np.isclose(points.loss(delta)[0, 0], math.exp(-60), rtol=1e-12)
    assert np.allclose(points.gradient(delta)[0, 0], [-math.exp(-60), 0], rtol=1e-12)
    assert np.allclose(points.gradient(np.array([[[-900.0, 0.0]]]))[0, 0], [-1, 0])  # nothing overflows


def test_nce_loss_is_softplus() -> None:
    rng = np.random.default_rng(0)
    x, delta = 4 * rng.standard_normal((2, 3, 50)), 5 * rng.standard_normal((2, 4, 3))
    data = rng.random((2, 50))
    psi = delta @ x
    naive = (data[:, None] * np.logaddexp(0, -psi) + (1 - data)[:, None] * np.logaddexp(0, psi)).sum(-1) / 2
    assert np.allclose(log_ratio.Nce(x, data, 1 - data).loss(delta), naive, rtol=1e-13)


def test_a_point_without_weight_counts_for_nothing_however_far() -> None:
    """A noise sample with psi = -5000 has weight 0 under P*: exp(-psi/2) is inf there."""
    statistics = np.array([[[0.1, -1.0]]])
    points = log_ratio.Ence(statistics, np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    gradient = points.gradient(np.array([[[5000.0]]]))
    assert np.isfinite(gradient).all()
    points = log_ratio.Ence(-statistics, np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    assert np.isinf(points.loss(np.array([[[50000.0]]]))).all()  # and no warning


@pytest.mark.parametrize("loss", [NCE, ENCE])
def test_gradient_and_hessian_are_derivatives(loss: str) -> None:
    rng = np.random.default_rng(1)
    data = np.repeat([1 / 20, 0.0], 20)[None]
    kind = log_ratio.Nce if loss == NCE else log_ratio.Ence
    problem = kind(rng.standard_normal((1, 5, 40)), data, 1 / 20 - data)
    delta, h = 0.5 * rng.standard_normal((1, 3, 5)), 1e-5
    gradient, hessian = problem.gradient(delta), problem.hessian(delta)
    for i, step in enumerate(h * np.eye(5)):
        slope = (problem.loss(delta + step) - problem.loss(delta - step)) / (2 * h)
        bend = (problem.gradient(delta + step) - problem.gradient(delta - step)) / (2 * h)
        assert np.allclose(gradient[..., i], slope, rtol=1e-6, atol=1e-9)
        assert np.allclose(hessian[..., i], bend, rtol=1e-6, atol=1e-9)


def test_problems_that_are_kept_are_the_same() -> None:
    delta = np.ones((len(MEANS), 2, 2))
    rows = np.array([True, False, True, False, False])
    for loss in (NCE, ENCE):
        problem = log_ratio.mean_problem(loss, MEANS)
        kept = problem.keep(rows)
        assert np.allclose(kept.gradient(delta[rows]), problem.gradient(delta)[rows], rtol=1e-13)
    assert log_ratio.mean_problem(NCE, MEANS).keep(rows).data_PxN.shape[1] < 1000  # without the grid of R = 16


def test_extreme_eigenvalues() -> None:
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]])
    assert np.allclose(log_ratio.extremes(matrix), np.linalg.eigvalsh(matrix)[::-1])
    assert np.isclose(log_ratio.extremes(np.diag([1.0, 1e-20]))[1], 1e-20, rtol=1e-12)


# --- descent ----------------------------------------------------------------------------------------------


def test_normalised_gradients() -> None:
    tiny = np.array([[3e-300, 4e-300], [0.0, 0.0], [3.0, -4.0]])
    assert np.allclose(log_ratio.normalised(tiny), [[0.6, 0.8], [0, 0], [0.6, -0.8]])
    assert np.isnan(log_ratio.normalised(np.array([[np.inf, 1.0]]))).any()


def walk(loss: str, rule: str, means: list[float], eta: np.ndarray, targets: np.ndarray, cap: int) -> log_ratio.Descent:
    r = np.array(means, float)
    optimum = families.mean_optimum(r)
    problem = log_ratio.mean_problem(loss, r)
    return log_ratio.descend(problem, log_ratio.RULES[rule], 0 * optimum, optimum, eta, targets, cap)


def test_paths_are_as_long_as_the_chapter_says() -> None:
    r = np.array([2.0, 3.0])
    expected = {(NCE, "gd"): [[56, 16], [452, 194]], (NCE, "newton"): [[116], [1328]], (ENCE, "newton"): [[46], [294]]}
    for (loss, rule), steps in expected.items():
        at_noise, smallest, _ = log_ratio.curvature(loss, r)
        eta = 1 / at_noise if rule == "gd" else smallest / at_noise
        targets = np.stack([0.1 * r, np.ones(2)], 1)[:, : len(steps[0])]
        assert walk(loss, rule, r.tolist(), eta, targets, 2000).steps.tolist() == steps
    r = np.array([2.0, 3.0, 4.0])
    for loss, steps in ((NCE, [22, 122, 472]), (ENCE, [19, 91, 296])):
        eta = 1 / r / np.sqrt(2 * log_ratio.curvature(loss, r)[2])
        assert walk(loss, "ngd", r.tolist(), eta, 1 / r[:, None], 2000).steps[:, 0].tolist() == steps


def test_a_batch_of_paths_is_the_paths_one_by_one() -> None:
    means, eta = [2.0, 3.0, 4.0], np.array([1.0, 0.5, 0.3])
    targets = np.array([[0.4, 0.2], [0.9, 0.3], [2.0, 0.4]])
    together = walk(NCE, "gd", means, eta, targets, 1000)
    for i, mean in enumerate(means):
        optimum, delta = np.array([mean, mean**2 / 2]), np.zeros(2)
        problem, steps = log_ratio.mean_problem(NCE, mean), [-1, -1]
        for step in range(1001):
            distance = np.linalg.norm(delta - optimum)
            steps = [step if s < 0 and distance <= t else s for s, t in zip(steps, targets[i], strict=True)]
            if min(steps) >= 0:
                break
            if step < 1000:
                delta = delta - eta[i] * problem.gradient(delta[None, None])[0, 0]
        assert together.steps[i].tolist() == steps
        assert np.isclose(together.final[i], distance, rtol=1e-9)
    assert together.steps[2, 1] == -1 and (together.steps[:2] > 0).all()  # R = 4 is censored


def test_stability_of_the_hessian_is_that_of_the_chapter() -> None:
    means = np.array([1.0, 2.0, 3.0, 4.0])
    expected = {
        NCE: [(1.47, 0.47), (1.66, 0.71), (1.43, 0.83), (1.30, 0.90)],
        ENCE: [(1.54, 1), (1.17, 1), (1.10, 1), (1.07, 1)],
    }
    for loss, pairs in expected.items():
        estimates = np.stack(log_ratio.stability(loss, means, 1 / means, 12, 48), axis=-1)
        assert np.allclose(estimates, pairs, atol=0.006)
