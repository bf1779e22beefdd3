"""Shared statistics: against closed forms, brute-force loops and scipy; reproducible from a named stream."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from pipeline.kit import stats
from pipeline.kit.shares import share_interval
from pipeline.kit.streams import stream

HOW = {"resamples": 2000, "confidence": 0.95}


def rng(*names: str | int) -> np.random.Generator:
    return stream(0, "test-stats", *names)


def test_interval_of_a_mean_is_the_normal_one() -> None:
    sample = rng("sample").normal(3, 2, 400)
    value, lo, hi = stats.bootstrap(stats.mean, sample, rng=rng("b"), **HOW)
    assert value == pytest.approx(sample.mean())
    half = 1.96 * sample.std() / 20
    assert (lo, hi) == pytest.approx((value - half, value + half), abs=0.15 * half)
    again = stats.bootstrap(stats.mean, sample, rng=rng("b"), **HOW)
    assert again == (value, lo, hi)
    narrow = stats.bootstrap(stats.mean, sample, rng=rng("b"), resamples=2000, confidence=0.5)
    assert lo < narrow.lo < narrow.hi < hi


def test_pairing_uses_the_pairs() -> None:
    base = rng("base").normal(0, 5, 60)
    first, second = base + 0.1, base + rng("noise").normal(0, 0.01, 60)
    paired = stats.bootstrap(stats.mean_difference, first, second, rng=rng("p"), **HOW)
    unpaired = stats.bootstrap(stats.mean_difference, first, second, rng=rng("p"), paired=False, **HOW)
    assert paired.value == pytest.approx(unpaired.value) and paired.lo > 0.09
    assert unpaired.lo < -1 and unpaired.hi > 1


def test_small_and_degenerate_samples() -> None:
    assert stats.bootstrap(stats.mean, [2.0], rng=rng(), **HOW)[0] == 2
    assert np.isnan(stats.bootstrap(stats.mean, [2.0], rng=rng(), **HOW)[1:]).all()
    assert np.isnan(stats.bootstrap(stats.median, [], rng=rng(), **HOW)).all()
    assert stats.bootstrap(stats.mean, [2.0, 2.0], rng=rng(), **HOW) == (2, 2, 2)
    assert np.isnan(stats.bootstrap(stats.spearman, [1, 1, 1], [1, 2, 3], rng=rng(), **HOW).value)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=3, max_size=12))
def test_spearman_is_that_of_scipy(points: list[tuple[int, int]]) -> None:
    x, y = np.array(points, float).T
    ours = float(stats.spearman(x, y))
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert np.isnan(ours)
    else:
        assert ours == pytest.approx(float(scipy_stats.spearmanr(x, y).statistic))


def test_spearman_interval() -> None:
    x = rng("x").normal(size=80)
    y = -x + rng("y").normal(size=80)
    value, lo, hi = stats.bootstrap(stats.spearman, x, y, rng=rng("s"), **HOW)
    assert -1 < lo < value < hi < -0.3
    z = rng("z").normal(size=80)
    free = stats.bootstrap(stats.spearman, x, z, rng=rng("s"), **HOW)
    assert free.lo < 0 < free.hi


def test_pair_draws_are_the_loop_over_the_resample() -> None:
    points = rng("points").normal(size=(6, 3))
    distances = ((points[:, None] - points[None]) ** 2).sum(-1)
    counts = stats.resample_counts(rng("counts"), 6, 50)
    assert (counts.sum(1) == 6).all()
    draws = stats.pair_mean_draws(distances, counts)
    for draw, count in zip(draws, counts, strict=True):
        members = np.repeat(np.arange(6), count)
        pairs = [distances[a, b] for a, b in itertools.combinations(members, 2) if a != b]
        assert draw == pytest.approx(np.mean(pairs))
    stacked = stats.pair_mean_draws(np.stack([distances, 3 * distances]), counts)
    assert np.allclose(stacked, np.stack([draws, 3 * draws]), equal_nan=True)
    all_pairs = [distances[a, b] for a, b in itertools.combinations(range(6), 2)]
    assert stats.pair_mean(distances) == pytest.approx(np.mean(all_pairs))
    interval = stats.bootstrap_pairs(distances, rng("i"), **HOW)
    assert interval.lo < interval.value < interval.hi


def test_pairs_of_one_replica_with_itself_do_not_count() -> None:
    constant = 1 - np.eye(5)  # every true pair at distance 1: any resample must say 1
    draws = stats.pair_mean_draws(constant, stats.resample_counts(rng("c"), 5, 500))
    assert draws[~np.isnan(draws)] == pytest.approx(1)
    assert np.isnan(stats.pair_mean_draws(constant, np.array([[5, 0, 0, 0, 0]]))).all()
    assert np.isnan(stats.bootstrap_pairs(np.zeros((1, 1)), rng(), **HOW)).all()


def test_simplex_distance_by_simulation() -> None:
    for n in (1, 2, 7):
        a, b = (rng("simplex", n, i).dirichlet(np.ones(n), 40_000) for i in (0, 1))
        assert float(stats.simplex_distance(n)) == pytest.approx(
            ((a - b) ** 2).sum(1).mean(), rel=0.02, abs=1e-12
        )


@pytest.mark.parametrize("n", [1, 4, 5, 10])
def test_interval_of_a_share_covers_the_probability(n: int) -> None:
    intervals = [share_interval([i < hits for i in range(n)], 0.95) for hits in range(n + 1)]
    assert intervals[0].lo == 0 and intervals[n].hi == 1
    for probability in np.linspace(0.01, 0.99, 33):
        law = scipy_stats.binom(n, probability)
        covered = sum(
            law.pmf(hits) for hits, each in enumerate(intervals) if each.lo <= probability <= each.hi
        )
        assert covered >= 0.95
    assert np.isnan(share_interval([], 0.95)).all()
    with pytest.raises(ValueError, match="NaN"):
        share_interval([1.0, float("nan")], 0.95)
