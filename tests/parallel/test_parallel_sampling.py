"""Chains, hitting times, propositions, entropy, decoders and finite samples, against enumeration and the chapter."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import linalg
from workspace import load_study

from pipeline.kit.streams import stream
from pipeline.languages import ising
from pipeline.studies.parallel import constructions
from pipeline.studies.parallel.exact import chains, entropy, estimation, finite, propositions, simulate
from pipeline.studies.parallel.exact.propositions import Clique
from pipeline.studies.parallel.params import PropositionsExperiment

SEED = 20251127
COUPLINGS = (1, 2, 3, 4, 5, 6, 8)
HITTING = {  # chapter, EXP-3: E[min(T, 1000)] by k and J
    1: (20.9, 45.5, 953.5, 999.9, 1000, 1000, 1000),
    2: (10.1, 13.3, 381.6, 999.4, 1000, 1000, 1000),
    3: (6.54, 7.45, 29.5, 33.4, 64.2, 961.2, 1000),
    4: (4.73, 5.05, 10.4, 10.8, 19.0, 197.8, 208.2),
    5: (3.63, 3.75, 5.55, 5.65, 8.99, 41.1, 42.0),
    6: (2.88, 2.92, 3.59, 3.62, 5.22, 13.9, 14.0),
    7: (2.32, 2.33, 2.57, 2.57, 3.35, 5.97, 6.00),
    8: (1.86, 1.86, 1.92, 1.92, 2.26, 2.99, 3.00),
    9: (1.44, 1.44, 1.44, 1.44, 1.53, 1.67, 1.67),
    10: (1, 1, 1, 1, 1, 1, 1),
}
R_1 = 0b1111000000


@pytest.mark.parametrize("k", HITTING)
def test_hitting_times_are_those_of_the_chapter(k: int) -> None:
    found = [
        chains.censored_moments(chains.survival(chains.lumped_gibbs(10, 4, k, J, 5.0), 0, 4, 1000))[0]
        for J in COUPLINGS
    ]
    assert np.allclose(found, HITTING[k], rtol=6e-3)


def test_independent_parallel_sampling_misses_as_often_as_the_chapter_says() -> None:
    expected = {1: (1.1, 0), 2: (4.2, 0), 3: (552, 0.262), 4: (998.4, 0.99669), 5: (999.997, 0.9999934)}
    for J, (mean, miss) in expected.items():
        survival = chains.survival(chains.lumped_independent(4, J, 5.0), 0, 4, 1000)
        assert np.isclose(chains.censored_moments(survival)[0], mean, rtol=1e-3, atol=0.05)
        assert np.isclose(survival[-1], miss, atol=5e-4)
    sd = chains.censored_moments(chains.survival(chains.lumped_gibbs(10, 4, 4, 6, 5.0), 0, 4, 1000))[1]
    assert np.isclose(sd, 191.9, atol=0.1)


@given(st.integers(0, 10**6))
@settings(max_examples=10)
def test_lumped_chains_are_the_full_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    N = int(rng.integers(2, 7))
    c, J, h = int(rng.integers(2, N + 1)), float(rng.uniform(0, 3)), float(rng.uniform(-1, 1))
    theta = ising.clique(N, c, J, [h] * c + rng.normal(size=N - c).tolist())
    p, up = ising.law(theta, N), (ising.states(N)[:, :c] > 0).sum(1)
    onto = (up[:, None] == np.arange(c + 1)).astype(float)
    for k in range(1, N + 1):
        P = chains.block_dynamics(p, estimation.uniform(N, k))
        assert np.abs(P @ onto - chains.lumped_gibbs(N, c, k, J, h)[up]).max() < 1e-14
    P = chains.independent_parallel(theta, N)
    assert np.abs(P @ onto - chains.lumped_independent(c, J, h)[up]).max() < 1e-13
    assert np.allclose(p @ onto, chains.clique_law(c, J, h))


def test_censored_moments_are_those_of_the_absorbing_chain() -> None:
    P = chains.lumped_gibbs(6, 3, 3, 0.5, 0.3)
    mean, sd = chains.censored_moments(chains.survival(P, 0, 3, 3000))
    fundamental = np.linalg.inv(np.eye(3) - P[:3, :3])
    steps = fundamental @ np.ones(3)
    variance = (2 * fundamental - np.eye(3)) @ steps - steps**2
    assert np.isclose(mean, steps[0]) and np.isclose(sd, np.sqrt(variance[0]))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_samplers_step_as_their_matrices_say(k: int) -> None:
    theta = ising.parameters([[0, 0.7, -0.2], [0, 0, 0.4], [0, 0, 0]], [0.1, 0.2, -0.3])
    p, runs = ising.law(theta, 3), 40000
    for sampler, P in (
        (simulate.Gibbs(theta, 3, k), chains.block_dynamics(p, estimation.uniform(3, k))),
        (simulate.Independent(theta, 3), chains.independent_parallel(theta, 3)),
    ):
        for start in (0, 5):
            drawn = sampler.step(stream(SEED, "steps", k, start), np.full(runs, start))
            share = np.bincount(drawn, minlength=8) / runs
            assert np.abs(share - P[start]).max() < 4.5 * np.sqrt(P[start].max() / runs)
            assert share[P[start] == 0].sum() == 0


def test_runs_count_the_state_after_a_step_and_are_censored() -> None:
    theta, rng = ising.clique(10, 4, 6.0, 5.0), stream(SEED, "hits")
    start = simulate.all_minus(rng, 10, 4, 200)
    assert (start & R_1 == 0).all()
    steps, censored = simulate.hitting(rng, simulate.Gibbs(theta, 10, 10), start, R_1, 1000)
    assert (steps == 1).all() and not censored.any()  # k = N is exact sampling
    steps, censored = simulate.hitting(rng, simulate.Gibbs(theta, 10, 1), start, R_1, 20)
    assert (steps == 20).all() and censored.all()
    steps, censored = simulate.hitting(rng, simulate.Gibbs(theta, 10, 6), start, R_1, 1000)
    assert abs(steps.mean() - 13.86) < 4 * 13.4 / np.sqrt(200)


def test_independent_parallel_sampling_uses_the_old_state() -> None:
    """Two spins with a strong negative coupling swap for ever; a sweep in place would settle."""
    theta = ising.clique(2, 2, -20.0)
    at = np.array([0b00])
    sampler, rng = simulate.Independent(theta, 2), stream(SEED, "old")
    seen = []
    for _ in range(4):
        at = sampler.step(rng, at)
        seen.append(int(at[0]))
    assert seen == [0b11, 0b00, 0b11, 0b00]


@given(st.integers(0, 10**6))
@settings(max_examples=15)
def test_the_stationary_law_of_independent_parallel_sampling(seed: int) -> None:
    theta = ising.random_parameters(np.random.default_rng(seed), 4, 0.8)
    P, law = chains.independent_parallel(theta, 4), chains.independent_parallel_law(theta, 4)
    flow = law[:, None] * P
    assert np.isclose(law.sum(), 1) and np.abs(flow - flow.T).max() < 1e-14
    assert chains.total_variation(law, ising.law(theta, 4)) > 1e-6


# --- propositions ---


def test_constants_of_the_stuck_proposition() -> None:
    expected = {  # chapter, EXP-4 (b): c_stuck, T at delta = 0.2
        (16, 1): (3.24, 2),
        (16, 2): (5.63, 27),
        (24, 1): (5.52, 24),
        (24, 2): (9.31, 1102),
        (32, 1): (7.82, 248),
        (32, 2): (13.0, 44420),
        (40, 1): (10.13, 2501),
    }
    for (c, J0), (rate, steps) in expected.items():
        found = propositions.stuck_rate(c, J0)
        assert found is not None and abs(found - rate) < 6e-3 and propositions.stuck_steps(found, 0.2) == steps
        assert propositions.stuck_stay(Clique(c, c, J0, 0.5), steps) >= 0.8
    assert propositions.stuck_steps(propositions.stuck_rate(8, 0.5), 0.2) == 0
    assert np.isclose(propositions.stuck_stay(Clique(8, 8, 0.5, 0.5), 1), 0.99845, atol=1e-5)
    assert propositions.stuck_rate(2, 0.001) is None


def test_the_negative_control_fails() -> None:
    rate = propositions.unguarded_rate(2, 0.001)
    delta = 2 * math.exp(-rate) * (1 + 1e-12)
    assert propositions.stuck_steps(rate, delta) == 1 and abs(delta - 0.7372) < 1e-4
    stay = propositions.stuck_stay(Clique(2, 2, 0.001, 1e-4), 1)
    assert np.isclose(stay, 0.2505, atol=1e-4) and stay < 1 - delta


@pytest.mark.parametrize(
    "delta, M, c, left, success",
    [
        (0.5, 10, 44, (0, 0, 7, 142), (0.9333, 0.9333, 0.8101, 0.8095)),
        (0.1, 1000, 93, (0, 0, 1, 25), (0.9873, 0.9873, 0.9676, 0.9629)),
        (0.9, 1, 20, (0, 0, 14, 286), (0.8732, 0.8732, 0.6569, 0.6546)),
    ],
)
def test_separation(delta: float, M: int, c: int, left: tuple, success: tuple) -> None:
    size, J0, h_G = propositions.separating(delta, M)
    assert size == c
    for times, unmasked, expected in zip((1, 2, 50, 1000), left, success, strict=True):
        k = propositions.fewest_masked(c * times, c, delta)
        found = propositions.one_step(Clique(c, c * times, J0, h_G), k)
        assert c * times - k == unmasked and np.isclose(found, expected, atol=1e-4) and found >= 1 - delta / 2
    assert propositions.avoids_mode(Clique(c, c, J0, h_G), M) >= 1 - delta / 2


def test_one_step_is_that_of_the_chain() -> None:
    model = Clique(5, 9, 0.4, 0.3)
    for k in (5, 7, 9):
        assert np.isclose(propositions.one_step(model, k), model.gibbs(k)[: model.start + 1, 5].min())


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_reach_is_enough_and_bisections_end_where_they_should(seed: int) -> None:
    rng = np.random.default_rng(seed)
    c = int(rng.integers(2, 6))
    model = Clique(c, c + int(rng.integers(0, 4)), float(rng.uniform(0.05, 2)), float(rng.uniform(0.05, 2)))
    k, delta = int(rng.integers(c, model.N + 1)), float(rng.uniform(0.01, 0.5))
    P, T = model.gibbs(k), propositions.reach_steps(model, k, delta)
    assert propositions.misses(P, T) <= delta
    assert P[:, c].min() >= 1 - propositions.reach_rate(model, k) - 1e-12
    needed = propositions.steps_needed(P, delta)
    assert needed is not None and needed <= T and propositions.misses(P, needed) <= delta
    assert needed == 1 or propositions.misses(P, needed - 1) > delta
    stays = propositions.stays_for(model, delta)
    if stays < propositions.ROUNDING:
        left = [propositions.stuck_stay(model, int(stays) + more) for more in (0, 1)]
        assert left[0] >= 1 - delta > left[1]


def test_long_stays_go_on_from_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both ways are exact they agree; where a matrix would be raised to a power beyond rounding, one is left."""
    for model in (Clique(5, 5, 0.5, 0.1), Clique(6, 6, 0.4, 0.1)):
        short = propositions.stays_for(model, 0.2)
        assert 30 < short < propositions.ROUNDING
        with monkeypatch.context() as patched:
            patched.setattr(propositions, "ROUNDING", 10)
            assert np.isclose(propositions.stays_for(model, 0.2), short, rtol=0.02)
    assert propositions.stays_for(Clique(40, 40, 2.0, 0.5), 0.2) > 1e40


