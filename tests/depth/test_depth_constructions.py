"""Models with set weights: of the stated size, right on every input, and right because of these weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.languages import sequence_tasks as tasks
from pipeline.studies.depth import constructions
from pipeline.studies.depth.constructions import Model
from pipeline.studies.depth.measures import attention

RNG = np.random.default_rng(5)


def test_a_tie_is_wrong() -> None:
    outputs = np.array([[[1.0, 2.0, 0.0], [3.0, 3.0, 0.0], [0.0, 0.0, 4.0]]])
    labels = np.array([1, 0, 0])
    assert constructions.margin(outputs, labels).tolist() == [[1.0, 0.0, -4.0]]
    assert constructions.accuracy(outputs, labels) == pytest.approx(1 / 3)


def test_an_output_that_is_not_a_number_leaves_no_share() -> None:
    outputs = np.array([[[1.0, 2.0], [np.nan, 0.0]]])
    assert np.isnan(constructions.accuracy(outputs, np.array([1, 1])))


def test_sizes_are_those_of_the_theorems() -> None:
    ids = np.column_stack([np.arange(12).reshape(6, 2) % 5, np.full(6, 5)])
    n, d = 3, 6
    built = constructions.memorizer(ids, np.arange(6), d).spec
    assert (built.heads, built.width) == ((n,), max(n * d, d + n))
    built = constructions.reasoner(4, 10, 7).spec
    assert (built.heads, built.width) == ((1, 1), 18 + 3 * 4 + 2)
    built = constructions.generalizer(tasks.templates(3), 10).spec
    assert (built.heads, built.width, built.outputs) == ((1, 1), 11 + 4, 5)
    k, length = 3, 4
    built = constructions.contextual_generalizer(k, length, 10, 7).spec
    assert (built.heads, built.width) == ((1, 1, 2 * length), 18 + (k + 1) * (length + 2) - 1 + length + 2)
    assert [constructions.chain_reasoner(3, 3, 8, merged).spec.layers for merged in (False, True)] == [6, 4]


@settings(max_examples=15, deadline=None)
@given(k=st.integers(1, 6), seed=st.integers(0, 2**32 - 1))
def test_reasoner_matches_the_pair_of_the_question(k: int, seed: int) -> None:
    sample = tasks.question_answering(np.random.default_rng(seed), 20, k, 8, 9)
    built = constructions.reasoner(k, 8, 9)
    outputs, recorded = built.run(sample.ids_NxT, ["blocks.1.attn.pattern"])
    assert constructions.accuracy(outputs, sample.label_N) == 1
    seen = recorded["blocks.1.attn.pattern"][0, :, 0, :, -1] > 0
    block = np.arange(3 * k + 2) // 3
    assert (seen == ((block == sample.right_N[:, None]) | (block == k))).all()


@settings(max_examples=15, deadline=None)
@given(length=st.integers(2, 5), seed=st.integers(0, 2**32 - 1))
def test_generalizer_needs_one_sequence_of_each_template(length: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sample = tasks.template_matching(rng, 60, length, (0, 12), 12, None)
    built = constructions.generalizer(tasks.templates(length), 12)
    assert constructions.accuracy(built.run(sample.ids_NxT)[0], sample.label_N) == 1


@settings(max_examples=15, deadline=None)
@given(k=st.integers(1, 4), length=st.integers(3, 5), seed=st.integers(0, 2**32 - 1))
def test_contextual_generalizer_leaves_the_right_answer_alone(k: int, length: int, seed: int) -> None:
    sample = tasks.contextual(np.random.default_rng(seed), 20, k, length, 9, 8)
    outputs = constructions.contextual_generalizer(k, length, 9, 8).run(sample.ids_NxT)[0][0]
    right = np.eye(outputs.shape[1])[sample.label_N] > 0
    assert (outputs[right] == 1).all() and (outputs[~right] <= 0).all()


@settings(max_examples=15, deadline=None)
@given(hops=st.integers(1, 4), merged=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_chain_reasoner_follows_its_chain_only(hops: int, merged: bool, seed: int) -> None:
    sample = tasks.nested(np.random.default_rng(seed), 20, hops, 4, 2, 12)
    outputs = constructions.chain_reasoner(8, hops, 12, merged).run(sample.ids_NxT)[0][0]
    assert (outputs == np.eye(13)[sample.label_N]).all()


@pytest.mark.parametrize("form", ["copy", "rows"])
def test_printed_details_of_theorem_6_go_wrong(form: str) -> None:
    sample = tasks.contextual(np.random.default_rng(0), 100, 4, 3, 9, 9)
    outputs = constructions.contextual_generalizer(4, 3, 9, 9, form).run(sample.ids_NxT)[0]
    assert constructions.accuracy(outputs, sample.label_N) < 0.95


@pytest.mark.parametrize("name", ["blocks.0.W", "blocks.1.W", "blocks.2.W", "blocks.0.V", "blocks.1.V", "blocks.2.V"])
def test_every_part_is_needed(name: str) -> None:
    sample = tasks.contextual(np.random.default_rng(0), 100, 3, 3, 9, 9)
    built = constructions.contextual_generalizer(3, 3, 9, 9)
    without = Model(built.spec, built.weights | {name: 0 * built.weights[name]})
    assert constructions.accuracy(built.run(sample.ids_NxT)[0], sample.label_N) == 1
    assert constructions.accuracy(without.run(sample.ids_NxT)[0], sample.label_N) < 0.6


def test_runs_in_chunks_are_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    models = constructions.random_models(np.random.default_rng(0), 2, 3, 5, 4)
    ids = RNG.integers(5, size=(10, 4))
    whole, recorded = models.run(ids, ["blocks.0.out"])
    monkeypatch.setattr(constructions, "CHUNK", 3)
    again, parts = models.run(ids, ["blocks.0.out"])
    np.testing.assert_allclose(whole, again, rtol=1e-12)
    np.testing.assert_allclose(recorded["blocks.0.out"], parts["blocks.0.out"], rtol=1e-12)
    np.testing.assert_allclose(constructions.last_columns(models, ids) @ models.weights["head.W"], whole)


def test_classifiers_are_found_where_there_are_any() -> None:
    square = np.array([[1.0, 0, 0], [1, 1, 1], [1, 0, 1], [1, 1, 0]])
    sides = np.array([1, 1, -1, -1])
    assert constructions.separator(square, sides) is None  # exclusive or
    shares = constructions.certificate(square, sides)
    assert shares is not None
    assert shares == pytest.approx([0.25] * 4)
    assert (shares * sides) @ square == pytest.approx([0, 0, 0])
    assert constructions.certificate(square[:3], sides[:3]) is None
    normal = constructions.separator(square[:3], sides[:3])
    assert normal is not None and (sides[:3] * (square[:3] @ normal) > 0).all()


def test_substitutions_are_all_there_are() -> None:
    substitutions = constructions.substitutions(np.array([0, 1, 0]), 4)
    assert len({tuple(row) for row in substitutions.tolist()}) == len(substitutions) == 4 * 3
    assert (tasks.template_of(substitutions[:, :3]) == 2).all() and (substitutions[:, 3] == 4).all()


@pytest.mark.parametrize("task", ["ic_qa", "tm", "ic_tm"])
def test_maps_that_trained_ones_are_compared_with_are_those_of_the_constructions(task: str) -> None:
    """DEP-A1: the analysis may not use the constructions, so it has their patterns by formula."""
    rng, k, l = np.random.default_rng(2), 2, 3
    built, ids = {
        "ic_qa": lambda: (constructions.reasoner(k, 8, 8), tasks.question_answering(rng, 30, k, 8, 8).ids_NxT),
        "tm": lambda: (
            constructions.generalizer(tasks.templates(l), 8),
            tasks.template_matching(rng, 30, l, (0, 8), 8, None).ids_NxT,
        ),
        "ic_tm": lambda: (
            constructions.contextual_generalizer(k, l, 8, 8),
            tasks.contextual(rng, 30, k, l, 8, 8).ids_NxT,
        ),
    }[task]()
    names = [f"blocks.{layer}.attn.pattern" for layer in range(2)]
    recorded = built.run(ids, names)[1]
    expected = attention.constructed(task, k, l, built.spec.layers, ids)
    for layer, name in enumerate(names):
        pattern, formula = recorded[name][0, :, 0], expected[layer]
        assert formula is not None
        last = layer == built.spec.layers - 1  # nothing but the last query is read
        np.testing.assert_array_equal(pattern[..., -1] if last else pattern, formula[..., -1] if last else formula)
