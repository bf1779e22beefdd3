"""Parameters from predictors: tensors, derivatives, fits, G-HMMs; and the tests that tell twins apart."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import SandglassError
from pipeline.languages import gaussian_hmm, hmm
from pipeline.models.masked_prediction import fitting, gaussian, identifiability, tensors
from pipeline.studies.selfsup.measures.detection import Pearson, Ratio, chi_squared, information

TASKS = identifiability.TASKS


def drawn(seed: int, d: int = 5, k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return hmm.draw(rng, d, k, concentration=0.5, power=2, offset=0.02, least_singular=0.15, least_row=0.02)


def means(seed: int, d: int = 5, k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return gaussian_hmm.draw(rng, d, k, power=2, offset=0.02, least_singular=0.2)


# --- tensors ------------------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.sampled_from([(4, 2), (4, 3), (6, 4)]), st.sampled_from(hmm.CASES))
def test_models_are_recovered_from_exact_predictors(seed: int, shape: tuple[int, int], case: int) -> None:
    model = drawn(seed, *shape)
    tensor = hmm.triple_predictor(*model, case)
    found = tensors.recover(tensor, shape[1], case, np.random.default_rng(seed))
    assert max(hmm.distance(*model, *found)) < 1e-8
    polished = tensors.recover(tensor, shape[1], case, np.random.default_rng(seed), sweeps=3)
    assert max(hmm.distance(*model, *polished)) < 1e-8
    assert tensors.kruskal_holds(hmm.components(*model, case), shape[1])


def test_stacks_are_recovered_one_by_one() -> None:
    models = [drawn(seed) for seed in range(3)]
    emissions, transitions = (np.array(part) for part in zip(*models, strict=True))
    found = tensors.recover(hmm.triple_predictor(emissions, transitions, 2), 3, 2, np.random.default_rng(0))
    for place, model in enumerate(models):
        alone = tensors.recover(hmm.triple_predictor(*model, 2), 3, 2, np.random.default_rng(0))
        assert np.allclose(found[0][place], alone[0]) and np.allclose(found[1][place], alone[1])


@pytest.mark.parametrize("case", hmm.CASES)
def test_least_squares_only_come_closer(case: int) -> None:
    model = drawn(4, 6, 3)
    counts = hmm.counts(np.random.default_rng(0), hmm.joint(*model), 100_000)[0]
    tensor = np.nan_to_num(hmm.given(counts, case))
    parts = tensors.jennrich(tensor, 3, np.random.default_rng(1))
    residuals = []
    for _ in range(6):
        residuals.append(np.square(hmm.assembled(*parts) - tensor).sum())
        parts = tensors.alternating(tensor, parts, 5)
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(residuals))


def test_a_symbol_that_was_never_shown_is_left_out() -> None:
    emission, transition = drawn(5, 6, 3)
    tensor = hmm.triple_predictor(emission, transition, 1)
    tensor[2] = 0  # no count: `given` has NaN there
    found = tensors.recover(tensor, 3, 1, np.random.default_rng(0), sweeps=5)
    assert max(hmm.distance(emission, transition, *found)) < 1e-8


def test_the_published_model_is_recovered_and_its_twin_is_not() -> None:
    one, two = hmm.published(0), hmm.published(1)
    for case in hmm.CASES:
        found = tensors.recover(hmm.triple_predictor(*one, case), 3, case, np.random.default_rng(case))
        assert max(hmm.distance(*one, *found)) < 1e-6
        assert hmm.distance(*two, *found) == pytest.approx((0.0276, 0.1138), abs=1e-4)


def test_sample_errors_are_those_of_the_chapter() -> None:
    """Medians at N = 1e6 of both methods, chapter E8 (b); other models, so within a factor of two."""
    rng = np.random.default_rng(0)
    models = [
        hmm.draw(rng, 6, 3, concentration=0.3, power=2, offset=0.02, least_singular=0.3, least_row=0.1)
        for _ in range(20)
    ]
    emissions, transitions = (np.array(part) for part in zip(*models, strict=True))
    counts = np.array([hmm.counts(rng, law, 10**6)[0] for law in hmm.joint(emissions, transitions)])
    for case, expected in ((1, (0.022, 0.0072)), (2, (0.049, 0.011)), (3, (0.0145, 0.0077))):
        tensor = np.nan_to_num(hmm.given(counts, case))
        start = tensors.jennrich(tensor, 3, rng)
        for parts, value in zip((start, tensors.alternating(tensor, start, 50)), expected, strict=True):
            error = np.median(hmm.distance(emissions, transitions, *tensors.parameters(parts, case))[0])
            assert value / 2 < error < 2 * value, case


@pytest.mark.parametrize(
    ("matrix", "rank"),
    [
        (np.eye(3), 3),
        (np.array([[1.0, 0, 1], [0, 1, 1]]), 2),
        (np.array([[1.0, 2, 0], [1, 2, 1]]), 1),
        (np.array([[1.0, 0], [1, 0]]), 0),
    ],
)
def test_kruskal_ranks(matrix: np.ndarray, rank: int) -> None:
    assert tensors.kruskal_rank(matrix) == rank


def test_a_case_that_there_is_not() -> None:
    with pytest.raises(SandglassError, match="expected 1, 2 or 3"):
        tensors.parameters((np.eye(3), np.eye(3), np.eye(3)), 0)


# --- derivatives ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_derivatives_are_those_of_finite_differences(task: str) -> None:
    emission, transition = drawn(1)
    d_emission, d_transition = identifiability.directions(5, 3)
    assert len(d_emission) == 3 * 4 + 4
    assert np.allclose(d_emission.sum(1), 0) and np.allclose(d_transition.sum(1), 0)
    assert np.allclose(d_transition.sum(2), 0)
    found = identifiability.derivative(emission, transition, d_emission, d_transition, task)
    h = 1e-6
    ends = [
        [identifiability.predictions(emission + s * h * a, transition + s * h * b, task) for s in (1, -1)]
        for a, b in zip(d_emission, d_transition, strict=True)
    ]
    assert np.allclose(found, [(ahead - behind) / (2 * h) for ahead, behind in ends], atol=1e-8)


@pytest.mark.parametrize("shape", [(4, 2), (5, 3), (6, 3), (6, 4), (7, 5)])
def test_deficits_are_those_of_the_chapter(shape: tuple[int, int]) -> None:
    model = hmm.draw(np.random.default_rng(shape[0]), *shape, concentration=3, power=1, offset=0.3)
    k = shape[1]
    expected = {"pair": (k - 1) ** 2, "allpair": (k - 1) * (k - 2) // 2, "triple1": 0, "triple2": 0, "triple3": 0}
    found = {task: identifiability.hmm_rank(*model, task) for task in TASKS}
    assert {task: rank.deficit for task, rank in found.items()} == expected
    assert {task: identifiability.hmm_deficit(k, task) for task in TASKS} == expected


def test_the_rotation_is_the_direction_that_pairs_do_not_see() -> None:
    emission, transition = drawn(2)
    step = 1e-6
    ahead, behind = (hmm.twin(emission, transition, hmm.rotation(s * step)) for s in (1, -1))
    along = [((a - b) / (2 * step))[None] for a, b in zip(ahead, behind, strict=True)]
    seen = {task: np.abs(identifiability.derivative(emission, transition, *along, task)).max() for task in TASKS}
    assert max(seen["pair"], seen["allpair"]) < 1e-9 < 1e-4 < min(seen[task] for task in TASKS[2:])


@pytest.mark.parametrize("known", [True, False])
def test_a_gaussian_predictor_sees_every_direction(known: bool) -> None:
    model = means(3)
    points = 2 * np.random.default_rng(0).standard_normal((5, 100))
    found = identifiability.gaussian_rank(*model, points, known_norms=known)
    assert found.deficit == 0 and found.parameters == 3 * (4 if known else 5) + 4
    few = identifiability.gaussian_rank(*model, points[:, :2], known_norms=known)
    assert few.deficit > 0  # ten numbers cannot show sixteen directions


# --- fits ----------------------------------------------------------------------------------------------


def test_gradients_through_the_scaling() -> None:
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((3, 3))
    transition, h = fitting.transition_of(logits, 1000), 1e-6
    found = fitting.transition_gradient(transition)
    weights = rng.standard_normal((3, 3))
    for place in range(9):
        step = np.zeros(9)
        step[place] = h
        ends = [fitting.transition_of(logits + s * step.reshape(3, 3), 1000) for s in (1, -1)]
        difference = (ends[0] - ends[1]) / (2 * h)
        assert np.allclose(found[place], difference, atol=1e-8)
        adjoint = fitting.through_scaling(transition, weights)
        assert adjoint.ravel()[place] == pytest.approx((weights * difference).sum(), abs=1e-7)
    assert np.isfinite(fitting.transition_of(np.array([[1e5, 0, 0], [0, -1e5, 0], [0, 0, 1e3]]), 50)).all()
    assert np.isfinite(fitting.transition_gradient(np.eye(3))).all()  # blocks: no gradient, and no error


def test_only_two_tokens_pull_a_fit_to_the_parameters() -> None:
    model = drawn(6)
    errors: dict[str, list[float]] = {}
    for task in ("pair", "allpair", "triple1", "triple2"):
        target = identifiability.predictions(*model, task)
        for start in range(3):
            rng = np.random.default_rng(start)
            logits = rng.standard_normal((5, 3)), rng.standard_normal((3, 3))
            found = fitting.fit(target, task, logits, evaluations=300, iterations=200)
            hmm.check(found.emission, found.transition)
            if found.residual < 1e-16:
                errors.setdefault(task, []).append(sum(hmm.distance(*model, found.emission, found.transition)))
    assert set(errors) == {"pair", "allpair", "triple1", "triple2"}
    assert max(errors["triple1"] + errors["triple2"]) < 1e-6 < 1e-4 < min(errors["pair"])


# --- G-HMMs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (8, 5), (4, 2)])
def test_gaussian_models_are_recovered_from_exact_predictors(shape: tuple[int, int]) -> None:
    model = means(shape[0], *shape)
    rng = np.random.default_rng(0)
    first, second = gaussian.recover(partial(gaussian_hmm.predictor, *model), *shape, rng)
    assert max(hmm.distance(*model, first.means, first.transition)) < 1e-8
    assert np.allclose(first.sums, 1) and np.allclose(second.sums, -1)
    reflection, _ = gaussian_hmm.householder(model[0])
    assert hmm.distance(reflection @ model[0], model[1], second.means, second.transition)[0] < 1e-8
    points = rng.standard_normal((shape[0], shape[1]))
    for case in (1, 3):
        predictions = gaussian_hmm.triple_predictor(*model, points, case)
        found = gaussian.recover_from_end(predictions, points, case, rng)
        assert max(hmm.distance(*model, *found[:2])) < 1e-8 and found[2] < 1e-8
    chances = gaussian.recover_from_middle(lambda x: gaussian_hmm.triple_predictor(*model, x, 2), *shape, rng)
    assert min(max(hmm.distance(*model, each.means, each.transition)) for each in chances) < 1e-8
    density = gaussian.densities(*model, *rng.standard_normal((2, *shape)))
    assert np.allclose(gaussian.transition_from_density(*density), model[1], atol=1e-8)


def test_a_predictor_without_enough_states_is_one_line() -> None:
    model = means(1)
    with pytest.raises(SandglassError, match="takes 3 values far out: expected 4"):
        gaussian.recover(partial(gaussian_hmm.predictor, *model), 5, 4, np.random.default_rng(0))
    with pytest.raises(SandglassError, match="expected 1 or 3"):
        points = np.random.default_rng(0).standard_normal((5, 3))
        predictions = gaussian_hmm.triple_predictor(*model, points, 2)
        gaussian.recover_from_end(predictions, points, 2, np.random.default_rng(0))


@given(st.integers(0, 1000), st.integers(2, 5))
def test_theorem_8_fails_for_the_middle_token(seed: int, d: int) -> None:
    """Of two states any model has a second one; shown by the middle token alone, nothing tells them apart."""
    model = means(seed, d, 2)
    other = gaussian.mirrored(*model)
    gaussian_hmm.check(*other)
    assert hmm.distance(*model, *other)[0] > 0.01
    points = 2 * np.random.default_rng(seed).standard_normal((d, 30))
    far = [
        np.abs(
            gaussian_hmm.triple_predictor(*model, points, case) - gaussian_hmm.triple_predictor(*other, points, case)
        ).max()
        for case in hmm.CASES
    ]
    assert far[1] < 1e-12 and min(far[0], far[2]) > 1e-5


def test_theorem_8_fails_for_orthonormal_means_where_no_entry_is_above_two_over_k() -> None:
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((5, 3)))[0]
    flat = hmm.sinkhorn(rng.random((3, 3)) + 0.5)
    assert flat.max() < 2 / 3
    other = gaussian.mirrored(basis, flat)
    gaussian_hmm.check(*other)
    points = rng.standard_normal((5, 30))
    assert np.allclose(
        gaussian_hmm.triple_predictor(basis, flat, points, 2),
        gaussian_hmm.triple_predictor(*other, points, 2),
        atol=1e-14,
    )
    steep = hmm.sinkhorn(np.eye(3) + 0.05)
    with pytest.raises(SandglassError, match="not stochastic"):  # an entry above 2/3 excludes the second
        gaussian_hmm.check(*gaussian.mirrored(basis, steep))
    generic = means(5, 5, 3)
    assert np.abs(gaussian.mirrored(*generic)[1].sum(1) - 1).max() > 1e-3


def test_a_fit_to_samples_comes_closer_with_their_number() -> None:
    model = means(7, 4, 3)
    rng = np.random.default_rng(0)
    first, second, _ = gaussian_hmm.sample(rng, 3 * model[0], model[1], 30_000)
    start = np.concatenate([model[0].ravel(), np.log(0.9 * model[1] + 0.1 / 3).ravel()])
    errors = []
    for n in (300, 30_000):
        found = gaussian.fit(first[:, :n], second[:, :n], 3.0, start, steps=200, iterations=200)
        assert np.allclose(np.linalg.norm(found.means, axis=0), 3)
        truth = np.square(gaussian_hmm.predictor(3 * model[0], model[1], first[:, :n]) - second[:, :n])
        assert found.loss <= truth.sum(0).mean() + 1e-9
        errors.append(hmm.distance(3 * model[0], model[1], found.means, found.transition)[0] / 3)
    assert errors[1] < 0.05 and errors[1] < errors[0]


# --- telling twins apart -------------------------------------------------------------------------------


def test_tests_have_the_power_that_theory_says() -> None:
    model = hmm.draw(np.random.default_rng(1), 6, 3, concentration=3, power=1, offset=0.3)
    law, widest = hmm.joint(*model), hmm.widest_turn(*model)
    other = hmm.joint(*hmm.twin(*model, hmm.rotation(0.5 * widest)))
    rng = np.random.default_rng(0)
    for kind in (Ratio, Pearson):
        test = kind(law, other, 0.05)
        samples = int(np.ceil(test.needed(0.9)))
        assert test.power(samples) == pytest.approx(0.9, abs=1e-3)
        told, wrongly = (test.rejects(hmm.counts(rng, each, samples, 2000)).mean() for each in (other, law))
        assert told == pytest.approx(0.9, abs=0.03) and wrongly == pytest.approx(0.05, abs=0.02)
        pairs = hmm.counts(rng, other, samples, 2000).sum(3)
        by_pairs = Pearson(law.sum(2), other.sum(2), 0.05)
        assert by_pairs.rejects(pairs).mean() == pytest.approx(0.05, abs=0.02)
    assert by_pairs.power(10**9) == pytest.approx(0.05, abs=1e-3)  # whatever their number


def test_near_angle_zero_the_divergence_is_the_information() -> None:
    model = drawn(8, 6, 3)
    law = hmm.joint(*model)
    for theta in (1e-3, 2e-3):
        other = hmm.joint(*hmm.twin(*model, hmm.rotation(theta)))
        assert chi_squared(other, law) == pytest.approx(information(*model) * theta**2, rel=0.02)