def test_modes_and_the_boundary_case() -> None:
    rng = stream(SEED, "modes")
    for _ in range(50):
        theta, N, c, h_G, J0 = propositions.compliant(rng)
        found = propositions.modes(theta, N, c)
        assert found.up_down > 1 and found.down_rest >= math.exp(2 * J0) * (1 - 1e-12)
        assert np.allclose(found.mirror, math.exp(2 * h_G), rtol=1e-10)
    p = ising.law(ising.clique(2, 2, 1.0, [0.3, 0.0]), 2)  # J_0 = 0.7
    assert np.isclose(p[0] / p[2], math.exp(1.4), rtol=1e-12)


def test_propositions_refuse_what_they_do_not_speak_of() -> None:
    with pytest.raises(ValueError, match="expected 1 < c <= N"):
        Clique(4, 3, 0.5, 0.5)
    with pytest.raises(ValueError, match=r"h_G > 0 \(Assumption 4.1.5\)"):
        Clique(3, 3, 0.5, -0.5)
    cells = load_study("parallel").experiments["parallel-propositions"].model_dump()
    for name, wrong in (("reach_J0", [0.0]), ("reach_h_G", [-0.1]), ("stuck_J0", [-1.0]), ("stuck_h_G", 0.0)):
        with pytest.raises(
            ValidationError, match=r"not above 0: Propositions 4\.1\.4 and 4\.1\.5 need Assumption 4\.1\.5"
        ):
            PropositionsExperiment(**(cells | {name: wrong}))
    with pytest.raises(ValueError, match="needs k >= c"):
        propositions.reach_steps(Clique(4, 6, 0.5, 0.5), 3, 0.1)
    with pytest.raises(ValueError, match="must both lie between 1 and N"):
        chains.lumped_gibbs(4, 2, 5, 1.0, 0.0)


