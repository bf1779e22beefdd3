"""Parities: exact laws by enumeration, signs of labels, the tree, monomials and correlations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pipeline.errors import SandglassError
from pipeline.languages import parity
from pipeline.studies.distillation import inputs


def every(d: int) -> np.ndarray:
    return np.array(list(itertools.product([0, 1], repeat=d)), np.uint8)


def test_class_0_of_a_sparse_parity_is_the_product_plus_one() -> None:
    bits = every(6)
    products = parity.signs(bits)[:, :3].prod(1)
    assert ((parity.labels(bits, 3, 1) == 0) == (products == 1)).all()


@pytest.mark.parametrize(("d", "k", "depth"), [(9, 3, 1), (4, 4, 1), (10, 3, 2), (14, 2, 3), (8, 1, 3)])
def test_classes_are_equally_frequent_and_products_of_their_own(d: int, k: int, depth: int) -> None:
    bits = every(d)
    labels = parity.labels(bits, k, depth)
    assert np.bincount(labels).tolist() == [2 ** (d - depth)] * 2**depth
    products = parity.node_products(bits, k, depth)
    for leaf in range(2**depth):
        values = products[labels == leaf][:, [node - 1 for node in parity.leaf_nodes(leaf, depth)]]
        assert len(np.unique(values, axis=0)) == 1  # a class depends on the parities of its path, and on all of them
        if depth > 1:
            assert int("".join("0" if negative else "1" for negative in values[0]), 2) == leaf


def test_the_tree_is_walked_as_the_source_draws_it() -> None:
    """Class 0 of three levels goes by T_1, T_2, T_4: signs 1-5, 6-10, 16-20 of its Figure 4.20."""
    places = [parity.node_places(node, 5) for node in parity.leaf_nodes(0, 3)]
    assert places == [list(range(5)), list(range(5, 10)), list(range(15, 20))] and parity.need(5, 3) == 35
    bits = np.zeros((2, 100), np.uint8)
    bits[1, 0] = 1  # T_1 is -1: left, then right twice
    assert parity.labels(bits, 5, 3).tolist() == [7, 3]


def test_strings_are_fair_and_do_not_depend_on_how_many_follow() -> None:
    bits = parity.sample(np.random.default_rng(0), (20_000,), 13)
    assert bits.shape == (20_000, 13) and set(np.unique(bits)) == {0, 1}
    bound = 5 / math.sqrt(20_000)
    signs = parity.signs(bits)
    assert np.abs(signs.mean(0)).max() < bound
    pairs = [signs[:, i] * signs[:, j] for i, j in itertools.combinations(range(13), 2)]
    assert np.abs(np.mean(pairs, 1)).max() < bound
    more = parity.sample(np.random.default_rng(0), (30_000,), 13)
    assert (more[:20_000] == bits).all()


def test_monomials_on_and_off_the_support() -> None:
    assert len(parity.support_monomials([0, 1, 2, 3], 3)) == 4
    rng = np.random.default_rng(0)
    assert parity.other_monomials(rng, [0, 1], 5, 1, 3) == [(2,), (3,), (4,)]
    monomials = parity.other_monomials(rng, [0, 1, 2], 12, 2, 40)
    assert len(set(monomials)) == 40 and all(max(places) > 2 and len(set(places)) == 2 for places in monomials)


def test_correlations_are_fourier_coefficients() -> None:
    bits = every(6)
    signs = parity.signs(bits).astype(float)
    p = 0.5 + 0.2 * signs[:, 0] * signs[:, 2] - 0.1 * signs[:, 4]
    monomials = [(0, 2), (4,), (1,), (0, 2, 4)]
    correlations = parity.correlations(np.stack([p, p + 0.1]), parity.characters(bits, monomials))
    np.testing.assert_allclose(correlations, [[0.2, 0.1, 0, 0]] * 2, atol=1e-12)
    inside, outside = np.array([[0.3, 0.1, 0.2]]), np.array([[0.0, 0.1]])
    assert parity.separation(inside, outside)[0] == pytest.approx(0.2 / 0.095)


def test_strings_and_sentences_of_a_reader_are_encoded() -> None:
    transformer = {"model": "distillation/transformer", "language": "parity"}
    mlp = {"model": "distillation/mlp", "language": "parity"}
    bert = {"model": "distillation/transformer", "language": "pcfg"}
    assert inputs.encode(transformer, "+-", "--").tolist() == [[0, 1], [1, 1]]
    assert inputs.encode(bert, "1_", "32").tolist() == [[3, 0, 6], [3, 2, 1]]
    assert inputs.labels(bert, 8)[:3] == ["1", "2", "3"] and inputs.labels(mlp, 2) == ["+", "-"]
    for entry, wrong in ((mlp, "x"), (bert, "+"), (transformer, "1")):
        with pytest.raises(SandglassError, match=f"symbol '[{wrong}]' is not in the alphabet"):
            inputs.encode(entry, wrong)
        with pytest.raises(SandglassError, match="different lengths"):
            inputs.encode(entry, *(("1", "12") if entry is bert else ("+", "+-")))
