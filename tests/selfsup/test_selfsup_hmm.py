"""Hidden Markov models: predictors against enumeration, twins, samplers, distances, bad models."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.errors import SandglassError
from pipeline.languages import gaussian_hmm, hmm

SHAPES = st.sampled_from([(2, 2), (4, 2), (4, 3), (6, 3), (5, 4)])


def drawn(seed: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    return hmm.draw(np.random.default_rng(seed), d, k, concentration=2.0, power=1, offset=0.3)


def brute(emission: np.ndarray, transition: np.ndarray, length: int) -> np.ndarray:
    """The joint law of ``length`` tokens, path by path."""
    d, k = emission.shape
    law = np.zeros((d,) * length)
    for path in itertools.product(range(k), repeat=length):
        weight = np.prod([transition[b, a] for a, b in itertools.pairwise(path)]) / k
        for tokens in itertools.product(range(d), repeat=length):
            law[tokens] += weight * np.prod([emission[x, h] for x, h in zip(tokens, path, strict=True)])
    return law


@given(SHAPES, st.integers(0, 10_000))
def test_predictors_are_conditional_laws(shape: tuple[int, int], seed: int) -> None:
    emission, transition = drawn(seed, *shape)
    hmm.check(emission, transition)
    law = brute(emission, transition, 3)
    assert np.allclose(hmm.joint(emission, transition), law, atol=1e-15)
    for case, order in ((1, (0, 1, 2)), (2, (1, 0, 2)), (3, (2, 0, 1))):
        moved = law.transpose(order)
        expected = moved / moved.sum((1, 2), keepdims=True)
        assert np.allclose(hmm.triple_predictor(emission, transition, case), expected, atol=1e-14)
        assert np.allclose(hmm.given(law, case), expected, atol=1e-14)
    for task, (shown, predicted) in {"x2|x1": (0, 1), "x1|x2": (1, 0), "x3|x1": (0, 2), "x1|x3": (2, 0)}.items():
        (other,) = {0, 1, 2} - {shown, predicted}
        pair = law.sum(other)
        pair = pair if predicted < shown else pair.T  # rows: predicted
        found = hmm.predictor(emission, transition, task)
        assert np.allclose(found, pair / pair.sum(0), atol=1e-14), task
        assert np.allclose(found.sum(0), 1)


def test_columns_are_states_now() -> None:
    """The row convention would turn case 1 into case 3 without a word."""
    emission, transition = drawn(0, 4, 3)
    one = hmm.triple_predictor(emission, transition, 1)
    assert np.abs(one - hmm.triple_predictor(emission, transition, 3).transpose(0, 2, 1)).max() > 1e-3
    turned = hmm.triple_predictor(emission, transition.T, 3).transpose(0, 2, 1)
    assert np.allclose(one, turned, atol=1e-15)


@given(st.integers(0, 10_000), st.floats(0, 2 * np.pi))
def test_a_turn_leaves_predictors_of_one_token(seed: int, theta: float) -> None:
    """Also of a twin with negative entries: it is algebra, and no HMM."""
    emission, transition = drawn(seed, 5, 3)
    turn = hmm.rotation(theta)
    assert np.allclose(turn @ turn.T, np.eye(3), atol=1e-14) and np.allclose(turn.sum(0), 1)
    other = hmm.twin(emission, transition, turn)
    for task in (*hmm.PAIR_TASKS, "x6|x1", "x1|x5"):
        difference = hmm.predictor(emission, transition, task) - hmm.predictor(*other, task)
        assert np.abs(difference).max() < 1e-13, task
    assert np.allclose(other[0].sum(0), 1) and np.allclose(other[0].sum(1), emission.sum(1))
    assert np.allclose(other[1].sum(0), 1) and np.allclose(other[1].sum(1), 1)


def test_a_third_of_a_turn_relabels() -> None:
    emission, transition = drawn(3, 6, 3)
    other = hmm.twin(emission, transition, hmm.rotation(2 * np.pi / 3))
    assert max(hmm.distance(emission, transition, *other)) < 1e-14
    assert np.abs(emission - other[0]).max() > 1e-3


@given(st.integers(0, 10_000))
def test_the_widest_turn_is_where_an_entry_is_zero(seed: int) -> None:
    emission, transition = drawn(seed, 6, 3)
    widest = hmm.widest_turn(emission, transition)
    least = [
        min(part.min() for part in hmm.twin(emission, transition, hmm.rotation(angle)))
        for angle in np.linspace(0, widest, 50)
    ]
    assert min(least) >= 0 and 0 < widest <= np.pi / 3
    if widest < np.pi / 3:
        assert least[-1] < 1e-9


def test_the_published_pair_is_as_printed() -> None:
    (emission, transition), (other, other_transition) = (hmm.published(which) for which in (0, 1))
    for each in ((emission, transition), (other, other_transition)):
        hmm.check(*each, full_rank=True)
        assert np.allclose(each[0].sum(1), 0.75, atol=2e-8)
        assert np.sqrt(np.linalg.det(each[0].T @ each[0])) == pytest.approx(0.01104489, abs=1e-7)
        assert np.linalg.det(each[1]) == pytest.approx(-0.161066, abs=1e-6)
    far = {
        task: np.abs(hmm.predictor(emission, transition, task) - hmm.predictor(other, other_transition, task))
        for task in (*hmm.PAIR_TASKS, "x4|x1", *hmm.TRIPLE_TASKS)
    }
    expected = {"x2|x1": 3.4e-9, "x3|x1": 4.2e-9, "x4|x1": 6.0e-9}
    assert {task: far[task].max() for task in expected} == pytest.approx(expected, rel=0.03)
    assert max(far[task].max() for task in hmm.TRIPLE_TASKS) == pytest.approx(1.653e-4, rel=1e-3)
    assert max(np.linalg.norm(far[task]) for task in hmm.TRIPLE_TASKS) == pytest.approx(3.066e-4, rel=1e-3)
    assert hmm.distance(emission, transition, other, other_transition) == pytest.approx((0.02758, 0.11376), abs=1e-5)
    turn = np.linalg.pinv(other) @ emission
    assert np.arccos((np.trace(turn) - 1) / 2) == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize(("t", "entries"), [(2, (1 / 6, 2 / 3, 1 / 6)), (5, (0.11029, 0.23033, 0.65938))])
def test_turned_cycles_are_those_of_the_chapter(t: int, entries: tuple[float, ...]) -> None:
    turn, turned = hmm.turned_cycle(0.5, t)
    cycle = hmm.lazy_cycle(0.5)
    assert turned[0] == pytest.approx(entries, abs=1e-5)
    assert np.allclose(np.linalg.matrix_power(turned, t), np.linalg.matrix_power(cycle, t), atol=1e-14)
    assert np.allclose(turn @ cycle, cycle @ turn, atol=1e-15)


@pytest.mark.parametrize(("t", "apart"), [(2, 0.333), (3, 0.5), (12, 0.167), (50, 0.037)])
def test_turned_cycles_are_no_relabellings(t: int, apart: float) -> None:
    found = hmm.relabelled_distance(hmm.lazy_cycle(0.5), hmm.turned_cycle(0.5, t)[1])
    assert found == pytest.approx(apart, abs=5e-4)


@given(SHAPES, st.integers(0, 10_000))
def test_distance_is_zero_for_relabellings_alone(shape: tuple[int, int], seed: int) -> None:
    emission, transition = drawn(seed, *shape)
    order = np.random.default_rng(seed).permutation(shape[1])
    same = emission[:, order], transition[np.ix_(order, order)]
    assert max(hmm.distance(emission, transition, *same)) == 0
    # O as it was and T relabelled is another model: both are aligned alike.
    if shape[1] == 3 and np.abs(transition - same[1]).max() > 1e-6:
        assert hmm.distance(emission, transition, emission, same[1])[1] > 0


def test_distance_takes_stacks() -> None:
    models = [drawn(seed, 5, 3) for seed in range(4)]
    others = [drawn(seed + 10, 5, 3) for seed in range(4)]
    stacked = hmm.distance(*(np.array(part) for part in (*zip(*models, strict=True), *zip(*others, strict=True))))
    for place, (one, two) in enumerate(zip(models, others, strict=True)):
        assert np.allclose([part[place] for part in stacked], hmm.distance(*one, *two))


@given(st.integers(0, 10_000), st.integers(2, 5))
def test_sinkhorn_is_doubly_stochastic(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    weights = np.exp(2 * rng.standard_normal((3, k, k)))
    found = hmm.sinkhorn(weights)
    assert np.allclose(found.sum(-1), 1, atol=1e-13) and np.allclose(found.sum(-2), 1, atol=1e-13)
    # r W c: cross-ratios stay
    ratio = weights[..., :1, :1] * weights[..., 1:, 1:] / (weights[..., 1:, :1] * weights[..., :1, 1:])
    assert np.allclose(
        ratio, found[..., :1, :1] * found[..., 1:, 1:] / (found[..., 1:, :1] * found[..., :1, 1:]), rtol=1e-9
    )
    assert np.allclose(found[0], hmm.sinkhorn(weights[0]), atol=1e-13)


def test_counts_are_multinomial() -> None:
    emission, transition = drawn(1, 3, 2)
    law = hmm.joint(emission, transition)
    counts = hmm.counts(np.random.default_rng(0), law, 200_000)[0]
    assert counts.sum() == 200_000
    assert stats.chisquare(counts.ravel(), 200_000 * law.ravel()).pvalue > 0.001


def test_a_symbol_that_was_never_shown_has_no_law() -> None:
    counts = np.ones((3, 3, 3))
    counts[1] = 0
    found = hmm.given(counts, 1)
    assert np.isnan(found[1]).all() and np.isfinite(found[[0, 2]]).all()


def test_rounded_models_have_exact_sums() -> None:
    for seed in range(20):
        emission, transition = hmm.rounded(*drawn(seed, 6, 3), 3)
        for matrix in (emission, transition, transition.T):
            assert (np.rint(1000 * matrix).sum(0) == 1000).all()
        assert np.abs(1000 * emission - np.rint(1000 * emission)).max() < 1e-9


GOOD = drawn(0, 4, 3)


@pytest.mark.parametrize(
    ("emission", "transition", "line"),
    [
        (GOOD[0], np.eye(4), "do not fit"),
        (GOOD[0][:2] / GOOD[0][:2].sum(0), GOOD[1], "expected 2 <= k <= d"),
        (np.full((4, 1), 0.25), np.eye(1), "expected 2 <= k <= d"),
        (GOOD[0] - 0.5, GOOD[1], "O is not stochastic: its smallest entry"),
        (2 * GOOD[0], GOOD[1], "O is not stochastic: a column sum"),
        (GOOD[0], np.full((3, 3), 0.3), "T is not stochastic: a column sum"),
        (GOOD[0], np.array([[0.5, 0.5, 0.5], [0.25, 0.25, 0.25], [0.25, 0.25, 0.25]]), "not doubly stochastic"),
        (np.vstack([GOOD[0], np.zeros(3)]), GOOD[1], "row of zeros"),
        (np.full((4, 3), np.nan), GOOD[1], "O is not stochastic"),
        (GOOD[0], np.full((3, 3), 1 / 3), "T has rank 1"),
        (np.full((4, 3), 0.25), GOOD[1], "O has rank 1"),
    ],
)
def test_what_is_no_model_is_one_line(emission: np.ndarray, transition: np.ndarray, line: str) -> None:
    with pytest.raises(SandglassError, match=line) as caught:
        hmm.check(emission, transition, full_rank=True)
    assert "\n" not in str(caught.value)


def test_tasks_that_there_are_not() -> None:
    for task in ("x2|x2", "x3|x2", "words", "x0|x1"):
        with pytest.raises(SandglassError, match="no task is called"):
            hmm.predictor(*GOOD, task)
    with pytest.raises(SandglassError, match="expected 1, 2 or 3"):
        hmm.triple_predictor(*GOOD, 4)


def test_two_states_have_no_twin() -> None:
    with pytest.raises(SandglassError, match="the only twin is the relabelled model"):
        hmm.widest_turn(*drawn(0, 4, 2))
    assert np.allclose(hmm.turn_near_identity(np.random.default_rng(0), 2, 0.1), np.eye(2))


def test_models_that_cannot_be_drawn() -> None:
    with pytest.raises(SandglassError, match="none of 5 models of 3 states"):
        hmm.draw(np.random.default_rng(0), 4, 3, concentration=3, power=1, offset=1, least_singular=0.9, tries=5)


# --- Gaussian emissions ------------------------------------------------------------------------------


def test_the_gaussian_predictor_is_the_conditional_mean() -> None:
    rng = np.random.default_rng(0)
    means, transition = gaussian_hmm.draw(rng, 2, 2, power=1, offset=0.1, least_singular=0.3)
    first, second, states = gaussian_hmm.sample(rng, means, transition, 400_000)
    assert np.allclose(np.bincount(states[0]) / 400_000, 0.5, atol=0.004)
    moves = np.array([np.bincount(states[1][states[0] == j], minlength=2) / (states[0] == j).sum() for j in (0, 1)])
    assert np.allclose(moves.T, transition, atol=0.005)
    predicted = gaussian_hmm.predictor(means, transition, first)
    for direction in (np.ones_like(first), first, np.sin(first)):  # the error is orthogonal to functions of x_1
        assert np.abs(((second - predicted) * direction).mean(1)).max() < 0.01


def test_gaussian_triples_are_products_of_conditional_means() -> None:
    rng = np.random.default_rng(1)
    means, transition = gaussian_hmm.draw(rng, 3, 2, power=1, offset=0.1, least_singular=0.3)
    points = rng.standard_normal((3, 4))
    phi = gaussian_hmm.posterior(means, points)
    assert np.allclose(phi.sum(0), 1)
    for case in (1, 2, 3):
        found = gaussian_hmm.triple_predictor(means, transition, points, case)
        expected = np.zeros((4, 3, 3))
        for path in itertools.product(range(2), repeat=3):
            shown, one, two = {1: (0, 1, 2), 2: (1, 0, 2), 3: (2, 0, 1)}[case]
            weight = transition[path[1], path[0]] * transition[path[2], path[1]]
            # P(path | x at the shown place): phi of that state times the rest of the path, uniform start
            expected += np.einsum("n,a,b->nab", phi[path[shown]] * weight, means[:, path[one]], means[:, path[two]])
        assert np.allclose(found, expected, atol=1e-14), case


@pytest.mark.parametrize(
    ("means", "transition", "line"),
    [
        (np.eye(3)[:2], np.eye(3), "expected 2 <= k <= d"),
        (np.diag([1.0, 2, 3]), np.eye(3), "expected one norm"),
        (np.full((3, 3), 1.0), np.eye(3), "M has rank 1"),
        (np.eye(3), np.full((3, 3), 1 / 3), "T has rank 1"),
        (np.eye(3) * np.nan, np.eye(3), "not finite"),
        (np.eye(3), np.eye(2), "do not fit"),
    ],
)
def test_what_is_no_gaussian_model_is_one_line(means: np.ndarray, transition: np.ndarray, line: str) -> None:
    with pytest.raises(SandglassError, match=line):
        gaussian_hmm.check(means, transition)
