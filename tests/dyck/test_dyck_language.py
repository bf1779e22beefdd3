"""Bounded Dyck languages: the samplers against exact enumeration, the structure against a plain stack machine."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pipeline.kit.streams import stream
from pipeline.languages import dyck

LANGUAGES = st.tuples(st.integers(1, 3), st.integers(1, 6))


def machine(row: list[int]) -> list[dict[str, int]]:
    """Read one row token by token with a stack of positions: what the vectorised functions must agree with."""
    stack: list[int] = []
    states: list[dict[str, int]] = []
    for i, token in enumerate(row):
        if token == dyck.PADDING:
            break
        state = {"top": (row[stack[-1]] + 1) // 2 if stack else 0, "match": -1}
        if token % 2:
            stack.append(i)
            state["pair"] = len(stack)
        else:
            assert stack and row[stack[-1]] == token - 1, f"closer {token} at {i} does not match"
            state["pair"] = len(stack)
            state["match"] = stack.pop()
            states[state["match"]]["match"] = i
        state |= {"depth": len(stack), "last": stack[-1] if stack else -1}
        states.append(state)
    return states


@settings(max_examples=60, deadline=None)
@given(LANGUAGES, st.integers(1, 40), st.integers(0, 2**32), st.floats(0.05, 0.95))
def test_prefixes_belong_to_the_language(language: tuple[int, int], longest: int, seed: int, q: float) -> None:
    k, depth = language
    rng = stream(seed, "test")
    lengths = rng.integers(1, longest + 1, 20)
    tokens = dyck.sample_prefixes(rng, 20, lengths, k, depth, q)
    assert dyck.is_valid(tokens, k, depth).all()
    assert ((tokens > 0).sum(1) == lengths).all()
    for row, *columns in zip(
        tokens.tolist(),
        dyck.depths(tokens),
        dyck.pair_depths(tokens),
        dyck.stack_top(tokens),
        dyck.last_unmatched_open(tokens),
        dyck.matching(tokens),
        strict=True,
    ):
        states = machine(row)
        assert all(0 <= state["depth"] <= depth for state in states)
        for name, column, empty in zip(
            ("depth", "pair", "top", "last", "match"), columns, (-1, 0, 0, -1, -1), strict=True
        ):
            assert column.tolist() == [s[name] for s in states] + [empty] * (len(row) - len(states)), name


@settings(max_examples=30, deadline=None)
@given(LANGUAGES, st.integers(1, 14), st.integers(0, 2**32), st.floats(0.1, 0.9), st.floats(0.2, 1))
def test_complete_strings_are_balanced(
    language: tuple[int, int], half: int, seed: int, q: float, p_stop: float
) -> None:
    k, depth = language
    tokens = dyck.sample_complete(stream(seed, "test"), 30, k, depth, q, p_stop, 2 * half)
    assert tokens.shape == (30, 2 * half)
    assert dyck.is_valid(tokens, k, depth).all()
    for row in tokens.tolist():
        states = machine(row)
        assert states and states[-1]["depth"] == 0 and len(states) % 2 == 0


@pytest.mark.parametrize(("k", "depth", "length"), [(2, 4, 6), (3, 2, 5), (1, 3, 9), (2, 1, 6)])
def test_enumeration_is_the_language(k: int, depth: int, length: int) -> None:
    every = np.array(list(itertools.product(range(1, 2 * k + 1), repeat=length)), np.int8)
    expected = every[dyck.is_valid(every, k, depth)]
    assert (dyck.enumerate_prefixes(length, k, depth) == expected).all()
    assert np.exp(dyck.log_probability(every, k, depth, 0.3)).sum() == pytest.approx(1, abs=1e-12)


def test_validity_refuses_each_defect() -> None:
    good = dyck.parse("[()]")
    assert dyck.is_valid(good, 2, 2).all()
    assert not dyck.is_valid(good, 2, 1).any()  # too deep
    assert not dyck.is_valid(good, 1, 2).any()  # token outside 1..2k
    for bad in ("[(])", "]", "[]]["):
        assert not dyck.is_valid(dyck.parse(bad), 2, 4).any(), bad
    assert not dyck.is_valid(np.array([[1, -1, 2]]), 2, 4).any()  # padding inside
    assert not dyck.is_valid(np.array([[0, 1, 2]]), 2, 4).any()  # the start token is not in the language


@pytest.mark.parametrize(("k", "depth", "q", "length"), [(2, 4, 0.5, 6), (3, 2, 0.3, 5), (1, 3, 0.8, 9)])
def test_prefix_sampler_follows_the_exact_law(k: int, depth: int, q: float, length: int) -> None:
    support = dyck.enumerate_prefixes(length, k, depth)
    law = np.exp(dyck.log_probability(support, k, depth, q))
    n = 200_000
    counts = _count(dyck.sample_prefixes(stream(1, "chi2", k, depth), n, length, k, depth, q), support, k)
    assert stats.chisquare(counts, n * law).pvalue > 1e-3
    # The test has the power to see Wen et al. eq. (3) as printed, where it differs.
    literal = np.exp(dyck.literal_log_weight(support, k, depth, q))
    if k > 1:
        assert stats.chisquare(counts, n * literal / literal.sum()).pvalue < 1e-6


def test_a_prefix_of_a_long_sample_follows_the_same_law() -> None:
    support = dyck.enumerate_prefixes(5, 2, 4)
    n = 50_000
    tokens = dyck.sample_prefixes(stream(2, "long"), n, 40, 2, 4, 0.5)
    counts = _count(tokens[:, :5], support, 2)
    assert stats.chisquare(counts, n * np.exp(dyck.log_probability(support, 2, 4, 0.5))).pvalue > 1e-3


def test_prefix_law_factorises_into_next_token_laws() -> None:
    tokens = dyck.enumerate_prefixes(7, 2, 3)
    before = np.concatenate([np.zeros((len(tokens), 1), int), dyck.depths(tokens)[:, :-1]], 1)
    law = dyck.next_token_law(before, dyck.stack_top(tokens), 2, 3, 0.4)
    assert law.sum(-1) == pytest.approx(1)
    picked = np.take_along_axis(law, tokens[..., None].astype(int) - 1, -1)[..., 0]
    assert np.log(picked).sum(1) == pytest.approx(dyck.log_probability(tokens, 2, 3, 0.4))


def test_complete_sampler_follows_the_exact_length_law() -> None:
    law, acceptance = dyck.complete_length_law(4, 0.5, 0.5, 26)
    assert acceptance == pytest.approx(0.8037, abs=5e-5)
    assert (law * np.arange(27)).sum() == pytest.approx(8.443, abs=5e-4)
    tokens = dyck.sample_complete(stream(3, "complete"), 60_000, 2, 4, 0.5, 0.5, 26)
    lengths = np.bincount((tokens > 0).sum(1), minlength=27)
    assert lengths[law == 0].sum() == 0
    assert stats.chisquare(lengths[law > 0], 60_000 * law[law > 0]).pvalue > 1e-3


def test_complete_sampler_is_uniform_over_types_given_the_length() -> None:
    """At length 4 each [][] weighs (1-q)(1-stop)(1-q), each [[]] weighs q(1-q)(1-q); types change nothing."""
    tokens = dyck.sample_complete(stream(4, "complete"), 60_000, 2, 4, 0.25, 0.5, 4)
    four = tokens[(tokens > 0).all(1)]
    flat, deep = dyck.parse("[][]", "[]()", "()[]", "()()"), dyck.parse("[[]]", "[()]", "([])", "(())")
    counts = np.array([(four == row).all(1).sum() for row in np.concatenate([flat, deep])])
    weight = np.repeat([0.75 * 0.5 * 0.75, 0.25 * 0.75 * 0.75], 4)
    assert counts.sum() == len(four)
    assert stats.chisquare(counts, counts.sum() * weight / weight.sum()).pvalue > 1e-3


def test_figures_of_the_language_2_4() -> None:
    assert dyck.depth_law(28, 4, 0.5)[[0, 2, 4]] == pytest.approx([0.25, 0.5, 0.25], abs=1e-3)
    assert dyck.literal_total_mass(28, 2, 4, 0.5) == pytest.approx(123.58, abs=5e-3)
    support = dyck.enumerate_prefixes(8, 2, 4)
    literal = np.exp(dyck.literal_log_weight(support, 2, 4, 0.5)).sum()
    assert dyck.literal_total_mass(8, 2, 4, 0.5) == pytest.approx(literal)
    tokens = dyck.sample_prefixes(stream(5, "share"), 100_000, 28, 2, 4, 0.5)
    assert dyck.is_close(tokens).mean() == pytest.approx(13 / 28, abs=1e-3)


def test_samplers_reproduce_their_stream_whatever_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    first = dyck.sample_prefixes(stream(6, "a"), 3000, 9, 2, 4, 0.5)
    assert (first == dyck.sample_prefixes(stream(6, "a"), 3000, 9, 2, 4, 0.5)).all()
    assert (first != dyck.sample_prefixes(stream(7, "a"), 3000, 9, 2, 4, 0.5)).any()
    monkeypatch.setattr(dyck, "_BLOCK", 700)  # blocks of any size still give independent, valid rows
    support = dyck.enumerate_prefixes(4, 2, 4)
    tokens = dyck.sample_prefixes(stream(6, "a"), 40_000, 4, 2, 4, 0.5)
    law = np.exp(dyck.log_probability(support, 2, 4, 0.5))
    assert stats.chisquare(_count(tokens, support, 2), 40_000 * law).pvalue > 1e-3


def test_symbols_number_token_and_pair_depth_without_collision() -> None:
    tokens = dyck.sample_prefixes(stream(8, "s"), 500, 30, 3, 5, 0.5)
    ids = dyck.symbols(tokens, 5)
    pairs = np.stack([tokens.ravel(), dyck.pair_depths(tokens).ravel(), ids.ravel()])
    seen = np.unique(pairs, axis=1)
    assert seen.shape[1] == len(np.unique(seen[2])) == 3 * 2 * 5  # one symbol per pair, and all of them occur
    assert seen[2].min() == 1 and seen[2].max() == dyck.symbol_count(3, 5) - 1
    assert dyck.symbols(np.array([[1, -1]], np.int8), 5).tolist() == [[1, -1]]
    assert dyck.with_start(ids)[:, 0].max() == 0


def test_embedding_tables() -> None:
    k, depth, width = 2, 4, 50
    pair = dyck.embedding_table("pair", k, depth, width)
    assert pair.shape == (17, 50) and (pair @ pair.T == np.eye(17)).all()
    token = dyck.embedding_table("token", k, depth, width)
    assert token.shape == (5, 50) and (token @ token.T == np.eye(5)).all()
    both = dyck.embedding_table("sum", k, depth, width)
    open_at_2, close_of_2, other_at_2 = both[dyck.symbols(dyck.parse("[[]()"), depth)[0, [1, 2, 3]]]
    assert open_at_2 @ close_of_2 == 1 and open_at_2 @ other_at_2 == 1 and both[0] @ both[1:].T == pytest.approx(0)
    angle = dyck.embedding_table("angle", k, depth, width)
    opened, closed = angle[dyck.symbols(dyck.parse("[]"), depth)[0]]
    assert opened[5:7] == pytest.approx([np.cos(np.arctan(1 / 5)), np.sin(np.arctan(1 / 5))])  # raw depth 1
    assert closed[5:7] == pytest.approx([1, 0])  # raw depth 0
    with pytest.raises(ValueError, match="needs width 17, got 16"):
        dyck.embedding_table("pair", k, depth, 16)
    with pytest.raises(ValueError, match="unknown embedding 'pairs'"):
        dyck.embedding_table("pairs", k, depth, 50)


def test_prefix_bank_is_every_nested_prefix_once() -> None:
    tokens, lengths, probabilities = dyck.prefix_bank(2, 4)
    assert len(tokens) == 2 + 4 + 8 + 16 and len(np.unique(tokens, axis=0)) == len(tokens)
    assert probabilities.sum() == pytest.approx(1)
    for r in range(1, 5):  # r uniform, and types uniform given r
        assert probabilities[lengths == 2 * r] == pytest.approx(0.25 / 2**r)
    assert dyck.is_valid(tokens, 2, 4).all() and ((tokens > 0).sum(1) == lengths).all()
    depth = dyck.depths(tokens)
    assert (depth.max(1) * 2 == lengths).all() and (depth[np.arange(30), lengths - 1] == 0).all()


def _count(tokens: np.ndarray, support: np.ndarray, k: int) -> np.ndarray:
    """How often each row of ``support`` (lexicographic) occurs in ``tokens``."""
    base = (2 * k + 1) ** np.arange(support.shape[1])[::-1]
    index = np.searchsorted(support @ base, tokens @ base)
    assert (support[index] == tokens).all()
    return np.bincount(index, minlength=len(support))
