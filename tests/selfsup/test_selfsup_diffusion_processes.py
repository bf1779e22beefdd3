"""Diffusions, their pairs and laws of noise: exact laws, samplers against them, and what is refused."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from pipeline.errors import SandglassError
from pipeline.languages import diffusions
from pipeline.languages.diffusions import CONDITIONAL, MARGINAL, Chain, Contrast, GridChain, LogCosh, OrnsteinUhlenbeck

OU = OrnsteinUhlenbeck(1.0)
rates = st.floats(0.2, 5)
times = st.floats(0.01, 3)


class Quadratic:
    """The potential of an Ornstein-Uhlenbeck process with rho = 1."""

    def potential(self, x: np.ndarray) -> np.ndarray:
        return x**2 / 2


# --- the Ornstein-Uhlenbeck process -------------------------------------------------------------------------


@given(rates, times, times)
def test_two_steps_are_one_longer_step(rho: float, first: float, second: float) -> None:
    process = OrnsteinUhlenbeck(rho)
    a, both = process.decay(second), first + second
    assert process.decay(first) * a == pytest.approx(process.decay(both))
    assert a**2 * process.variance(first) + process.variance(second) == pytest.approx(process.variance(both))
    # pi is kept: a^2 / rho + s^2 = 1 / rho
    assert a**2 / rho + process.variance(second) == pytest.approx(1 / rho)


@pytest.mark.parametrize("d", [1, 3])
def test_paths_have_the_law_of_the_recursion(d: int) -> None:
    process, eta, steps = OrnsteinUhlenbeck(2.0, d), 0.3, 40000
    path = process.path(np.random.default_rng(3), eta, steps)
    assert path.shape == (steps, d)
    noise = path[1:] - process.decay(eta) * path[:-1]
    standard = noise / math.sqrt(process.variance(eta))
    assert stats.kstest(standard.ravel(), "norm").pvalue > 1e-3
    assert abs((standard[1:] * standard[:-1]).mean()) < 5 / math.sqrt(steps)
    starts = np.array([process.path(np.random.default_rng(s), eta, 1)[0] for s in range(2000)])
    assert stats.kstest(starts.ravel() * math.sqrt(2.0), "norm").pvalue > 1e-3


@given(st.floats(-3, 3), rates, times)
def test_the_kernel_is_a_density_with_the_mean_of_the_process(z: float, rho: float, eta: float) -> None:
    process = OrnsteinUhlenbeck(rho)
    sd, mean = math.sqrt(process.variance(eta)), process.decay(eta) * z
    x = np.linspace(mean - 9 * sd, mean + 9 * sd, 4001)
    p = np.exp(process.log_kernel(np.array([[z]]), x[:, None], eta))
    assert np.trapezoid(p, x) == pytest.approx(1, abs=1e-9)
    assert np.trapezoid(p * x, x) == pytest.approx(mean, abs=1e-9)


@pytest.mark.parametrize(("z", "t"), [(0.0, 0.05), (1.3, 0.5), (5.0, 0.5), (5.0, 1.0), (-2.0, 3.0)])
def test_distances_to_the_stationary_law_are_those_of_integration(z: float, t: float) -> None:
    x = np.linspace(-12, 12, 400001)
    kernel = stats.norm.pdf(x, OU.decay(t) * z, math.sqrt(OU.variance(t)))
    expected = np.trapezoid(np.abs(kernel - stats.norm.pdf(x)), x) / 2
    assert OU.distance_to_stationary(z, t) == pytest.approx(expected, abs=1e-7)


def test_mixing_is_that_of_the_chapter() -> None:
    """The chapter's 0.0435 at t = 2 is 0.0436, and its 0.9096 from z = 5 belongs to t = 1/2 and not to t = 1."""
    found = [OU.mixing(t) for t in (0.01, 0.05, 0.1, 0.5, 1, 2, 4)]
    assert np.allclose(found, [0.8019, 0.6272, 0.5234, 0.2405, 0.1271, 0.0436, 0.0058], atol=6e-5)
    assert OU.distance_to_stationary(5.0, 0.5) == pytest.approx(0.9096, abs=1e-4)
    assert OU.distance_to_stationary(5.0, 1.0) == pytest.approx(0.6598, abs=1e-4)
    assert OU.mean_norm / math.sqrt(2 * math.pi) == pytest.approx(0.3183, abs=1e-4)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_mean_norm_is_that_of_samples(d: int) -> None:
    drawn = np.random.default_rng(0).standard_normal((200000, d)) / math.sqrt(1.7)
    norms = np.linalg.norm(drawn, axis=1)
    assert OrnsteinUhlenbeck(1.7, d).mean_norm == pytest.approx(norms.mean(), abs=5 * norms.std() / 447)