# --- entropy ---


def test_the_semigroup_is_the_matrix_exponential() -> None:
    theta = ising.random_parameters(stream(SEED, "flow"), 3, 0.6)
    p = ising.law(theta, 3)
    P = chains.block_dynamics(p, estimation.uniform(3, 2))
    start = stream(SEED, "start").dirichlet(np.ones(8))
    expected = start @ linalg.expm(-1.3 * (np.eye(8) - P))
    assert np.allclose(entropy.Semigroup(P, p).at(1.3, start), expected, atol=1e-13)


def test_conditional_divergence_by_hand() -> None:
    rng = stream(SEED, "kl")
    r, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
    scheme = estimation.fixed(2, [0b10, 0b01], [0.3, 0.7])
    R, Q = r.reshape(2, 2), q.reshape(2, 2)
    columns = sum(R[:, j].sum() * chains.divergence(R[:, j] / R[:, j].sum(), Q[:, j] / Q[:, j].sum()) for j in (0, 1))
    rows = sum(R[i].sum() * chains.divergence(R[i] / R[i].sum(), Q[i] / Q[i].sum()) for i in (0, 1))
    assert np.isclose(entropy.conditional_divergence(r, q, scheme), 0.3 * columns + 0.7 * rows)
    assert np.isclose(entropy.conditional_divergence(r, q, estimation.uniform(2, 2)), chains.divergence(r, q))


