"""Ising models and the asymptotics of pseudolikelihood, by enumeration, against the chapter's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workspace import load_study

from pipeline.kit.streams import stream
from pipeline.languages import ising
from pipeline.studies.parallel.exact import chains, estimation, fits
from pipeline.studies.parallel.exact import schemes as designs
from pipeline.studies.parallel.exact.asymptotics import asymptotics
from schemas.parallel.tables import SCHEMES

SEED = 20251127
BLOCKS = load_study("parallel").experiments["parallel-design"].sets
TRACES = {  # chapter, EXP-1/2: J, columns that are fitted, trace of Gamma for k = 1 to 4
    (0.05, None): (28.2609, 15.3355, 11.4463, 10.1116),
    (0.3, None): (43.7325, 23.4621, 17.8210, 16.3272),
    (0.05, 6): (12.1282, 7.2826, 6.0784, 6.0784),
    (0.3, 6): (19.3806, 11.8230, 10.2487, 10.2487),
}
GAPS = {0.05: (0.21273, 0.44770, 0.70861, 1), 0.3: (0.06803, 0.18013, 0.39726, 1)}
AVERAGED = {0.05: (10.1116,) * 4, 0.3: (16.337, 16.327, 16.327, 16.327)}


@st.composite
def models(draw: st.DrawFn, most: int = 4) -> tuple[np.ndarray, int]:
    """Parameters of a random model, and its spins."""
    N = draw(st.integers(2, most))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return ising.random_parameters(rng, N, draw(st.sampled_from([0.2, 0.6, 1.2]))), N


def target(J: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    theta = ising.clique(4, 4, J)
    return theta, ising.law(theta, 4), ising.statistics(4)


# --- Ising models ---


def test_states_count_each_pair_once() -> None:
    theta = ising.parameters([[0, 0.7, -0.2], [0, 0, 0.4], [0, 0, 0]], [0.1, 0.2, -0.3])
    weights = []
    for a in (-1, 1):
        for b in (-1, 1):
            for c in (-1, 1):
                weights.append(np.exp(0.7 * a * b - 0.2 * a * c + 0.4 * b * c + 0.1 * a + 0.2 * b - 0.3 * c))
    assert np.allclose(ising.law(theta, 3), np.array(weights) / sum(weights), atol=1e-15)
    J, h = ising.couplings(theta, 3)
    assert J[0, 1] == J[1, 0] == 0.7 and h.tolist() == [0.1, 0.2, -0.3]
    # Log odds of a spin: 2 h + 2 J sum x (the proof of Proposition 4.1.5).
    plus = chains.single_probabilities(theta, 3)[0b011, 0]
    assert np.isclose(np.log(plus / (1 - plus)), 2 * (0.1 + 0.7 - 0.2))


@given(st.integers(1, 6), st.data())
@settings(max_examples=30)
def test_contexts_divide_the_states(N: int, data: st.DataObject) -> None:
    mask = data.draw(st.integers(1, 2**N - 1))
    contexts, near = ising.contexts(N, mask), ising.companions(N, mask)
    assert sorted(contexts.ravel().tolist()) == list(range(2**N))
    x = ising.states(N)
    off = [i for i in range(N) if i not in ising.positions(N, mask)]
    for s in range(2**N):
        assert s in near[s] and (x[near[s]][:, off] == x[s][off]).all()
    assert ising.mask_of(N, tuple(ising.positions(N, mask))) == mask


def test_samples_have_the_laws_they_claim() -> None:
    _, p, _ = target(0.3)
    drawn = ising.counts(stream(SEED, "counts"), p, 1000, 400)
    assert (drawn.sum(1) == 1000).all()
    assert np.abs((drawn.mean(0) - 1000 * p) / np.sqrt(1000 * p / 400)).max() < 4
    masked = ising.masked_counts(stream(SEED, "masks"), drawn, 2, 4)
    assert (masked.sum(1) == drawn).all()
    share = masked.sum((0, 2)) / masked.sum()
    assert np.abs(share - 1 / 6).max() < 4 * np.sqrt(1 / 6 * 5 / 6 / masked.sum())


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ising.masks(4, 5), "masks of 5 of 4 positions"),
        (lambda: ising.masks(4, 0), "expected 1 to 4"),
        (lambda: ising.clique(4, 5, 1.0), "a clique of 5 does not fit 4 spins"),
        (lambda: ising.states(30), "states of 30 spins"),
        (lambda: ising.check_cover(4, [0b1000, 0b0110]), "do not cover position 4 of 4"),
        (lambda: ising.check_cover(2, [0, 3]), "expected numbers from 1 to 3"),
        (lambda: ising.parameters(np.zeros((3, 3)), [0, 0]), "do not fit 2 fields"),
        (lambda: ising.assumption(30.0, [5.0] * 10, 4), "h_G = 20 is not above 30"),
        (lambda: ising.assumption(19.0, [5.0] * 4 + [0.0] * 6, 4), r"J = 19 is not above \|\|h\|\|_1 = 20"),
        (lambda: estimation.fixed(3, [7], [0.5]), "sum to 1"),
        (lambda: estimation.fixed(3, [4, 2]), "position 3 of 3"),
        (lambda: fits.Problem(np.zeros((1, 4, 16)), ising.masks(4, 1), 4), "no observation"),
        (lambda: fits.Problem(np.ones((1, 3, 16)), ising.masks(4, 1), 4), "expected"),
    ],
)
def test_bad_input_gets_a_line(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


# --- asymptotics ---


@pytest.mark.parametrize("key", TRACES)
def test_traces_are_those_of_the_chapter(key: tuple[float, int | None]) -> None:
    J, columns = key
    _, p, phi = target(J)
    phi = phi[:, :columns]
    found = [np.trace(np.linalg.inv(estimation.information(p, phi, estimation.uniform(4, k)))) for k in (1, 2, 3, 4)]
    assert np.allclose(found, TRACES[key], atol=1e-4)


@pytest.mark.parametrize("J", GAPS)
def test_gaps_and_averaged_masks_are_those_of_the_chapter(J: float) -> None:
    _, p, phi = target(J)
    schemes = [estimation.uniform(4, k) for k in (1, 2, 3, 4)]
    assert np.allclose([chains.gap(chains.block_dynamics(p, s), p) for s in schemes], GAPS[J], atol=1e-5)
    averaged = [np.trace(estimation.averaged_covariance(p, phi, s)) for s in schemes]
    assert np.allclose(averaged, AVERAGED[J], atol=1e-3)


def test_the_trace_has_two_parts_and_averaged_masks_a_worst_direction() -> None:
    """Without fields in the law, couplings and fields are estimated apart (chapter, EXP-1/2: 19.3806 where couplings
    alone are fitted); averaged over all masks of one position the worst direction is bad where spins are coupled."""
    whole, phi = estimation.uniform(4, 4), ising.statistics(4)
    worst = {}
    for J in (0.3, 1.0):
        p, single = ising.law(ising.clique(4, 4, J), 4), estimation.uniform(4, 1)
        fisher = estimation.information(p, phi, whole)
        one = asymptotics(p, np.linalg.inv(estimation.information(p, phi, single)), fisher, single)
        assert one["tr_couplings"] + one["tr_fields"] == pytest.approx(one["tr_gamma"])
        if J == 0.3:
            assert one["tr_couplings"] == pytest.approx(19.3806, abs=1e-4)
        only = phi[:, :6]
        gamma = np.linalg.inv(estimation.information(p, only, single))
        alone = asymptotics(p, gamma, estimation.information(p, only, whole), single)
        assert alone["tr_fields"] is None and alone["tr_couplings"] == alone["tr_gamma"]
        worst[J] = estimation.worst_ratio(estimation.averaged_covariance(p, phi, single), fisher)
    assert worst[0.3] < 1.05 and worst[1.0] > 50


def test_without_coupling_the_covariance_is_in_closed_form() -> None:
    """Gamma_h = N/k for each field, Gamma_J = 1 / (1 - C(N-2,k)/C(N,k)) for each coupling."""
    _, p, phi = target(1e-9)
    totals = [np.trace(np.linalg.inv(estimation.information(p, phi, estimation.uniform(4, k)))) for k in (1, 2, 3, 4)]
    assert np.allclose(totals, [28, 15.2, 34 / 3, 10], atol=1e-6)


@given(models())
@settings(max_examples=15)
def test_masking_more_is_better_and_below_the_bound(made: tuple[np.ndarray, int]) -> None:
    theta, N = made
    p, phi = ising.law(theta, N), ising.statistics(N)
    H = [estimation.information(p, phi, estimation.uniform(N, k)) for k in range(1, N + 1)]
    for k in range(1, N):
        assert estimation.excess(H[k], H[k - 1]) > -1e-12
        assert np.abs(H[k] - H[k - 1] - estimation.increment(p, phi, N, k)).max() < 1e-12
    for k, h in enumerate(H, 1):
        P = chains.block_dynamics(p, estimation.uniform(N, k))
        assert np.allclose(P.sum(1), 1) and np.abs(p @ P - p).max() < 1e-14
        assert estimation.excess(np.linalg.inv(H[-1]) / chains.gap(P, p), np.linalg.inv(h)) > -1e-8
        v = np.arange(1.0, phi.shape[1] + 1)
        assert np.isclose(v @ h @ v, chains.dirichlet(P, p, phi @ v), rtol=1e-10)


@given(models(3), st.integers(0, 10**6))
@settings(max_examples=15)
def test_adaptive_masks(made: tuple[np.ndarray, int], seed: int) -> None:
    theta, N = made
    p, phi = ising.law(theta, N), ising.statistics(N)
    scheme = estimation.adaptive(np.random.default_rng(seed), N)
    H = estimation.information(p, phi, scheme)
    assert np.abs(estimation.loss_hessian(theta, p, phi, scheme) - H).max() < 1e-6
    assert np.abs(estimation.loss_gradient(theta, p, phi, scheme)).max() < 1e-9
    P = chains.block_dynamics(p, scheme)
    flow = p[:, None] * P
    assert np.allclose(P.sum(1), 1) and np.abs(flow - flow.T).max() < 1e-14
    kept = np.linalg.eigvals(chains.kept_mask_chain(p, scheme))
    assert (np.abs(kept - 1) < 1e-9).sum() == 3**N - 2**N  # sum over non-empty K of 2^(N - |K|)
    # What leaves K out has a gradient at the truth: the closed form against differences of that loss.
    step, d = 1e-5, len(theta)
    eye = step * np.eye(d)
    ahead = estimation.population_loss(theta + eye, p, phi, scheme, drop=True)
    behind = estimation.population_loss(theta - eye, p, phi, scheme, drop=True)
    assert np.allclose((ahead - behind) / (2 * step), estimation.dropped_gradient(theta, p, phi, scheme), atol=1e-8)


def test_a_mask_that_never_comes_with_a_state_is_left_out() -> None:
    given_ = np.array([[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 0.0]])
    scheme = estimation.Scheme(2, (0b11, 0b01), given_)
    theta = ising.clique(2, 2, 0.4, [0.1, -0.2])
    p, phi = ising.law(theta, 2), ising.statistics(2)
    H = estimation.information(p, phi, scheme)
    P = chains.block_dynamics(p, scheme)
    assert np.isfinite(H).all() and np.allclose(P.sum(1), 1) and np.abs(p @ P - p).max() < 1e-14


# --- fits ---


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_descent_and_newton_find_the_same_point(k: int) -> None:
    theta, p, _ = target(0.3)
    drawn = ising.counts(stream(SEED, "fit"), p, 1000, 6)
    problem = fits.Problem(ising.masked_counts(stream(SEED, "fit", k), drawn, k, 4), ising.masks(4, k), 4)
    newton, descent = fits.newton(problem), fits.descend(problem, 0.3, 3000, 1e-8)
    assert newton.converged_R.all() and descent.converged_R.all()
    assert np.abs(newton.theta_RxD - descent.theta_RxD).max() < 1e-6
    assert (problem.loss(newton.theta_RxD) <= problem.loss(np.repeat(theta[None], 6, 0)) + 1e-12).all()
    at = newton.theta_RxD + 0.1
    gradient, second = problem.gradient(at, hessian=True)
    assert second is not None
    shift = 1e-5 * np.eye(10)
    numeric = np.stack([(problem.loss(at + row) - problem.loss(at - row)) / 2e-5 for row in shift], 1)
    assert np.allclose(numeric, gradient, atol=1e-8)
    numeric = np.stack([(problem.gradient(at + row)[0] - problem.gradient(at - row)[0]) / 2e-5 for row in shift], 1)
    assert np.allclose(numeric, second, atol=1e-7)
    assert np.linalg.eigvalsh(second).min() > 0


def test_the_full_mask_is_maximum_likelihood() -> None:
    _, p, phi = target(0.3)
    drawn = ising.counts(stream(SEED, "mle"), p, 2000, 3)
    fit = fits.newton(fits.Problem(drawn[:, None], [0b1111], 4))
    assert np.allclose(ising.law(fit.theta_RxD, 4) @ phi, drawn / 2000 @ phi, atol=1e-9)  # moments match


def test_a_separable_sample_is_flagged() -> None:
    counts = np.zeros((1, 1, 16))
    counts[0, 0, -1] = 50  # always +1
    fit = fits.newton(fits.Problem(counts, [0b1111], 4))
    assert not fit.converged_R.any() or np.abs(fit.theta_RxD).max() <= fits.CAP


@pytest.mark.parametrize("J", [0.05, 0.3])
def test_errors_are_what_asymptotics_say(J: float) -> None:
    theta, p, phi = target(J)
    drawn = ising.counts(stream(SEED, "errors", f"{J}"), p, 4000, 400)
    for k in (1, 4):
        problem = fits.Problem(ising.masked_counts(stream(SEED, J, k), drawn, k, 4), ising.masks(4, k), 4)
        squares = ((fits.newton(problem).theta_RxD - theta) ** 2).sum(1)
        trace = np.trace(np.linalg.inv(estimation.information(p, phi, estimation.uniform(4, k))))
        assert abs(4000 * squares.mean() / trace - 1) < 0.1


def test_sets_of_masks_are_those_of_the_chapter() -> None:
    """EXP-6 at J_in = 1: trace, C and worst direction of five sets of masks."""
    p, phi = ising.law(designs.two_pairs(1.0, 0.05), 4), ising.statistics(4)
    fisher = estimation.information(p, phi, estimation.uniform(4, 4))
    traces, constants = [], []
    for scheme in (designs.scheme(BLOCKS[name]) for name in SCHEMES):
        gamma = np.linalg.inv(estimation.information(p, phi, scheme))
        traces.append(np.trace(gamma))
        constants.append(1 / chains.gap(chains.block_dynamics(p, scheme), p))
        worst = estimation.worst_ratio(gamma, fisher)
        assert np.isclose(worst, np.linalg.eigvals(gamma @ fisher).real.max(), rtol=1e-8)
        assert np.isclose(worst, constants[-1], rtol=1e-3)
    assert np.allclose(traces, [81.17, 50.33, 45.78, 52.09, 37.57], atol=6e-3)
    assert np.allclose(constants, [20.08, 9.83, 4.87, 2.42, 1], atol=6e-3)