@pytest.mark.parametrize("bad", [{"rho": 0.0}, {"rho": -1.0}, {"rho": 1.0, "d": 0}])
def test_an_impossible_process_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(SandglassError, match="rho > 0"):
        OrnsteinUhlenbeck(**bad)  # type: ignore[arg-type]
    with pytest.raises(SandglassError, match="log-cosh"):
        LogCosh(1.0, -2.0)


# --- the log-cosh process, and grids ------------------------------------------------------------------------


def test_smoothness_of_the_log_cosh_potential() -> None:
    process = LogCosh(1.0, 2.0)
    x = np.linspace(-8, 8, 160001)
    f, h = process.potential(x), x[1] - x[0]
    first = np.gradient(f, h)
    assert np.allclose(first[1:-1], process.gradient(x)[1:-1], atol=1e-6)
    second = np.gradient(process.gradient(x), h)
    assert second.max() == pytest.approx(process.L0, abs=1e-6) and second.min() >= process.rho - 1e-9
    assert np.abs(np.gradient(second, h)).max() == pytest.approx(process.L1, abs=1e-3)
    assert process.potential(np.array([1000.0]))[0] == pytest.approx(500000 + 2000 - 2 * math.log(2))


def test_the_grid_chain_is_reversible_and_has_the_chapters_variance() -> None:
    chain = LogCosh(1.0, 2.0).grid(0.25, 601, 6.0)
    flow = chain.stationary[:, None] * chain.kernel
    assert np.allclose(chain.kernel.sum(1), 1, atol=1e-12) and np.abs(flow - flow.T).max() < 1e-14
    assert chain.stationary @ chain.x**2 == pytest.approx(0.39972, abs=1e-5)


def test_the_grid_kernel_is_close_to_a_kernel_that_is_known() -> None:
    errors = []
    for points in (301, 601):
        chain = GridChain.of(Quadratic(), 0.5, points, 6.0)
        exact = np.exp(OU.log_kernel(chain.x[:, None, None], chain.x[None, :, None], 0.5))
        off = np.abs(chain.density - exact)
        inside = np.abs(chain.x) <= 4
        errors.append(off[np.ix_(inside, inside)].max())
        weighted = (chain.stationary[:, None] * off).sum() * chain.spacing
    assert errors[1] == pytest.approx(5.2e-5, rel=0.05) and weighted == pytest.approx(4.4e-5, rel=0.02)
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)  # of order h^2