def test_total_correlations() -> None:
    pair = np.array([[0.5, 0, 0, 0.5]])
    assert np.isclose(chains.total_correlation(pair, 2)[0], math.log(2))
    assert np.isclose(entropy.least_distance_of_products(pair[0]), math.sqrt(2) - 1, atol=1e-8)
    for J, tc, tv in ((0.05, 0.00854, 0.0424), (0.3, 0.4668, 0.3922), (1.0, 2.0018, 0.8642)):
        p = ising.law(ising.clique(4, 4, J), 4)[None]
        assert np.isclose(chains.total_correlation(p, 4)[0], tc, atol=1e-4)
        assert np.isclose(chains.total_variation(chains.product_of_marginals(p, 4), p)[0], tv, atol=1e-4)


# --- decoders ---


@pytest.mark.parametrize("N, V", [(2, 2), (3, 2), (3, 3), (4, 2)])
def test_constructed_decoders(N: int, V: int) -> None:
    rng = stream(SEED, "decoder", N, V)
    sequences = constructions.sequences(V, N)
    laws = rng.dirichlet(np.ones(V), (len(sequences), N))
    decoder = constructions.of_product(laws)
    assert np.abs(decoder.probabilities(sequences).swapaxes(1, 2) - laws).max() < 1e-12
    rows = decoder.transition(sequences)
    s, t = 1, len(sequences) - 2
    assert np.isclose(rows[s, t], np.prod([laws[s, j, sequences[t, j]] for j in range(N)]))
    following = sequences[rng.integers(len(sequences), size=len(sequences))]
    assert (constructions.of_map(following, V).likeliest(sequences) == following).all()
    assert (decoder.tokens.shape[0], len(decoder.blocks[1].b1)) == constructions.sizes(V, N)


