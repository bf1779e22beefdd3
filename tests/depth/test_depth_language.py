"""Sequence tasks: templates, exact laws of the samplers, attention patterns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from pipeline.languages import sequence_tasks as tasks


def rng(*names: str | int) -> np.random.Generator:
    return stream(1, "tests", "depth", *names)


def test_templates_are_the_restricted_growth_strings() -> None:
    assert [len(tasks.templates(n)) for n in range(1, 7)] == [1, 2, 5, 15, 52, 203]  # Bell numbers
    for template in tasks.templates(5):
        assert all(entry <= max(template[:i], default=-1) + 1 for i, entry in enumerate(template))
    assert len({tuple(row) for row in tasks.templates(6)}) == 203


@given(st.data())
def test_template_does_not_depend_on_the_tokens(data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 5))
    index = data.draw(st.integers(0, len(tasks.templates(length)) - 1))
    tokens = data.draw(st.permutations(range(9)))
    assert tasks.template_of(np.array(tokens)[tasks.templates(length)[[index]]]) == index


def test_choices_without_replacement_are_uniform() -> None:
    samples = tasks._distinct(rng("distinct"), 24_000, 4, 3)
    counts = np.unique(samples, axis=0, return_counts=True)[1]
    assert len(counts) == 24 and stats.chisquare(counts).pvalue > 1e-3


def test_lookup_asks_every_pair_equally_and_is_answered_by_it() -> None:
    sample = tasks.question_answering(rng("qa"), 9000, 3, 5, 4)
    assert sample.ids_NxT.shape == (9000, tasks.length("ic_qa", 3, 0))
    pairs = sample.ids_NxT[:, :9].reshape(-1, 3, 3)
    assert (pairs[:, :, 1] == 5).all() and (sample.ids_NxT[:, -1] == 5).all()
    targets = pairs[np.arange(9000), sample.right_N]
    assert (targets[:, 0] == sample.ids_NxT[:, -2]).all() and (targets[:, 2] == sample.label_N).all()
    assert stats.chisquare(np.bincount(sample.right_N)).pvalue > 1e-3
    assert {len(set(row)) for row in pairs[:, :, 0].tolist()} == {3}


def test_classes_are_a_permutation_and_sequences_distinct() -> None:
    sample = tasks.classification(rng("sc"), 60, 2, 6)  # of 64
    assert sorted(sample.label_N) == list(range(60))
    assert len(np.unique(sample.ids_NxT, axis=0)) == 60
    with pytest.raises(SandglassError, match="only 64 sequences of 6 tokens over 2, not 65"):
        tasks.classification(rng("sc"), 65, 2, 6)


def test_templates_are_uniform_and_combinations_kept_apart() -> None:
    draw = {
        held: tasks.template_matching(rng("templates", str(held)), 10_000, 3, (2, 12), 14, held)
        for held in (True, False, None)
    }
    seen = {held: {tuple(row) for row in sample.ids_NxT[:, :3].tolist()} for held, sample in draw.items()}
    assert seen[True].isdisjoint(seen[False])
    assert seen[None] & seen[True] and seen[None] & seen[False]
    for sample in draw.values():
        assert (tasks.template_of(sample.ids_NxT[:, :3]) == sample.label_N).all()
        assert stats.chisquare(np.bincount(sample.label_N)).pvalue > 1e-3
        assert set(np.unique(sample.ids_NxT[:, :3])) <= set(range(2, 12))
    every = np.stack(np.meshgrid(*[np.arange(20)] * 3), -1).reshape(-1, 3)
    held, of = tasks.is_held_out(every), tasks.template_of(every)
    assert 0 < held[of == 0].sum() < 10  # AAA: of 20
    assert [held[of == t].mean() for t in range(1, 5)] == pytest.approx([1 / tasks.HELD_OUT] * 4, abs=0.05)
    with pytest.raises(SandglassError, match="at least 3 different tokens"):
        tasks.template_matching(rng("tm"), 10, 3, (0, 2), 14, None)


def test_context_holds_the_template_of_the_query_once() -> None:
    k, l = 3, 3
    sample = tasks.contextual(rng("ictm"), 4000, k, l, 4, 5)
    blocks = sample.ids_NxT[:, : k * (l + 2)].reshape(-1, k, l + 2)
    templates = np.stack([tasks.template_of(blocks[:, i, :l]) for i in range(k)], 1)
    query = sample.ids_NxT[:, k * (l + 2) : -1]
    assert ((templates == tasks.template_of(query)[:, None]).argmax(1) == sample.right_N).all()
    assert {len(set(row)) for row in templates.tolist()} == {k}
    assert (blocks[np.arange(4000), sample.right_N, l + 1] == sample.label_N).all()
    assert (blocks[np.arange(4000), sample.right_N, :l] != query).any(1).all()
    assert stats.chisquare(np.bincount(tasks.template_of(query))).pvalue > 1e-3


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_chains_end_after_as_many_lookups(hops: int) -> None:
    sample = tasks.nested(rng("nested", hops), 2000, hops, 3, 2, 9)
    for ids, label, ends in zip(*(part.tolist() for part in sample[:3]), strict=True):
        step = {ids[i]: ids[i + 2] for i in range(0, 18, 3)}
        at = ids[-2]
        for _ in range(hops):
            at = step[at]
        assert at == label and at not in step and {label} < set(ends)
    assert stats.chisquare(np.bincount(sample.right_N)).pvalue > 1e-3  # its place tells nothing
    with pytest.raises(SandglassError, match="chains of 3 pairs have no 4 hops"):
        tasks.nested(rng("nested"), 1, 4, 3, 2, 9)


def test_patterns_of_blocks() -> None:
    assert tasks.blocks("ic_tm", 2, 1).tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
    copying = tasks.copying("ic_qa", 1, 0)
    assert copying.tolist() == [[0, 1, 1, 0, 0], [1, 0, 1, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 0]]


def test_parsing_pattern_finds_equal_tokens_of_the_block() -> None:
    k, l, d1, d2 = 2, 3, 4, 5
    sample = tasks.contextual(rng("parse"), 50, k, l, d1, d2)
    d, n = tasks.inputs("ic_tm", d1, d2), tasks.length("ic_tm", k, l)
    W = tasks.start("parsing", "ic_tm", k, l, d1, d2, d + n + 3)
    block = tasks.blocks("ic_tm", k, l)
    for ids in sample.ids_NxT:
        H = np.zeros((d + n + 3, n))
        H[ids, np.arange(n)] = H[d + np.arange(n), np.arange(n)] = 1
        equal = (ids[:, None] == ids) & (block[:, None] == block) & (ids < d1)
        np.testing.assert_array_equal(np.maximum(H.T @ W @ H, 0), equal)