def test_paths_on_the_grid_move_as_its_kernel_says() -> None:
    chain = LogCosh(1.0, 2.0).grid(0.25, 9, 2.0)
    rngs = [np.random.default_rng(s) for s in range(4)]
    paths = chain.paths(rngs, 20000)
    states = np.rint((paths - chain.x[0]) / chain.spacing).astype(int)
    assert paths.shape == (4, 20000) and np.abs(paths - chain.x[states]).max() <= chain.spacing / 2
    counts = np.zeros((9, 9))
    np.add.at(counts, (states[:, :-1].ravel(), states[:, 1:].ravel()), 1)
    for row, expected in zip(counts, chain.kernel, strict=True):
        kept = expected * row.sum() > 5
        observed = np.append(row[kept], row[~kept].sum())
        wanted = np.append(expected[kept], expected[~kept].sum()) * row.sum()
        if kept.sum() > 1 and wanted[-1] > 0:
            assert stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue > 1e-4
    assert np.abs(np.bincount(states.ravel(), minlength=9) / 80000 - chain.stationary).max() < 0.02
    alone = chain.paths([np.random.default_rng(2)], 50)
    assert np.array_equal(alone[0], chain.paths([np.random.default_rng(s) for s in range(3)], 50)[2])


@pytest.mark.parametrize(("points", "width", "eta"), [(2, 1.0, 0.1), (9, 0.0, 0.1), (9, 1.0, 0.0)])
def test_an_impossible_grid_is_refused(points: int, width: float, eta: float) -> None:
    with pytest.raises(SandglassError, match="at least three points"):
        LogCosh(1.0, 2.0).grid(eta, points, width)


# --- finite chains ------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(2, 11))
def test_random_chains_have_bounded_ratios_and_their_stationary_law(seed: int, states: int) -> None:
    chain = diffusions.random_chain(np.random.default_rng(seed), states)
    assert np.allclose(chain.stationary @ chain.kernel, chain.stationary, atol=1e-12)
    assert np.allclose(chain.kernel.sum(1), 1) and chain.noise.sum() == pytest.approx(1)
    assert min(chain.kernel.min(), chain.noise.min()) >= 0.1 / states


@pytest.mark.parametrize("matrix", [[[0.5, 0.6], [0.5, 0.5]], [[1.2, -0.2], [0.5, 0.5]], [[0.5, 0.5]]])
def test_what_is_no_transition_matrix_is_refused(matrix: list[list[float]]) -> None:
    with pytest.raises(SandglassError, match="each of its rows sums to 1"):
        diffusions.stationary_law(matrix)


@pytest.mark.parametrize("pairs", [1, 2])
def test_mixing_of_pairs_is_that_of_all_their_sequences(pairs: int) -> None:
    """By walking every sequence of points and labels of a chain on three states."""
    P, pi, q = chain = diffusions.random_chain(np.random.default_rng(5), 3)
    steps = 2 * pairs + 1
    joint: dict[tuple[int, ...], float] = {}
    for points in np.ndindex(*[3] * (steps + 1)):
        weight = pi[points[0]] * math.prod(P[a, b] for a, b in pairwise(points))
        for first in (1, 0):
            for noise in range(3) if not first else (points[1],):
                for last in (1, 0):
                    for other in range(3) if not last else (points[-1],):
                        seen = (first, points[0], noise, last, points[-2], other)
                        share = weight / 4 * (1 if first else q[noise]) * (1 if last else q[other])
                        joint[seen] = joint.get(seen, 0.0) + share
    for labelled in (True, False):
        merged: dict[tuple[int, ...], float] = {}
        for (first, x, x_prime, last, z, z_prime), share in joint.items():
            key: tuple[int, ...] = (x, x_prime, z, z_prime)
            if labelled:
                key = (first, x, x_prime, last, z, z_prime)
            merged[key] = merged.get(key, 0.0) + share
        half = len(next(iter(merged))) // 2
        one: dict[tuple[int, ...], float] = {}
        two: dict[tuple[int, ...], float] = {}
        for key, share in merged.items():
            one[key[:half]] = one.get(key[:half], 0.0) + share
            two[key[half:]] = two.get(key[half:], 0.0) + share
        total = sum(abs(merged.get(a + b, 0.0) - one[a] * two[b]) for a in one for b in two)
        assert diffusions.pair_mixing(chain, pairs, labelled) == pytest.approx(total / 2, abs=1e-12)


