"""Algorithm 2 (VGB): closed forms against the printed transition probabilities, bounds, and walks that are
taken."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pipeline.kit.streams import stream
from pipeline.languages import constrained
from pipeline.studies.verifier.exact import tokenwise, vgb
from pipeline.studies.verifier.exact.vgb import Tree
from pipeline.studies.verifier.exact.walks import Walks, frequencies

SEED = 20231210


@st.composite
def trees(draw: st.DrawFn, dead: bool = False) -> tuple[Tree, np.ndarray, float]:
    """A random tree with an error of at most eps, its tilt, and eps; some values are 0 in those that have
    dead ends."""
    actions, horizon = draw(st.sampled_from([(2, 1), (2, 3), (3, 2), (2, 4)]))
    eps, rng = draw(st.sampled_from([0.0, 0.3, 1.0])), np.random.default_rng(draw(st.integers(0, 10**6)))
    laws = tuple(rng.dirichlet(np.ones(actions), actions**h) for h in range(horizon))
    tilt = rng.gamma(1, size=actions**horizon)
    if dead:
        tilt *= rng.random(len(tilt)) < 0.5
        tilt[rng.integers(len(tilt))] = 1
    factors = tuple((1 + eps) ** rng.choice([-1.0, 1.0], actions**h) for h in range(1, horizon))
    return Tree(laws, vgb.perturbed(vgb.exact_values(laws, tilt), factors)), tilt, eps


def flat(tree: Tree) -> np.ndarray:
    return np.concatenate(tree.stationary())


@given(trees())
@settings(max_examples=40)
def test_the_stationary_law_is_that_of_the_printed_walk(made: tuple) -> None:
    tree, tilt, eps = made
    P, pi = tree.transitions(), flat(tree)
    assert np.allclose(P.sum(1), 1) and np.isclose(pi.sum(), 1)
    assert np.abs(pi @ P - pi).max() < 1e-14
    balance = pi[:, None] * P
    assert np.abs(balance - balance.T).max() < 1e-14
    assert tokenwise.total_variation(tree.leaf_law(), vgb.target_law(tree.laws, tilt)) < 1e-13
    assert tree.stationary()[-1].sum() >= vgb.leaf_mass_bound(tree.horizon, eps) - 1e-14
    if eps == 0:
        levels = [float(level.sum()) for level in tree.stationary()]
        H = tree.horizon
        assert np.allclose(levels, [1 / (2 * H), *[1 / H] * (H - 1), 1 / (2 * H)])


@given(trees(dead=True))
@settings(max_examples=40)
def test_the_current_gives_the_first_leaf(made: tuple) -> None:
    tree, tilt, eps = made
    law, steps = tree.absorbed()
    assert np.abs(law - tree.first_leaf_law()).max() < 1e-12 and np.isclose(law.sum(), 1)
    if eps == 0:
        assert np.abs(law - vgb.target_law(tree.laws, tilt)).max() < 1e-12
        assert np.isclose(steps, 2 * tree.horizon**2, rtol=1e-10)


@given(trees())
@settings(max_examples=25)
def test_bounds_hold(made: tuple) -> None:
    tree, _, eps = made
    H, root = tree.horizon, float(tree.stationary()[0][0])
    if tree.nodes <= vgb.SUBSETS:
        phi = tree.conductance()
        assert phi >= vgb.conductance_bound(H, eps) - 1e-12
        assert phi**2 / 2 - 1e-12 <= tree.gap() <= 2 * phi + 1e-12  # Cheeger's inequality
    assert tree.gap() >= vgb.gap_bound(H, eps)
    steps = tree.mixing_time(0.01, 2000)
    assert steps is not None and 0 < steps <= vgb.mixing_bound(H, eps, root, 0.01)
    after = tree.distances(steps)
    assert after[-1] <= 0.01 < after[-2] and (np.diff(after) <= 1e-15).all()
    assert tree.mixing_time(0.01, steps - 1) is None


def test_the_gap_is_what_convergence_shows() -> None:
    tree = vgb.biased(4, 0.5)
    far = tree.distances(600)
    assert np.isclose((far[600] / far[500]) ** 0.01, 1 - tree.gap(), rtol=1e-4)


def test_the_bound_of_the_conductance_is_attained() -> None:
    exact = Tree(constrained.uniform(2, 3), (np.ones(1), np.ones(2), np.ones(4), np.ones(8)))
    assert np.isclose(exact.conductance(), 0.1) and np.isclose(vgb.conductance_bound(3, 0), 0.1)
    with pytest.raises(ValueError, match="too many sets"):
        vgb.biased(5, 0.1).conductance()


def test_the_time_average_halves_its_distance_when_time_doubles() -> None:
    tree = vgb.biased(3, 0.5)
    steps, pi = int(np.ceil(20 / tree.gap())), flat(tree)
    far = [tokenwise.total_variation(tree.laws_after(t)[1], pi) for t in (steps, 2 * steps)]
    assert np.isclose(far[1] / far[0], 0.5, atol=1e-6)


def test_values_at_leaves_that_are_no_tilt_tilt_the_leaves() -> None:
    """Without the true reward at the leaves their law is proportional to pi_ref V."""
    rng = stream(SEED, "verifier", "test", "tilt")
    laws, values = constrained.uniform(2, 3), tuple(rng.random(2**h) + 0.1 for h in range(4))
    assert np.allclose(Tree(laws, values).leaf_law(), values[-1] / values[-1].sum())


def test_the_walk_backs_out_of_dead_ends() -> None:
    """A node whose children are all rejected is left by its parent; tokenwise rejection is stuck."""
    laws = constrained.uniform(2, 2)
    values = (np.ones(1), np.ones(2), np.array([0.0, 0.0, 1.0, 1.0]))
    tree = Tree(laws, values)
    assert tree.transitions()[1].tolist() == [0.5, 0.5, 0, 0, 0, 0, 0]
    assert tree.first_leaf_law().tolist() == [0, 0, 0.5, 0.5]
    assert tokenwise.action_level_law(laws, values)[1] == 0.5


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((np.ones(1), np.ones(2), np.zeros(4)), "must FAIL"),
        ((np.ones(1), np.array([1.0, 0.0]), np.array([0.0, 0, 1, 1])), "must FAIL"),
        ((np.ones(1), np.ones(3), np.ones(4)), "values must be"),
        ((np.ones(1), np.ones(2), np.array([1.0, -1, 1, 1])), "negative or not a number"),
        ((np.ones(1), np.ones(2), np.array([1.0, np.nan, 1, 1])), "negative or not a number"),
    ],
)
def test_what_is_no_tree_is_one_line(values: tuple, words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        Tree(constrained.uniform(2, 2), values)
    assert "\n" not in str(error.value)


def test_large_trees_have_no_matrix() -> None:
    tree = vgb.biased(12, 0.1)
    assert np.isclose(tree.first_leaf_law().sum(), 1)
    with pytest.raises(ValueError, match="8191 nodes"):
        tree.transitions()


# --- the Sinclair-Jerrum walk, and instances of section 3.1
# -------------------------------------------------------


def test_the_sinclair_jerrum_walk_is_a_special_case() -> None:
    weights, c = [3, 5, 7, 2, 8, 1], 10
    task = constrained.knapsack(weights, c)
    laws = task.laws
    shares = vgb.exact_values(laws, task.members.astype(float))
    rng = stream(SEED, "verifier", "test", "counts")
    for factors in (None, tuple(1.5 ** rng.choice([-1.0, 1.0], 2**h) for h in range(1, 6))):
        values = shares if factors is None else vgb.perturbed(shares, factors)
        counts = tuple(value * 2.0 ** (6 - h) for h, value in enumerate(values))
        assert np.abs(Tree(laws, values).transitions() - vgb.sinclair_jerrum(counts, 2)).max() < 1e-15
        uniform = task.members / task.members.sum()
        assert np.allclose(Tree(laws, values).leaf_law(), uniform, atol=1e-14)


def test_the_binary_verifier_of_proposition_312() -> None:
    expected = {2: 0.0667, 3: 0.0446, 5: 0.0167, 8: 0.00273, 10: 0.000743}
    for length, distance in expected.items():
        task = constrained.not_ones(length)
        tree = Tree(task.laws, task.verifier())
        found = tokenwise.total_variation(tree.first_leaf_law(), task.target)
        assert np.isclose(found, distance, rtol=4e-3)
        assert found < tokenwise.total_variation(tokenwise.action_level_law(tree.laws, tree.values)[0], task.target)
        assert tokenwise.total_variation(tree.leaf_law(), task.target) < 1e-14
    two = constrained.not_ones(2)
    assert np.isclose(Tree(two.laws, two.verifier()).stationary()[-1].sum(), 0.2143, atol=5e-5)


# --- errors that grow with the horizon
# ----------------------------------------------------------------------------


def test_the_family_bias_has_the_numbers_of_the_chapter() -> None:
    rejection = [vgb.biased_distance(H, 0.3) for H in (2, 4, 6, 8, 10, 20, 40, 80, 160)]
    assert np.allclose(rejection, [0.1283, 0.1882, 0.2301, 0.2628, 0.3001, 0.4316, 0.5804, 0.7530, 0.8987], atol=5e-5)
    first = []
    for H in (2, 4, 6, 8, 10):
        tree, fair = vgb.biased(H, 0.3), np.full(2**H, 0.5**H)
        law = tokenwise.action_level_law(tree.laws, tree.values)[0]
        assert np.isclose(tokenwise.total_variation(law, fair), vgb.biased_distance(H, 0.3))
        assert np.isclose(tokenwise.divergence(fair, law), vgb.fair_divergence(vgb.biased_action_law(H, 0.3)))
        lumped = vgb.biased_first_leaf_law(H, 0.3)
        assert np.isclose(tokenwise.divergence(fair, tree.first_leaf_law()), vgb.fair_divergence(lumped))
        first.append(tokenwise.total_variation(tree.first_leaf_law(), fair))
    assert np.allclose(first, [0.0652, 0.0707, 0.0755, 0.0781, 0.0795], atol=5e-5)
    horizons = (10, 40, 160, 320)
    kl = [vgb.fair_divergence(vgb.biased_action_law(H, 0.3)) for H in horizons]
    assert np.allclose(kl, [0.306, 1.327, 5.411, 10.855], atol=5e-4)
    kl = [vgb.fair_divergence(vgb.biased_first_leaf_law(H, 0.3)) for H in horizons]
    assert np.allclose(kl, [0.01889, 0.02126, 0.02188, 0.02198], atol=5e-6)


@given(trees())
@settings(max_examples=30)
def test_action_level_rejection_is_off_by_at_most_the_product_of_errors(made: tuple) -> None:
    tree, tilt, eps = made
    law, _ = tokenwise.action_level_law(tree.laws, tree.values)
    ratio = np.abs(np.log(law / vgb.target_law(tree.laws, tilt)))
    assert ratio.max() <= 2 * (tree.horizon - 1) * np.log1p(eps) + 1e-10


# --- walks that are taken
# -----------------------------------------------------------------------------------------


def test_walks_follow_their_exact_laws() -> None:
    rng = stream(SEED, "verifier", "test", "walks")
    tree = vgb.biased(3, 1.0)
    walks, n, steps = Walks(tree), 20000, 6
    ends, mean = (law[-8:] / law[-8:].sum() for law in tree.laws_after(steps))
    first, taken = walks.first_leaf(rng, n)
    drawn = {
        "first": (first, tree.first_leaf_law()),
        "last": (walks.last(rng, n, steps), ends),
        "uniform": (walks.uniform(rng, n, steps), mean),
    }
    for rule, (leaves, law) in drawn.items():
        assert tokenwise.total_variation(frequencies(leaves, 8), law) < 3 * np.sqrt(8 / (2 * np.pi * n)), rule
        assert stats.chisquare(np.bincount(leaves, minlength=8), law * n).pvalue > 0.001, rule
    assert abs(taken.mean() - tree.absorbed()[1]) < 4 * taken.std() / np.sqrt(n)
    # The rules can be told apart.
    assert tokenwise.total_variation(mean, tree.first_leaf_law()) > 0.03
    assert tokenwise.total_variation(ends, tree.first_leaf_law()) > 0.03


def test_walks_never_enter_what_has_no_value() -> None:
    tree = Tree(constrained.uniform(2, 2), (np.ones(1), np.ones(2), np.array([0.0, 0.0, 1.0, 0.0])))
    leaves, _ = Walks(tree).first_leaf(stream(SEED, "verifier", "test", "dead"), 500)
    assert set(leaves.tolist()) == {2}