def test_attention_is_over_keys_of_each_column() -> None:
    """Eq. 4.57: softmax over rows of each column, without scale; not over queries."""
    rng = stream(SEED, "attention")
    X, (W_O, W_V, W_K, W_Q) = rng.normal(size=(3, 4)), rng.normal(size=(4, 3, 3))
    block = constructions.Block(((W_O, W_V, W_K, W_Q),), np.zeros((1, 3)), np.zeros(1), np.zeros((3, 1)), np.zeros(3))
    expected = X.copy()
    for j in range(4):
        weights = np.exp([(W_K @ X[:, i]) @ (W_Q @ X[:, j]) for i in range(4)])
        expected[:, j] += W_O @ sum(w * W_V @ X[:, i] for i, w in enumerate(weights / weights.sum()))
    assert np.allclose(block(X), expected)


def test_decoders_refuse_what_they_cannot_be() -> None:
    with pytest.raises(ValueError, match="strictly positive"):
        constructions.of_product(np.eye(2)[np.zeros((4, 2), int)])
    with pytest.raises(ValueError, match=r"expected 2\^3"):
        constructions.decoder(np.zeros((4, 3, 2)))


# --- finite samples ---


def test_bounds_are_those_of_the_chapter() -> None:
    """Chapter 5.8: n, m, mean bound in divergence and in likelihood form, mean distance."""
    assert np.isclose(finite.least_conditional(finite.COUPLED), 0.0596, atol=5e-5) and finite.cells(0.01) == 800
    for n, m, kl, nll, tv in ((10**5, 10**4, 4.52, 4.60, 0.0011), (10**6, 10**9, 0.278, 0.871, 0.0004)):
        fits = [finite.fit(stream(SEED, n, i), finite.COUPLED, 0.3, n, m) for i in range(40)]
        parts = finite.terms(n, m, 0.1, 0.01)
        assert np.isclose(np.mean([finite.bound(finite.COUPLED, fit.kl, parts, 0.01) for fit in fits]), kl, rtol=5e-3)
        assert np.isclose(np.mean([finite.bound(finite.COUPLED, fit.nll, parts, 0.01) for fit in fits]), nll, rtol=5e-3)
        assert np.isclose(np.mean([fit.tv for fit in fits]), tv, rtol=0.4)


def test_fits_of_two_spins_minimise_their_loss() -> None:
    """The divergence from the sample to the fitted law is at most C_AT times the loss in divergence form."""
    for family in finite.FAMILIES:
        rng = stream(SEED, family)
        for _ in range(20):
            fit = finite.fit(rng, family, 0.3, 500, 10**7)
            assert -1e-3 < fit.kl < 0.1 and 0 <= fit.tv < 0.2
