"""Constrained generation and samplers under a verifier: laws by enumeration, simulations by exact laws."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.kit.streams import stream
from pipeline.languages import constrained
from pipeline.languages.constrained import Task
from pipeline.studies.verifier.exact import coin, hidden_parity, tokenwise

SEED = 20231210


def rng(*names: str | int) -> np.random.Generator:
    return stream(SEED, "verifier", "test", *names)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """Small tasks with any oracle and any set A that has probability."""
    symbols, length = draw(st.integers(2, 3)), draw(st.integers(1, 3))
    source = np.random.default_rng(draw(st.integers(0, 10**6)))
    laws = tuple(source.dirichlet(np.ones(symbols), symbols**h) for h in range(length))
    members = source.random(symbols**length) < draw(st.sampled_from([0.2, 0.5, 0.9]))
    members[source.integers(symbols**length)] = True
    return Task(laws, members)


# --- tasks
# ------------------------------------------------------------------------------------------------------


@given(tasks())
@settings(max_examples=50)
def test_the_verifier_says_what_can_be_completed(task: Task) -> None:
    strings = constrained.digits(task.symbols, task.length)
    for h, value in enumerate(task.verifier()):
        for number, prefix in enumerate(itertools.product(range(task.symbols), repeat=h)):
            below = task.members[(strings[:, :h] == prefix).all(1)]
            assert value[number] == below.any()


def test_a_verifier_that_knows_the_oracle_differs_where_the_oracle_forbids() -> None:
    task = constrained.hidden_parity(4, 5)
    plain, aware = task.verifier(), task.verifier(aware=True)
    assert all(value.all() for value in plain[:-1])
    assert [int(value.sum()) for value in aware[:-1]] == [1] * 4  # the prefixes of the hidden one
    assert aware[3][5] == 1 and (aware[-1] == task.members).all()  # of whole strings nothing is to complete


def test_the_oracles_of_theorem_311_are_those_of_its_equations() -> None:
    for hidden in range(8):
        task = constrained.hidden_parity(4, hidden)
        mass = constrained.prefix_mass(task.laws)[-1]
        assert np.flatnonzero((mass > 0) & task.members).tolist() == [2 * hidden + hidden.bit_count() % 2]
        assert mass[0] == (0 if hidden else 1 / 8)  # Remark 3.5.1: 0000 solves it only if 000 is hidden


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: constrained.uniform(2, 0), "length 0"),
        (lambda: constrained.uniform(2, 40), "strings are more than"),
        (lambda: constrained.hidden_parity(3, 4), "hidden prefix of 2 bits"),
        (lambda: constrained.knapsack([1, -1], 2), "not negative"),
        (lambda: constrained.knapsack([], 2), "not negative"),
        (lambda: Task(constrained.uniform(2, 2), np.ones(3, bool)), "members must be"),
        (lambda: Task((np.ones((1, 2)),), np.ones(2, bool)), "no distribution"),
        (lambda: Task((np.full((1, 2), 0.5), np.full((1, 2), 0.5)), np.ones(4, bool)), "length 1 must be"),
    ],
)
def test_what_is_no_task_is_one_line(made, words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        made()
    assert "\n" not in str(error.value)


# --- knapsack
# ---------------------------------------------------------------------------------------------------

WEIGHTS = st.lists(st.integers(0, 12), min_size=1, max_size=7)


@given(WEIGHTS, st.integers(0, 40))
@settings(max_examples=100)
def test_the_dynamic_program_is_the_verifier(weights: list[int], c: int) -> None:
    enumerated = constrained.knapsack(weights, c).verifier()
    program = constrained.knapsack_verifier(weights, c)
    assert all((a == b).all() for a, b in zip(enumerated, program, strict=True))
    found, asked = tokenwise.scan(program, 2)
    assert asked <= 2 * len(weights)
    if found == tokenwise.FAILED:
        assert not enumerated[0][0]
    else:
        assert constrained.digits(2, len(weights))[found] @ weights == c


@given(st.lists(st.integers(0, 3), min_size=1, max_size=7), st.integers(0, 200))
@settings(max_examples=200)
def test_greedy_solves_superincreasing_knapsacks(more: list[int], c: int) -> None:
    weights: list[int] = []
    for extra in more:
        weights.append(sum(weights) + extra)
    assert constrained.is_superincreasing(weights)
    taken = constrained.greedy(weights, c)
    assert (taken is not None) == bool(constrained.reachable(weights)[0] >> c & 1)
    assert taken is None or np.dot(taken, weights) == c


def test_greedy_can_miss_otherwise() -> None:
    assert not constrained.is_superincreasing([2, 3, 4]) and constrained.greedy([2, 3, 4], 5) is None


# --- tokenwise rejection
# ----------------------------------------------------------------------------------------


def recursion(task: Task, values: tuple, prefix: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """The law of tokenwise rejection below a prefix, in fractions, from Definition 3.1.5."""
    if len(prefix) == task.length:
        return {prefix: Fraction(1)}
    here = int("".join(map(str, prefix)) or "0", task.symbols)
    chances = {}
    for symbol in range(task.symbols):
        longer = here * task.symbols + symbol
        weight = Fraction(float(task.laws[len(prefix)][here, symbol])) * int(values[len(prefix) + 1][longer])
        if weight:
            chances[symbol] = weight
    total = sum(chances.values())
    law: dict[tuple[int, ...], Fraction] = {}
    for symbol, weight in chances.items():
        for string, share in recursion(task, values, (*prefix, symbol)).items():
            law[string] = weight / total * share
    return law


@given(tasks())
@settings(max_examples=30)
def test_the_law_of_tokenwise_rejection_is_that_of_its_definition(task: Task) -> None:
    values = task.verifier()
    law, stuck = tokenwise.action_level_law(task.laws, values)
    strings = list(itertools.product(range(task.symbols), repeat=task.length))
    expected = recursion(task, values, ())
    assert stuck == 0 and np.allclose(law, [float(expected.get(string, 0)) for string in strings], atol=1e-12)
    assert law[~task.members].sum() == 0


@pytest.mark.parametrize("length", [2, 3, 5, 8, 10])
def test_proposition_312(length: int) -> None:
    task = constrained.not_ones(length)
    law, _ = tokenwise.action_level_law(task.laws, task.verifier())
    n = 2**length
    assert law[-2] == 2 / n and (law[:-2] == 1 / n).all() and law[-1] == 0
    assert np.isclose(tokenwise.total_variation(law, task.target), (n - 2) / (n * (n - 1)), rtol=0, atol=1e-13)


@pytest.mark.parametrize("length", [2, 5, 8])
def test_proposition_311(length: int) -> None:
    task = constrained.zeros(length)
    values = task.verifier()
    assert tokenwise.rejection_calls(task) == 2**length * length
    assert tokenwise.action_level_calls(task.laws, values) == 2 * length
    assert tokenwise.enumerated_calls(task, values) == 2 * length
    drawn = tokenwise.simulate_rejection(rng("rejection", length), task, 2000, 10**9)
    token = tokenwise.simulate_tokenwise(rng("tokenwise", length), task.laws, values, 2000, 10**9)
    for outcome, expected in ((drawn, 2**length * length), (token, 2 * length)):
        assert (outcome.strings == 0).all() and abs(outcome.mean - expected) < 4 * outcome.error


@given(tasks(), st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_simulations_follow_the_exact_laws(task: Task, seed: int) -> None:
    source, values, n = np.random.default_rng(seed), task.verifier(), 2000
    size = task.symbols**task.length
    law, _ = tokenwise.action_level_law(task.laws, values)
    found = tokenwise.simulate_tokenwise(source, task.laws, values, n, 10**9)
    drawn = tokenwise.simulate_rejection(source, task, n, 10**9)
    for outcome, expected in ((found, law), (drawn, task.target)):
        assert tokenwise.total_variation(np.bincount(outcome.strings, minlength=size) / n, expected) < 4 * np.sqrt(
            size / (2 * np.pi * n)
        )
    calls = tokenwise.action_level_calls(task.laws, values)
    assert abs(found.mean - calls) <= 5 * found.error + 1e-9
    assert abs(drawn.mean - tokenwise.rejection_calls(task)) <= 5 * drawn.error + 1e-9


def test_a_process_verifier_that_ignores_the_oracle_can_be_stuck_for_ever() -> None:
    """Pitfall P4: without the guard tokenwise rejection would not end."""
    task = constrained.hidden_parity(4, 3)
    law, stuck = tokenwise.action_level_law(task.laws, task.verifier())
    assert stuck == 7 / 8 and law.sum() == 1 / 8
    assert tokenwise.action_level_calls(task.laws, task.verifier()) == np.inf
    outcome = tokenwise.simulate_tokenwise(rng("stuck"), task.laws, task.verifier(), 4000, 50)
    assert abs(outcome.failed - 7 / 8) < 4 * np.sqrt(7 / 64 / 4000)
    assert (outcome.calls[outcome.strings == tokenwise.FAILED] == 50).all()
    aware = tokenwise.simulate_tokenwise(rng("aware"), task.laws, task.verifier(aware=True), 4000, 10**6)
    assert aware.failed == 0 and abs(aware.mean - 7) < 4 * aware.error


def test_nothing_to_find_is_a_failure() -> None:
    values = constrained.knapsack_verifier([2, 4, 6], 5)
    assert tokenwise.scan(values, 2)[0] == tokenwise.FAILED
    outcome = tokenwise.simulate_tokenwise(rng("none"), constrained.uniform(2, 3), values, 10, 100)
    assert outcome.failed == 1 and outcome.mean == 0
    never = tokenwise.simulate_rejection(rng("none"), constrained.knapsack([2, 4, 6], 5), 10, 1000)
    assert never.failed == 1 and (never.calls == 999).all()  # whole strings of three calls


def test_values_above_the_largest_are_refused() -> None:
    with pytest.raises(ValueError, match="above 1"):
        tokenwise.action_level_calls(constrained.uniform(2, 1), (np.ones(1), np.array([0.5, 2.0])))


def test_values_between_0_and_1_are_probabilities_of_taking() -> None:
    laws, values = (constrained.uniform(2, 2), (np.ones(1), np.array([0.5, 1.0]), np.array([1.0, 0.25, 0.5, 0.5])))
    law, stuck = tokenwise.action_level_law(laws, values)
    assert stuck == 0 and np.allclose(law, [4 / 15, 1 / 15, 1 / 3, 1 / 3])
    assert np.isclose(tokenwise.action_level_calls(laws, values), 1 / 0.75 + (1 / 3) / 0.625 + (2 / 3) / 0.5)
    found = tokenwise.simulate_tokenwise(rng("soft"), laws, values, 20000, 10**6)
    assert np.allclose(np.bincount(found.strings) / 20000, law, atol=0.015)
    assert abs(found.mean - tokenwise.action_level_calls(laws, values)) < 4 * found.error


# --- hidden parity
# ----------------------------------------------------------------------------------------------


def test_no_searcher_needs_fewer_queries_than_the_closed_form() -> None:
    for length in (2, 3, 4):
        assert hidden_parity.bayes_value(length) == hidden_parity.closed_form(length)
        assert hidden_parity.informative(length) == [length - 1]
    assert [float(hidden_parity.closed_form(d)) for d in (2, 3, 4, 6, 8)] == [1, 2.25, 4.375, 16.46875, 64.4921875]
    with pytest.raises(ValueError, match="up to D = 4"):
        hidden_parity.bayes_value(5)


@pytest.mark.parametrize("length", [2, 3, 4, 6, 8])
def test_the_random_order_attains_it_for_every_hidden_prefix(length: int) -> None:
    assert set(hidden_parity.random_order(length)) == {hidden_parity.closed_form(length)}
    fixed = hidden_parity.fixed_order(length)
    assert max(fixed) == 2 ** (length - 1) - 1
    assert Fraction(sum(fixed), len(fixed)) == hidden_parity.closed_form(length)
    assert hidden_parity.until_asked(length) > hidden_parity.closed_form(length)


# --- the coin
# ---------------------------------------------------------------------------------------------------


def test_the_coin_has_the_numbers_of_the_chapter() -> None:
    greedy = [coin.accuracy(32, 0.05, quota, 4, coin.ARGMAX) for quota in (0, 1, 2, 4)]
    assert np.allclose(greedy, [0.1937, 0.5200, 0.7861, 0.9796], atol=5e-5)
    assert coin.accuracy(32, 0.05, 4, 1, coin.ARGMAX) == coin.accuracy(32, 0.05, 4, 4, coin.ARGMAX)


@given(
    st.integers(1, 6),
    st.sampled_from([0.1, 0.3, 0.5]),
    st.integers(0, 2),
    st.integers(1, 4),
    st.sampled_from(coin.REFILLS),
)
@settings(max_examples=60)
def test_the_closed_forms_are_the_tree_of_all_draws(
    length: int, eta: float, quota: int, stride: int, refill: str
) -> None:
    """Algorithm 1 line by line, over all sequences of draws."""

    def run(string: tuple[bool, ...], left: int) -> tuple[float, float]:
        if len(string) == length:
            return float(not any(string)), 0.0
        right, calls = 0.0, 0.0
        for error, chance in ((True, eta), (False, 1 - eta)):
            longer, rest, made = (*string, error), left, 1
            if rest > 0 and any(longer):
                erased = min(stride, len(longer))
                longer, rest = longer[: len(longer) - erased], rest - 1
                if refill == coin.ARGMAX:
                    longer, made = (*longer, *[False] * erased), made + erased
            won, more = run(longer, rest)
            right, calls = right + chance * won, calls + chance * (made + more)
        return right, calls

    expected = run((), quota)
    assert np.isclose(coin.accuracy(length, eta, quota, stride, refill), expected[0], atol=1e-12)
    assert np.isclose(coin.calls(length, eta, quota, stride, refill), expected[1], atol=1e-12)


@pytest.mark.parametrize("refill", coin.REFILLS)
@pytest.mark.parametrize("stride", [1, 4])
def test_the_simulated_coin_follows_the_closed_forms(refill: str, stride: int) -> None:
    n = 4000
    right, calls, erased = coin.simulate(rng("coin", refill, stride), n, 32, 0.05, 4, stride, refill)
    expected = coin.accuracy(32, 0.05, 4, stride, refill)
    assert (calls == 32 + erased).all() and (erased <= 4 * stride).all()
    assert abs(right.mean() - expected) < 4 * np.sqrt(expected * (1 - expected) / n)
    assert abs(calls.mean() - coin.calls(32, 0.05, 4, stride, refill)) < 4 * calls.std() / np.sqrt(n)


def test_blocks_of_candidates() -> None:
    kept = coin.simulate_blocks(rng("blocks"), 8000, 32, 0.05, 4, 2)
    assert abs(kept.mean() - 0.7563) < 4 * np.sqrt(0.2 / 8000)
    with pytest.raises(ValueError, match="do not fill"):
        coin.block_accuracy(32, 0.05, 5, 2)


@pytest.mark.parametrize(
    "wrong", [{"eta": 1.5}, {"stride": 0}, {"quota": -1}, {"length": 0}, {"refill": "beam"}], ids=str
)
def test_a_coin_that_is_none_is_one_line(wrong: dict) -> None:
    with pytest.raises(ValueError, match=r"wanted|must be"):
        coin.accuracy(**{"length": 8, "eta": 0.1, "quota": 1, "stride": 1, "refill": coin.SAMPLE} | wrong)
