"""The grammars: structure and exact laws, the sampler against enumeration, spans, masks."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from pipeline.languages import pcfg


def test_the_listings_have_the_published_rules() -> None:
    counts = {name: sum(1 for _ in pcfg.nodes_of(name)) for name in pcfg.NAMES}
    assert counts == {"cfg3b": 32, "cfg3i": 32, "cfg3h": 39, "cfg3g": 48, "cfg3f": 54, "cfg3b_pdcode": 31}
    assert pcfg.grammar("cfg3g").rules[15] == ((10, 11), (12, 10, 10), (12, 11))
    assert pcfg.grammar("cfg3g").rules[14] == ((11, 12), (10, 11, 10), (10, 10))
    assert set(pcfg.grammar("cfg3b").rules[9]) - set(pcfg.grammar("cfg3b_pdcode").rules[9]) == {(2, 1)}


@pytest.mark.parametrize(
    ("symbol", "sides", "told"),
    [
        (9, ((3, 2, 1),), "expected 2 to 2 different ones"),
        (9, ((3, 2, 1), (2, 2)), "neighbours that differ"),
        (9, ((3, 2, 1), (7, 1)), "two or three of (1, 2, 3)"),
        (9, ((3, 2, 1), (2,)), "two or three of"),
    ],
)
def test_a_broken_grammar_is_told(symbol: int, sides: tuple[tuple[int, ...], ...], told: str) -> None:
    known = pcfg.grammar("cfg3b")
    assert pcfg.broken_facts(known) == []
    violations = pcfg.broken_facts(replace(known, rules={**known.rules, symbol: sides}))
    assert len(violations) >= 1 and told in violations[-1]


def test_unknown_names_and_symbols_are_refused() -> None:
    with pytest.raises(SandglassError, match="no grammar 'cfg4'; known: cfg3b"):
        pcfg.grammar("cfg4")
    with pytest.raises(SandglassError, match="no symbol 5"):
        pcfg.depth(5)
    with pytest.raises(SandglassError, match="has symbol 8 twice"):
        pcfg.parsed("8: 1 2 8: 1 1")
    with pytest.raises(SandglassError, match="begins with '1'"):
        pcfg.parsed("1 2")
    with pytest.raises(SandglassError, match="derivations, more than the 100000"):
        pcfg.derivations("cfg3b", 16)


@pytest.mark.parametrize(("name", "root"), [("cfg3b", 13), ("cfg3b", 15), ("cfg3f", 12), ("cfg3h", 11), ("cfg3g", 10)])
def test_laws_are_those_of_all_derivations(name: str, root: int) -> None:
    strings, chances = pcfg.derivations(name, root)
    assert len(strings) == pcfg.number_of_derivations(name, root)
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    law = np.bincount([len(string) for string in strings], chances)
    assert pcfg.length_law(name, root) == pytest.approx(law, abs=1e-14)
    counts = sum(c * np.bincount(string, minlength=4)[1:] for string, c in zip(strings, chances, strict=True))
    assert pcfg.token_law(name, root) == pytest.approx(counts / counts.sum(), abs=1e-14)
    lengths = sorted({len(string) for string in strings})
    assert pcfg.extent(name, root) == (lengths[0], lengths[-1])


def test_published_percentiles_are_those_of_the_complete_grammar() -> None:
    for name, published in pcfg.PERCENTILES.items():
        exact = [pcfg.quantile(pcfg.length_law(name), q) for q in pcfg.QUANTILES]
        assert max(abs(a - b) for a, b in zip(exact, published, strict=True)) <= 3, name
    other = [pcfg.quantile(pcfg.length_law("cfg3b_pdcode"), q) for q in pcfg.QUANTILES]
    assert other == [269, 296, 329, 363]


@pytest.mark.parametrize("how", ["sample", "strings"])
@pytest.mark.parametrize(("name", "root"), [("cfg3b", 13), ("cfg3f", 11), ("cfg3h", 12), ("cfg3f", 8)])
def test_strings_are_drawn_with_their_probabilities(how: str, name: str, root: int) -> None:
    known: dict[tuple[int, ...], float] = defaultdict(float)
    for string, chance in zip(*pcfg.derivations(name, root), strict=True):
        known[string] += chance
    n = 40_000
    rng = stream(5, "test", "pcfg", how, name, root)
    if how == "sample":
        drawn = pcfg.sample(rng, name, n, root)
        tokens, lengths = drawn.tokens, drawn.lengths
    else:
        tokens, lengths = pcfg.strings(rng, name, n, root)
    assert len(lengths) == n and lengths.sum() == len(tokens)
    counts = Counter(tuple((part + 1).tolist()) for part in np.split(tokens, np.cumsum(lengths)[:-1]))
    assert set(counts) <= set(known)
    expected = np.array(list(known.values())) * n
    observed = np.array([counts[string] for string in known])
    assert expected.min() >= 5
    assert 1e-3 < stats.chisquare(observed, expected).pvalue < 1 - 1e-6


def test_trees_follow_the_rules_and_spans_are_theirs() -> None:
    drawn = pcfg.sample(stream(5, "test", "trees"), "cfg3f", 20)
    rules = pcfg.grammar("cfg3f").rules
    starts = np.concatenate([[0], np.cumsum(drawn.lengths)])
    for sentence in range(20):
        nodes = drawn.tree(sentence)
        by_depth: dict[int, list[tuple[int, int, int, int, int]]] = defaultdict(list)
        for node in nodes:
            by_depth[node[0]].append(node)
        assert [node[1] for node in by_depth[0]] == [22] and set(by_depth) == set(range(7))
        length = by_depth[0][0][4]
        own = slice(starts[sentence], starts[sentence + 1])
        assert length == drawn.lengths[sentence]
        assert [node[1] - 1 for node in by_depth[6]] == drawn.tokens[own].tolist()
        for place in range(6):
            for number, (_, symbol, _, first, end) in enumerate(by_depth[place]):
                children = [node for node in by_depth[place + 1] if node[2] == number]
                assert tuple(node[1] for node in children) in rules[symbol]
                assert (children[0][3], children[-1][4]) == (first, end)
        for place in range(7):
            ancestors = np.zeros(length, int)
            for _, symbol, _, first, end in by_depth[place]:
                ancestors[first:end] = symbol
            assert drawn.ancestors(place)[own].tolist() == ancestors.tolist()
        for at in range(length):
            ending = [(pcfg.DEPTH + 1 - node[0], node[1]) for node in nodes if node[4] == at + 1]
            assert drawn.boundary_levels[own][at] == max(ending)[0]
            assert drawn.boundary_symbols[own][at] == max(ending)[1]


def test_ends_of_levels_contain_each_other() -> None:
    drawn = pcfg.sample(stream(5, "test", "ends"), "cfg3b", 50)
    sets = {level: pcfg.ends(drawn.boundary_levels, level) for level in range(1, 8)}
    assert sets[1].all() and sets[7].sum() == 50
    for level in range(1, 7):
        assert (sets[level] | ~sets[level + 1]).all()
        assert sets[level].sum() == len(drawn.symbols[7 - level])  # one for each symbol of that level
    with pytest.raises(SandglassError, match="no level 8"):
        pcfg.ends(drawn.boundary_levels, 8)


@pytest.mark.parametrize("rate", [0.15, 0.3, 0.45])
def test_masks_have_their_law(rate: float) -> None:
    rng = stream(5, "test", "mask", str(rate))
    tokens = rng.integers(0, 3, 300_000).astype(np.uint8)
    shown, kind = pcfg.mask(rng, tokens, rate)
    expected = np.array([1 - rate, 0.8 * rate, 0.1 * rate, 0.1 * rate])
    assert stats.chisquare(np.bincount(kind, minlength=4), expected * len(tokens)).pvalue > 1e-3
    assert (shown[kind == pcfg.MASKED] == pcfg.MASK).all() and (shown != pcfg.MASK)[kind != pcfg.MASKED].all()
    left = (kind == pcfg.KEPT) | (kind == pcfg.NONE)
    assert (shown[left] == tokens[left]).all()
    pairs = np.bincount(3 * tokens[kind == pcfg.RANDOM] + shown[kind == pcfg.RANDOM], minlength=9)
    assert len(pairs) == 9 and stats.chisquare(pairs).pvalue > 1e-3  # the same terminal included
    neighbours = (kind[1:] != pcfg.NONE) & (kind[:-1] != pcfg.NONE)
    assert stats.binomtest(int(neighbours.sum()), len(neighbours), rate**2).pvalue > 1e-4


def test_no_mask_and_nothing_but_masks() -> None:
    tokens = np.tile(np.arange(3, dtype=np.uint8), 1000)
    shown, kind = pcfg.mask(stream(5, "test", "none"), tokens, 0.0)
    assert (shown == tokens).all() and (kind == pcfg.NONE).all()
    _, kind = pcfg.mask(stream(5, "test", "all"), tokens, 1.0)
    assert (kind != pcfg.NONE).all()


def test_padding_is_never_selected_nor_seen() -> None:
    rng = stream(5, "test", "padding")
    tokens, lengths = pcfg.strings(rng, "cfg3b", 100, 13)
    shown, kind = pcfg.mask(rng, tokens, 0.5)
    ids, kinds = pcfg.padded(shown, lengths), pcfg.padded(kind, lengths, pcfg.NONE, pcfg.NONE)
    assert (ids[:, 0] == pcfg.BOS).all() and (kinds[:, 0] == pcfg.NONE).all()
    assert ((ids != pcfg.PAD).sum(1) == lengths + 1).all() and (kinds[ids == pcfg.PAD] == pcfg.NONE).all()
    assert (ids[:, 1:][ids[:, 1:] != pcfg.PAD] == shown).all()
    plain, hidden = pcfg.visible(ids, kinds, False), pcfg.visible(ids, kinds, True)
    assert (plain == (ids != pcfg.PAD)).all()
    assert (hidden == plain & (kinds == pcfg.NONE)).all() and (plain & ~hidden).sum() == (kind != pcfg.NONE).sum()
    with pytest.raises(SandglassError, match="expected at most 10"):
        pcfg.padded(shown, lengths, width=10)


def test_a_stream_gives_the_same_strings_again() -> None:
    first, again = (pcfg.strings(stream(5, "test", "again"), "cfg3i", 30) for _ in range(2))
    assert (first[0] == again[0]).all() and (first[1] == again[1]).all()
