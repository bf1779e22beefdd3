"""Automata against their definitions on all short inputs; their algebra; the cascade and Algorithm 1."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pipeline.errors import SandglassError
from pipeline.languages import automata
from pipeline.languages.automata import automaton, every_input, simulate, task

ALL = (*automata.TASKS, "s3", "abab", "memory3", "dyck48", "s5five")


def follow(name: str, word: tuple[int, ...]) -> object:
    """The state behind a word, from the definition of the automaton and not from its table."""
    if name[0] == "c" and "p" not in name:
        return sum(word) % int(name[1:])
    if name.startswith("c2p"):
        return int(np.bitwise_xor.reduce((0, *word)))
    if name in ("d6", "d8"):
        s = b = 0
        for symbol in word:
            s, b = (s, 1 - b) if symbol else ((s + (-1) ** b) % (int(name[1]) // 2), b)
        return f"{s}{'+-'[b]}"
    if name.startswith("grid"):
        q = 0
        for symbol in word:
            q = min(max(q + 2 * symbol - 1, 0), int(name[4:]) - 1)
        return q
    if name.startswith("memory"):
        return next((symbol - 1 for symbol in reversed(word) if symbol), 0)
    if name == "abab":
        text = "".join("ab"[symbol] for symbol in word)
        return (len(word) + 3) % 4 if ("ab" * len(word)).startswith(text) else 4
    if name == "q8":
        units = {"1": np.eye(2), "i": np.diag([1j, -1j]), "j": np.array([[0, 1], [-1, 0]])}
        units["k"] = units["i"] @ units["j"]
        product = np.linalg.multi_dot([np.eye(2), np.eye(2), *(units["1ijk"[symbol]] for symbol in word)])
        signed = {sign + u: (-1 if sign else 1) * m for u, m in units.items() for sign in ("", "-")}
        return next(u for u, m in signed.items() if np.allclose(m, product))
    n, symbols = int(name[1]), automata.generators(name[0], int(name[1]))
    deck = list(range(n))
    for symbol in word:
        deck = [deck[i] for i in symbols[symbol]]
    return "".join(str(x + 1) for x in deck)


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("dyck")])
def test_states_on_all_short_inputs(name: str) -> None:
    known = automaton(name)
    n = known.next.shape[1]
    length = max(t for t in range(1, 9) if n**t <= 1500)
    words = every_input(n, length)
    states = simulate(known, words)
    named = [(q, known.states[q]) for q in states[:, -1].tolist()]
    for word, pair in zip(itertools.product(range(n), repeat=length), named, strict=True):
        assert follow(name, word) in pair


@pytest.mark.parametrize(("name", "depth", "kinds"), [("dyck42", 4, 2), ("dyck48", 4, 8)])
def test_dyck_on_all_short_inputs(name: str, depth: int, kinds: int) -> None:
    known = automaton(name)
    for word in itertools.product(range(2 * kinds), repeat=6 if kinds == 2 else 3):
        stack: list[int] | None = []
        for symbol in word:
            if stack is None:
                break
            kind = symbol % kinds + 1
            if symbol < kinds:
                stack = [*stack, kind] if len(stack) < depth else None
            else:
                stack = stack[:-1] if stack and stack[-1] == kind else None
        if stack is None:
            with pytest.raises(SandglassError, match="is not allowed at position"):
                simulate(known, np.array([word]))
        else:
            assert known.states[simulate(known, np.array([word]))[0, -1]] == ("".join(map(str, stack)) or "∅")


def test_the_worked_example_of_abab() -> None:
    word = np.array([["ab".index(c) for c in "abababaaabab"]])
    assert "".join(map(str, simulate(automaton("abab"), word)[0])) == "012301244444"


def test_sizes_of_the_table() -> None:
    """|Q|, |Sigma|, |T|, composition factors and solvability, as section 3.1 of the chapter lists them."""
    sizes = {"a4": (12, 2), "a5": (60, 3), "s4": (24, 8), "s5": (120, 8), "q8": (8, 4), "dyck42": (31, 4)}
    for name, size in sizes.items():
        assert automaton(name).next.shape == size
    semigroups = {"grid4": 17, "grid9": 212, "c6": 6, "c2p3": 8, "d6": 6, "d8": 8, "q8": 8, "s5": 120}
    for name, size in semigroups.items():
        assert len(automata.semigroup(automaton(name).maps) or []) == size
    factors = {name: automata.factors(automata.generated(automaton(name).maps)) for name in automata.TASKS[3:]}
    assert factors["c6"] in (["C2", "C3"], ["C3", "C2"]) and factors["c8"] == ["C2"] * 3
    assert sorted(factors["s4"]) == ["C2", "C2", "C2", "C3"] and sorted(factors["a4"]) == ["C2", "C2", "C3"]
    assert factors["a5"] == ["A5"] and factors["s5"] == ["C2", "A5"] and factors["q8"] == ["C2"] * 3
    for name, own in factors.items():
        maps = automaton(name).maps
        assert automata.is_solvable(maps) == all(f.startswith("C") for f in own) == (name not in ("a5", "s5"))
    assert {n for n in automata.TASKS if not automata.is_group(automaton(n))} == {"dyck42", "grid4", "grid9"}
    for name in ("grid4", "grid9", "dyck42", "memory3"):
        assert automata.is_aperiodic(automata.semigroup(automaton(name).maps) or [(1, 0)])
    assert not automata.is_aperiodic(automata.semigroup(automaton("c2").maps) or [])
    assert {n for n in automata.TASKS if automata.period(automaton(n)) == 2} == {"d8", "dyck42"}


def test_order_profiles() -> None:
    profiles = {"d6": {1: 1, 2: 3, 3: 2}, "d8": {1: 1, 2: 5, 4: 2}, "a4": {1: 1, 2: 3, 3: 8}, "q8": {1: 1, 2: 1, 4: 6}}
    for name, profile in profiles.items():
        assert automata.generated(automaton(name).maps).orders() == profile


def test_the_first_entry_of_s5_is_partially_observed() -> None:
    """Two histories with equal first entry can have different next first entries."""
    seen = task("s5-first")
    following = {}
    for q, moves in enumerate(seen.automaton.next):
        following.setdefault((seen.observe[q]), set()).add(tuple(seen.observe[moves]))
    assert all(len(each) > 1 for each in following.values())


@pytest.mark.parametrize(
    ("name", "length", "percent"),
    [
        ("c7", 9, 100 / 7),
        ("d6", 100, 17.2),
        ("d8", 100, 25.3),
        ("d6", 40, 18.1),
        ("d8", 16, 26.6),
        ("q8", 100, 12.8),
        ("a4", 100, 9.4),
        ("a5", 40, 3.3),
        ("s4", 16, 5.5),
        ("s5", 100, 1.2),
        ("grid4", 100, 26.0),
        ("grid9", 16, 29.2),
        ("abab1", 40, 100.0),
        ("c4-zero", 40, 75.0),
        ("abab2", 40, 87.0),
    ],
)
def test_constant_predictors(name: str, length: int, percent: float) -> None:
    assert 100 * automata.constant_accuracy(name, length) == pytest.approx(percent, abs=0.7)


def test_one_label_throughout_on_abab() -> None:
    """Its labels are a function of the position; 75 % is the accuracy of one label at all positions."""
    assert automata.majority_accuracy("abab1", 40) == 0.75


@pytest.mark.parametrize("name", (*automata.TASKS, *automata.OBSERVED))
def test_samples_follow_the_exact_law_of_labels(name: str) -> None:
    of = task(name)
    tokens, states = automata.sample(name, 6, 20_000, np.random.default_rng(1))
    assert (simulate(of.automaton, tokens) == states).all()
    frequencies = np.stack([np.bincount(of.observe[states[:, t]], minlength=of.labels) for t in range(6)]) / 20_000
    assert np.abs(frequencies - automata.label_law(name, 6)).max() < 0.02


def test_counts_and_probabilities_of_ones() -> None:
    rng = np.random.default_rng(2)
    assert (automata.counted(20, 7, 500, rng).sum(1) == 7).all()
    assert automata.sample("c2", 50, 2000, rng, 0.9, "bernoulli")[0].mean() == pytest.approx(0.9, abs=0.01)


def test_the_cascade_does_what_the_automaton_does() -> None:
    """All 729 automata of three states and two letters, all starts, all inputs of length 6; Grid, abab, memory."""
    words = every_input(2, 6)
    for k, columns in enumerate(itertools.product(itertools.product(range(3), repeat=3), repeat=2)):
        known = automata.Automaton(str(k), np.array(columns).T, 0, ("0", "1", "2"), ("a", "b"))
        q0 = k % 3
        assert (automata.cascade(known, q0).simulate(words) == simulate(known, words, q0)).all()
    for name in ("grid4", "abab", "memory3", "c4"):
        known = automaton(name)
        words = every_input(known.next.shape[1], 5)
        built = automata.cascade(known)
        assert (built.simulate(words) == simulate(known, words)).all()
        groups = [len(automata.generated(level.permutations)) for level in built.levels]
        assert {"grid4": [1, 1, 1], "abab": [1, 1, 2, 1], "memory3": [1, 1]}.get(name, groups) == groups


@pytest.mark.parametrize("S", [1, 2, 3, 4])
def test_algorithm_1_on_all_inputs(S: int) -> None:
    for length, letters in ((8, (-1, 1)), (5, (-1, 0, 1))):
        words = np.array(list(itertools.product(letters, repeat=length)))
        states = automata.grid_states(S, words)[:, -1]
        for word, state in zip(words, states, strict=True):
            trace = automata.grid_algorithm(S, word)
            assert trace.state == state == trace.z[-1] - trace.z[trace.uniq :].min()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: automaton("c22"), "there is no automaton 'c22'; did you mean 'c2p2'?"),
        (lambda: task("grid9-edge"), "automaton 'grid9' has no observation 'edge'; did you mean 'grid9-boundary'?"),
        (lambda: automata.sample("c2", 3, 1, np.random.default_rng(), law="normal"), "there is no input law 'normal'"),
        (lambda: simulate(automaton("c2"), np.array([[0, 2]])), "c2: symbol 2 is not in the alphabet 0..1"),
        (lambda: automata.cascade(automaton("dyck42")), "dyck42: a cascade needs a move for every state and symbol"),
        (lambda: automata.generated([(0, 0)]), "is not a permutation of 0..1"),
    ],
)
def test_bad_input_is_one_line(call: object, message: str) -> None:
    with pytest.raises(SandglassError) as error:
        call()  # type: ignore[operator]
    assert message in str(error.value) and "\n" not in str(error.value)