def test_a_chain_that_forgets_at_once_does_not_mix_any_further() -> None:
    law = np.array([0.2, 0.3, 0.5])
    chain = Chain(np.tile(law, (3, 1)), law, np.array([0.4, 0.4, 0.2]))
    assert diffusions.chain_mixing(chain, 1) < 1e-15
    assert diffusions.pair_mixing(chain, 1, labelled=True) < 1e-15


# --- the contrastive task -----------------------------------------------------------------------------------


@given(st.sampled_from([MARGINAL, CONDITIONAL]), st.floats(-3, 3), st.floats(0.3, 3), st.floats(-2, 2))
def test_a_contrast_law_is_a_density_around_its_centre(kind: str, shift: float, sd: float, z: float) -> None:
    contrast = Contrast(kind, shift, sd)
    centre = shift + (z if kind == CONDITIONAL else 0.0)

    def density(x: float) -> float:
        return float(np.exp(contrast.log_density(np.array([[z]]), np.array([[x]])))[0])

    total, _ = integrate.quad(density, centre - 10 * sd, centre + 10 * sd)
    assert total == pytest.approx(1, abs=1e-7)
    assert contrast.centre(np.array([[z]]))[0, 0] == pytest.approx(centre)


@pytest.mark.parametrize("contrast", [Contrast(MARGINAL, 1.0, 2.0), Contrast(CONDITIONAL, -0.5, 0.7)])
def test_draws_of_a_contrast_law_have_its_density(contrast: Contrast) -> None:
    z = np.random.default_rng(1).standard_normal((20000, 2))
    drawn = contrast.sample(np.random.default_rng(2), z)
    standard = (drawn - contrast.centre(z)) / contrast.sd
    assert stats.kstest(standard.ravel(), "norm").pvalue > 1e-3
    log_density = stats.norm.logpdf(standard).sum(1) - 2 * math.log(contrast.sd)
    assert np.allclose(contrast.log_density(z, drawn), log_density)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ((MARGINAL, 0.0, 0.0), "needs a density"),
        ((MARGINAL, 0.0, -1.0), "needs a density"),
        ((MARGINAL, math.inf, 1.0), "needs a density"),
        (("uniform", 0.0, 1.0), "marginal or conditional"),
    ],
)
def test_a_contrast_law_without_density_is_refused(bad: tuple[str, float, float], said: str) -> None:
    with pytest.raises(SandglassError, match=said):
        Contrast(*bad)


@given(st.integers(2, 301), st.sampled_from([MARGINAL, CONDITIONAL]))
def test_pairs_are_disjoint_and_positives_follow(steps: int, kind: str) -> None:
    path = OU.path(np.random.default_rng(steps), 0.5, steps)
    found = diffusions.pairs(path, Contrast(kind, 0.0, 1.0), np.random.default_rng(9))
    m = steps // 2
    assert found.x.shape == found.x_prime.shape == (m, 1) and found.y.shape == (m,)
    assert np.array_equal(found.x, path[0 : 2 * m : 2])
    follows = path[1 : 2 * m : 2]
    assert np.array_equal(found.x_prime[found.y], follows[found.y])
    assert not np.isin(found.x_prime[~found.y], path).any()  # fresh noise


def test_half_of_the_pairs_are_positive_and_noise_does_not_know_the_path() -> None:
    path = OU.path(np.random.default_rng(0), 0.1, 40000)
    found = diffusions.pairs(path, Contrast(MARGINAL, 0.0, 1.0), np.random.default_rng(1))
    assert abs(found.y.mean() - 0.5) < 5 * 0.5 / math.sqrt(20000)
    noise, first = found.x_prime[~found.y, 0], found.x[~found.y, 0]
    assert (
        abs(np.corrcoef(noise, first)[0, 1]) < 0.05 < np.corrcoef(found.x[found.y, 0], found.x_prime[found.y, 0])[0, 1]
    )
