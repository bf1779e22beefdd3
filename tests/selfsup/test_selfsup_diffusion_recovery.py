"""Classifiers of pairs, the kernels that they imply, and what limits their errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from pipeline.errors import SandglassError
from pipeline.languages.diffusions import CONDITIONAL, MARGINAL, Contrast, LogCosh, OrnsteinUhlenbeck, log_normal, pairs
from pipeline.models.pair_classifier import log_quadratic, mlp
from pipeline.studies.selfsup.analysis.diffusion_closeness import _task, matching, widths
from pipeline.studies.selfsup.analysis.diffusion_network import _log_quadratic, normal
from pipeline.studies.selfsup.measures import diffusion_limit
from pipeline.studies.selfsup.measures import diffusion_recovery as recovery
from pipeline.studies.selfsup.measures.diffusion_fits import Task, fitted
from pipeline.training.objectives.labelled_pairs import Objective

OU = OrnsteinUhlenbeck(1.0)
STATIONARY = Contrast(MARGINAL, 0.0, 1.0)
laws = st.builds(Contrast, st.sampled_from([MARGINAL, CONDITIONAL]), st.floats(-2, 2), st.floats(0.5, 3))


# --- log-quadratic classifiers ------------------------------------------------------------------------------


@given(laws, st.integers(1, 3), st.floats(0.3, 3), st.floats(0.05, 2))
def test_the_bayes_classifier_is_log_quadratic(contrast: Contrast, d: int, rho: float, eta: float) -> None:
    process = OrnsteinUhlenbeck(rho, d)
    rng = np.random.default_rng(0)
    z, z_prime = rng.standard_normal((2, 20, d))
    weights = log_quadratic.truth(process, eta, contrast)
    assert weights.shape == ((2 * d + 1) * (d + 1),)
    truth = process.log_kernel(z, z_prime, eta) - contrast.log_density(z, z_prime)
    assert np.allclose(log_quadratic.features(z, z_prime) @ weights, truth, rtol=1e-9, atol=1e-9)


def test_features_in_one_dimension_are_those_of_the_chapter() -> None:
    phi = log_quadratic.features(np.array([2.0]), np.array([3.0]))
    assert phi.tolist() == [4.0, 6.0, 9.0, 2.0, 3.0, 1.0]


@pytest.mark.parametrize("contrast", [STATIONARY, Contrast(MARGINAL, 3.0, 1.0), Contrast(CONDITIONAL, 0.0, 0.7)])
def test_a_fit_is_a_stationary_point_of_the_squared_loss(contrast: Contrast) -> None:
    rng = np.random.default_rng(4)
    made = pairs(OU.path(rng, 0.5, 8000), contrast, rng)
    phi = log_quadratic.features(made.x, made.x_prime)
    weights = log_quadratic.fit(made)

    def loss(w: np.ndarray) -> float:
        return float(np.square(special.expit(phi @ w) - made.y).mean())

    h = special.expit(phi @ weights)
    gradient = phi.T @ ((h - made.y) * h * (1 - h)) / len(h)
    assert np.abs(gradient).max() < 1e-6
    start = log_quadratic.logistic(phi, made.y)
    truth = log_quadratic.truth(OU, 0.5, contrast)
    assert loss(weights) <= min(loss(start), loss(truth))
    assert np.abs(phi.T @ (special.expit(phi @ start) - made.y) / len(h) + 1e-6 * start).max() < 1e-5


def test_more_pairs_bring_the_weights_to_the_truth() -> None:
    rng = np.random.default_rng(7)
    made = pairs(OU.path(rng, 0.5, 200000), STATIONARY, rng)
    truth = log_quadratic.truth(OU, 0.5, STATIONARY)
    assert np.abs(fitted(made, 100000) - truth).max() < 0.05 < np.abs(fitted(made, 500) - truth).max()


# --- what is measured ---------------------------------------------------------------------------------------


def test_the_true_classifier_has_no_error_and_the_chapters_constants() -> None:
    expected = {  # c_q at 95 %, KL(p* | q) (chapter, E2)
        STATIONARY: (7.1, 0.229),
        Contrast(MARGINAL, 1.0, 1.0): (70, 0.733),
        Contrast(MARGINAL, 2.0, 1.0): (7.2e3, 2.23),
        Contrast(MARGINAL, 3.0, 1.0): (3.8e6, 4.74),
        Contrast(MARGINAL, 0.0, 2.0): (1.3e3, 0.547),
    }
    for contrast, (c_q, divergence) in expected.items():
        task = Task(OU, 0.5, contrast)
        found = task.measure(log_quadratic.truth(OU, 0.5, contrast))
        assert max(found.exc, found.kl, found.l1, found.mass_err, found.drift_rmse) < 1e-9
        assert found.slope == pytest.approx(math.exp(-0.5), abs=1e-9)
        assert task.closeness["cq95"] == pytest.approx(c_q, rel=0.03)
        assert task.closeness["kl_star_q"] == pytest.approx(divergence, rel=0.01)


@pytest.mark.parametrize(
    ("eta", "risk", "height"),
    [
        (0.0625, 0.14041, 0.82294),
        (0.25, 0.19799, 0.44972),
        (0.5, 0.22332, 0.35481),
        (1, 0.24118, 0.30337),
        (2, 0.24885, 0.28471),
    ],
)
def test_the_population_optimum_is_that_of_the_chapter(eta: float, risk: float, height: float) -> None:
    reference = recovery.of_ou(OU, eta, STATIONARY, np.linspace(-6, 6, 401), np.linspace(-7, 7, 801))
    assert reference.bayes_risk == pytest.approx(risk, abs=1e-5)
    assert (reference.joint * reference.p).sum() == pytest.approx(height, abs=1e-5)
    assert OU.height(eta) == pytest.approx(height, abs=1e-5)


@settings(max_examples=25)
@given(st.floats(-0.2, 0.2), st.floats(-0.2, 0.2), st.floats(-0.3, 0.3))
def test_errors_of_a_gaussian_kernel_are_closed_forms(shift: float, slope: float, scale: float) -> None:
    """p = N((a + slope) z + shift, s^2 exp(scale)), and its mass is multiplied by 1.1."""
    task = Task(OU, 0.5, STATIONARY)
    reference, a, s2 = task.reference, OU.decay(0.5), OU.variance(0.5)
    variance = s2 * math.exp(scale)
    mean = (a + slope) * reference.z + shift
    log_p = log_normal((reference.z_prime[None, :] - mean[:, None]) ** 2, variance) + math.log(1.1)
    found = reference.measure(log_p - reference.log_q)
    off = (reference.weights * (mean - a * reference.z) ** 2).sum()
    kl = (math.log(variance / s2) + (s2 + off) / variance - 1) / 2
    assert found.kl == pytest.approx(kl, abs=1e-9)
    assert found.mass_err == pytest.approx(0.1, abs=1e-9)
    assert found.slope == pytest.approx(a + slope, abs=1e-9)
    assert found.drift_rmse == pytest.approx(math.sqrt(off) / 0.5, abs=1e-9)
    # The excess risk is the difference of risks, from the laws of pairs with each label.
    h = special.expit(log_p - reference.log_q)
    noise = reference.mixture - reference.joint / 2
    risk = (reference.joint / 2 * (1 - h) ** 2).sum() + (noise * h**2).sum()
    assert found.exc == pytest.approx(risk - reference.bayes_risk, abs=1e-12)


@pytest.mark.parametrize("contrast", [Contrast(MARGINAL, 0.5, 1.2), Contrast(CONDITIONAL, 0.3, 0.9)])
def test_averages_over_points_agree_with_the_grid(contrast: Contrast) -> None:
    """What more than one dimension uses, held against quadrature in one."""
    rng = np.random.default_rng(1)
    process = OrnsteinUhlenbeck(1.3)
    weights = fitted(pairs(process.path(rng, 0.5, 4000), contrast, rng), 2000)
    task = Task(process, 0.5, contrast, rng.standard_normal((200000, 2, 1)))
    grid, drawn = task.measure(weights), task._drawn(weights)
    for name, value in grid._asdict().items():
        assert getattr(drawn, name) == pytest.approx(value, rel=0.03), name


@pytest.mark.parametrize("d", [2, 4])
def test_more_dimensions_are_measured(d: int) -> None:
    process = OrnsteinUhlenbeck(1.0, d)
    rng = np.random.default_rng(2)
    task = Task(process, 0.5, STATIONARY, rng.standard_normal((4000, 2, d)))
    truth = log_quadratic.truth(process, 0.5, STATIONARY)
    found = task.measure(truth)
    assert max(found.exc, found.kl, found.l1, found.mass_err, found.drift_rmse) < 1e-9
    assert found.slope == pytest.approx(math.exp(-0.5))
    assert task.closeness["kl_star_q"] == pytest.approx(d * 0.2292, rel=0.1)
    # A classifier whose kernel is no density has an excess risk, and nothing else.
    broken = truth.copy()
    broken[log_quadratic.features(np.zeros(d), np.eye(d)[0]).nonzero()[0][0]] += 10
    assert math.isnan(task.measure(broken).kl) and task.measure(broken).exc > 0


def test_the_log_cosh_reference_is_a_kernel_and_eulers_is_as_far_as_the_chapter_says() -> None:
    process, noise = LogCosh(1.0, 2.0), Contrast(MARGINAL, 0.0, 0.9)
    reference = recovery.of_chain(process.grid(0.25, 601, 6.0), 0.25, noise, 4, 3.0)
    assert np.allclose(reference.p.sum(1) * reference.cell, 1, atol=1e-12)
    euler = log_normal((reference.z_prime - (reference.z - 0.25 * process.gradient(reference.z))[:, None]) ** 2, 0.5)
    assert reference.measure(euler - reference.log_q).kl == pytest.approx(0.0787, abs=5e-4)
    assert reference.measure(reference.log_p - reference.log_q).kl == pytest.approx(0, abs=1e-12)


# --- the limit law ------------------------------------------------------------------------------------------


def test_errors_of_many_fits_are_those_of_the_limit_law() -> None:
    task, m = Task(OU, 0.5, STATIONARY), 4000
    limit = diffusion_limit.of(task.reference, task.phi)
    assert limit.exc == pytest.approx(1.303, abs=2e-3) and limit.kl == pytest.approx(7.14, abs=0.01)
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        found.append(task.measure(fitted(pairs(OU.path(rng, 0.5, 2 * m), STATIONARY, rng), m)))
    for name, expected in (("exc", limit.exc), ("kl", limit.kl)):
        values = m * np.array([getattr(each, name) for each in found])
        assert abs(values.mean() - expected) < 4 * values.std() / math.sqrt(len(values)), name
    logs = np.log(m * np.array([each.kl for each in found]))
    normal = np.random.default_rng(0).standard_normal((20000, 6))
    assert abs(logs.mean() - limit.mean_logs(normal)[1]) < 4 * logs.std() / math.sqrt(len(logs))


def test_a_shifted_law_as_close_as_a_wide_one_is_found() -> None:
    matched = matching(OU, 0.5, 2.0)
    both = [Task(OU, 0.5, law).reference.closeness(0.95) for law in (matched, Contrast(MARGINAL, 0.0, 2.0))]
    assert both[0] == pytest.approx(both[1], rel=0.05) and matched.shift > 1
    with pytest.raises(SandglassError, match="choose a wider one"):
        matching(OU, 0.5, 1.0)


def test_one_sided_closeness_does_not_see_a_wide_law() -> None:
    wide, shifted = (
        Task(OU, 0.5, law).reference for law in (Contrast(MARGINAL, 0.0, 3.0), Contrast(MARGINAL, 3.0, 1.0))
    )
    assert wide.closeness(0.95) > shifted.closeness(0.95) > 1e6
    assert wide.closeness(0.95, one_sided=True) < 5 < 5e3 < shifted.closeness(0.95, one_sided=True)


# --- neural classifiers -------------------------------------------------------------------------------------


def test_a_network_is_layers_of_tanh() -> None:
    spec = mlp.Spec(2, [5, 3])
    models = [mlp.initial(spec, np.random.default_rng(s)) for s in range(2)]
    params = {name: torch.from_numpy(np.stack([model[name] for model in models])).float() for name in mlp.shapes(spec)}
    for name in params:
        if name.endswith(".b"):
            params[name] += 0.1
    x = np.random.default_rng(3).standard_normal((4, 2))
    g, recorded = mlp.forward(spec, params, torch.zeros(1, 2), torch.from_numpy(x).float()[None])
    assert g.shape == (2, 4) and not recorded
    for model, found in zip(models, g.numpy(), strict=True):
        h = x
        for layer in range(2):
            h = np.tanh(h @ model[f"layers.{layer}.W"] + 0.1)
        assert np.allclose((h @ model["layers.2.W"] + 0.1)[:, 0], found, atol=1e-5)
    with pytest.raises(SandglassError, match="records nothing"):
        mlp.forward(spec, params, torch.zeros(1, 2), torch.zeros(1, 1, 2), ["hidden"])


def test_weights_start_as_the_chapter_says() -> None:
    weights = mlp.initial(mlp.Spec(2, [64, 64]), np.random.default_rng(0))
    assert weights["layers.1.W"].std() == pytest.approx(math.sqrt(2 / 64), rel=0.05)
    assert weights["layers.2.W"].std() == pytest.approx(0.1 * math.sqrt(2 / 64), rel=0.3)
    assert not weights["layers.0.b"].any() and weights["layers.0.W"].std() == pytest.approx(1, rel=0.2)


def test_the_objective_is_the_squared_error_of_the_label() -> None:
    rng = np.random.default_rng(0)
    data = {
        "pairs": rng.standard_normal((2, 6, 2)).astype(np.float32),
        "labels": rng.integers(0, 2, (2, 6)).astype(np.float32),
    }
    objective = Objective(data, {})
    chosen = [objective.sample(np.random.default_rng(s), 8) for s in range(2)]
    assert (
        all(((each >= 0) & (each < 6)).all() for each in chosen) and len(set(chosen[0].tolist())) < 8
    )  # with replacement
    batch = objective.collate([1, 0], chosen, [])
    assert np.array_equal(batch["pairs"][0], data["pairs"][1][chosen[0]])
    tensors = {name: torch.from_numpy(array) for name, array in batch.items()}
    found = objective.loss(lambda x: (x.sum(-1), {}), tensors)
    h = special.expit(batch["pairs"].sum(-1))
    assert np.allclose(found["loss"], ((h - batch["labels"]) ** 2).mean(-1), atol=1e-6)
    assert np.allclose(found["accuracy"], ((h > 0.5) == (batch["labels"] > 0.5)).mean(-1))


def test_far_wider_noise_costs_more_in_the_limit_on_a_grid_that_is_wide_enough() -> None:
    rows = list(widths(OU, 0.5, [1.0, 3.0, 20.0]))
    assert [row["sd_q"] for row in rows] == [1.0, 3.0, 20.0] and rows[0]["over"] == 1
    assert rows[1]["over"] < 1 < 2 < rows[2]["over"] < 3
    # Nothing of it is the grid's: the same for the law of the process on one twice as wide.
    noise = Contrast(MARGINAL, 0.0, 1.0)
    near, far = (Task(OU, 0.5, noise, reach=reach) for reach in (9, 18))
    assert diffusion_limit.of(far.reference, far.phi).kl == pytest.approx(rows[0]["limit_kl"], rel=1e-6)
    assert diffusion_limit.of(near.reference, near.phi).kl == pytest.approx(rows[0]["limit_kl"], rel=1e-12)


# --- controls of the network ----------------------------------------------------------------------------------


def test_the_closest_normal_kernel_is_the_true_one_where_that_is_normal() -> None:
    reference = Task(OU, 0.5, STATIONARY).reference
    assert reference.measure(normal(reference) - reference.log_q).kl == pytest.approx(0, abs=1e-9)
    logcosh = LogCosh(1.0, 2.0)
    of_other = recovery.of_chain(logcosh.grid(0.25, 401, 6.0), 0.25, Contrast(MARGINAL, 0.0, 0.9), 5, 3.0)
    best = of_other.measure(normal(of_other) - of_other.log_q).kl
    assert best > 1e-4
    # No other slope or variance comes closer.
    z, z_prime = of_other.z[:, None], of_other.z_prime
    for slope, variance in ((0.5, 0.28), (0.57, 0.28), (0.535, 0.25), (0.535, 0.32)):
        other = log_normal((z_prime - slope * z) ** 2, variance)
        assert of_other.measure(other - of_other.log_q).kl > best


def test_a_log_quadratic_classifier_reads_the_first_pairs_of_its_trajectory_alone() -> None:
    made = pairs(OU.path(np.random.default_rng(5), 0.5, 4000), STATIONARY, np.random.default_rng(6))
    trajectory = {"x": made.x[:, 0].tolist(), "x_prime": made.x_prime[:, 0].tolist(), "y": made.y.tolist()}
    reference = Task(OU, 0.5, STATIONARY).reference
    few = _log_quadratic(trajectory, 500, reference)
    cut = {name: values[:500] for name, values in trajectory.items()}
    assert np.array_equal(few, _log_quadratic(cut, 500, reference))
    assert reference.measure(_log_quadratic(trajectory, 2000, reference)).kl < 0.05


def test_closeness_does_not_depend_on_where_the_grid_ends() -> None:
    """N(3, 9) has a hundredth of its mass beyond nine standard deviations of the process."""
    wide = Contrast(MARGINAL, 3.0, 3.0)
    own = _task(OU, 0.5, wide)
    assert own.reach == 18
    far = Task(OU, 0.5, wide, reach=30).reference
    assert own.reference.closeness(0.95) == pytest.approx(far.closeness(0.95), rel=1e-3)
    assert Task(OU, 0.5, wide).reference.closeness(0.95) < 0.1 * far.closeness(0.95)
    assert _task(OU, 0.5, STATIONARY).reach == Task(OU, 0.5, STATIONARY).reach
