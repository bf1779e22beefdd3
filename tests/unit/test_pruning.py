"""Pruning a random Transformer: subsets are the best there are, masks legal, and what is left is the target."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pipeline.errors import SandglassError
from pipeline.models.transformer import theory as theory_transformer
from pipeline.studies.dyck.exact import pruning

SHAPE = pruning.Shape(m=3, m_a=2, w=4, layers=1, n=10, m_large=16)
FLOOR = 0.1


@pytest.fixture(scope="module")
def parent() -> pruning.Parent:
    return pruning.Parent(SHAPE, 1, ("test",))


@pytest.fixture(scope="module")
def target() -> list[dict[str, np.ndarray]]:
    return pruning.random_target(SHAPE, np.random.default_rng(0))


@pytest.fixture(scope="module")
def pruned(parent: pruning.Parent, target: list[dict[str, np.ndarray]]) -> pruning.Pruned:
    return pruning.prune(parent, target)


# Subset sums


def brute_force(values: np.ndarray, target: float) -> float:
    """The smallest distance of any subset's sum from ``target``."""
    subsets = np.array(list(itertools.product([0, 1], repeat=len(values))))
    return float(np.abs(subsets @ values - target).min())


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 12).flatmap(lambda n: st.lists(st.floats(-2, 2, width=32), min_size=n, max_size=n)),
    st.floats(-5, 5, width=32),
)
def test_subset_sums_are_the_best_there_are(values: list[float], target: float) -> None:
    rows = np.array([values, [2 * value for value in values]])
    subsets, errors = pruning.subset_sums(rows, np.array([target, 0.0]))
    assert errors == pytest.approx([brute_force(rows[0], target), 0.0], abs=1e-12)
    assert np.abs((rows * subsets).sum(1) - [target, 0.0]) == pytest.approx(errors, abs=1e-12)


def test_subset_sums_do_not_depend_on_the_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    values, targets = rng.normal(size=(150, 11)), rng.normal(size=150)
    sums = []
    for granted in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", granted)
        assert pruning.cores() == int(granted)
        sums.append(pruning.subset_sums(values, targets))
    for first, second in zip(*sums, strict=True):
        assert first.tobytes() == second.tobytes()


# Products


@pytest.mark.parametrize("signs", [pruning.EITHER, pruning.POSITIVE, pruning.LINEAR])
def test_a_pruned_product_is_the_linear_map(signs: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    first, second = rng.uniform(-1, 1, (600, 5)), rng.uniform(-1, 1, (7, 600))
    matrix = rng.uniform(-0.7, 0.7, (3, 2))
    matrix[1, 0] = 0
    outputs, inputs = np.array([6, 0, 3]), np.array([4, 1])
    kept_first, kept_second, worst = pruning.prune_product(first, second, matrix, outputs, inputs, signs, 12, rng)
    x = rng.normal(size=(5, 40))
    if signs == pruning.POSITIVE:
        x = np.abs(x)
    hidden = (first * kept_first) @ x
    product = (second * kept_second) @ (hidden if signs == pruning.LINEAR else np.maximum(hidden, 0))
    full = np.zeros((7, 5))
    full[np.ix_(outputs, inputs)] = matrix
    assert np.abs(product - full @ x).max() <= worst * np.abs(x[inputs]).sum(0).max() + 1e-12
    assert 0 < worst < 0.05
    assert (kept_first.sum(1) <= 1).all()  # a hidden unit serves one input coordinate
    assert kept_first.sum() == 12 * 2 * len(signs)
    factors = np.abs(first[kept_first])
    assert factors.min() >= pruning.SMALLEST


def test_too_few_hidden_units_are_refused() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.uniform(-1, 1, (30, 2)), rng.uniform(-1, 1, (2, 30))
    where = np.arange(2)
    with pytest.raises(SandglassError, match="hidden units are left for the 12 candidates"):
        pruning.prune_product(first, second, np.eye(2), where, where, pruning.EITHER, 12, rng)


def test_a_parent_without_room_for_values_is_refused() -> None:
    weights = np.full((6, 6), 0.9)
    assert pruning.preparation(weights, np.eye(3))[1].tolist() == [3, 4, 5]
    weights[2, 3:] = 0.4
    with pytest.raises(SandglassError, match="width 6 leaves no column for its values"):
        pruning.preparation(weights, np.eye(3))


# Networks


def test_a_pruned_network_computes_the_target_network(parent: pruning.Parent) -> None:
    rng = np.random.default_rng(2)
    first, second = rng.uniform(-0.5, 0.5, (4, 3)), rng.uniform(-0.5, 0.5, (3, 4))
    mask = pruning.Mask(parent, 0)
    mask.network(first, second, np.arange(3))
    x = pruning.random_inputs(3, 50, 1, rng)
    outputs = pruning.network(mask.pruned(), pruning.padded(x, 16))
    targets = np.einsum("oh,hbn->obn", second, np.maximum(np.einsum("hi,ibn->hbn", first, x), 0))
    assert np.abs(outputs[:3] - targets).max() < 30 * mask.worst
    assert np.abs(outputs[3:]).max() == 0


def test_a_pruned_form_is_the_bilinear_form(parent: pruning.Parent) -> None:
    form = np.random.default_rng(2).uniform(-0.7, 0.7, (3, 3))
    mask = pruning.Mask(parent, 0)
    mask.bilinear(form)
    left = mask.pruned()
    product = (left["W_K"].T @ left["W_Q"]).toarray()
    assert np.abs(product[:3, :3] - form).max() == pytest.approx(mask.worst, abs=1e-12)
    assert np.abs(product[3:]).max() == np.abs(product[:, 3:]).max() == 0


def test_the_pruned_parent_computes_the_target(target: list[dict[str, np.ndarray]], pruned: pruning.Pruned) -> None:
    x = pruning.random_inputs(3, 40, 6, np.random.default_rng(1))
    assert pruning.approximation_errors(target, pruned, x, FLOOR).max() < 0.05
    other = pruning.random_target(SHAPE, np.random.default_rng(9))
    assert pruning.approximation_errors(other, pruned, x, FLOOR).max() > 0.3


def test_identity_layers_change_nothing_and_hosts_can_be_anywhere(
    parent: pruning.Parent, target: list[dict[str, np.ndarray]]
) -> None:
    x = pruning.random_inputs(3, 20, 5, np.random.default_rng(1))
    for host in ((1, 2), (2, 3)):
        moved = pruning.prune(parent, target, [host])
        assert pruning.illegal(parent, moved) == 0
        assert pruning.approximation_errors(target, moved, x, FLOOR).max() < 0.05
        for index in set(range(4)) - set(host):
            alone = pruning.Pruned([moved.layers[index]], 0.0)
            output, _ = pruning.run(alone.condensed(), pruning.padded(x, 16), FLOOR)
            assert np.abs(output - pruning.padded(x, 16)).max() < 0.05


def test_condensed_layers_compute_the_same(pruned: pruning.Pruned) -> None:
    x = pruning.padded(pruning.random_inputs(3, 5, 4, np.random.default_rng(1)), 16)
    whole, patterns = pruning.run(pruned.layers, x, FLOOR)
    small, same = pruning.run(pruned.condensed(), x, FLOOR)
    assert np.abs(whole - small).max() < 1e-12
    assert max(np.abs(a - b).max() for a, b in zip(patterns, same, strict=True)) < 1e-12
    assert sum(matrix.size for layer in pruned.condensed() for matrix in layer.values()) < SHAPE.weights / 10


def test_the_forward_pass_is_that_of_the_theory_transformer(target: list[dict[str, np.ndarray]]) -> None:
    spec = theory_transformer.Spec("eq6", 1, 1, 3, 4, "learned", "none", 1, inputs=6, outputs=3, keys=2, floor=FLOOR)
    table = np.random.default_rng(4).normal(size=(6, 3))
    params = {f"blocks.0.attn.{name}": target[0][name].T for name in ("W_Q", "W_K", "W_V")}
    params |= {f"blocks.0.mlp.{i}.W": target[0][f"W_{i + 1}"].T for i in (0, 1)}
    params |= {"blocks.0.mlp.0.b": np.zeros(4), "blocks.0.mlp.1.b": np.zeros(3), "head.W": np.eye(3)}
    ids = np.random.default_rng(5).integers(0, 6, (7, 9))
    tensors = {name: torch.from_numpy(np.array(value))[None] for name, value in params.items()}
    logits, recorded = theory_transformer.forward(
        spec, tensors, torch.from_numpy(table), torch.from_numpy(ids)[None], record=["blocks.0.attn.pattern"]
    )
    output, patterns = pruning.run(target, table[ids].transpose(2, 0, 1), FLOOR)
    assert np.abs(logits[0].numpy() - output.transpose(1, 2, 0)).max() < 1e-12
    seen = recorded["blocks.0.attn.pattern"][0, :, 0].numpy()
    assert np.abs(seen - patterns[0].transpose(0, 2, 1)).max() < 1e-12


# Legality


def test_every_weight_is_the_parents_or_zero(parent: pruning.Parent, pruned: pruning.Pruned) -> None:
    assert pruning.illegal(parent, pruned) == 0
    assert 0 < pruned.kept < SHAPE.weights / 100
    first = parent.layer(0)["W_1"]
    assert np.abs(first).max() <= 1 and abs(first.mean()) < 0.05 and abs(first.var() - 1 / 3) < 0.02


def changed(pruned: pruning.Pruned, index: int, name: str, matrix: object) -> pruning.Pruned:
    layers = [dict(layer) for layer in pruned.layers]
    layers[index][name] = matrix
    return pruning.Pruned(layers, pruned.worst)


def test_an_illegal_mask_is_found(parent: pruning.Parent, pruned: pruning.Pruned) -> None:
    weights = pruned.layers[1]["W_2"]
    nudged = weights.copy()
    nudged.data[0] = np.nextafter(nudged.data[0], 2)  # by one bit
    assert pruning.illegal(parent, changed(pruned, 1, "W_2", nudged)) == 1
    zeroed = weights.copy()
    zeroed.data[:] = 0
    assert pruning.illegal(parent, changed(pruned, 1, "W_2", zeroed)) == 0
    moved = sparse.csr_array(weights.toarray()[::-1])
    assert pruning.illegal(parent, changed(pruned, 1, "W_2", moved)) > 0
    assert pruning.illegal(parent, changed(pruned, 1, "W_2", weights[:3])) > 0
    assert pruning.illegal(parent, pruning.Pruned(pruned.layers[:3], 0.0)) == 1
    other = pruning.Parent(SHAPE, 2, ("test",))
    assert pruning.illegal(other, pruned) == pruned.kept


def test_a_parent_is_drawn_again_to_the_same_bits_and_knows_no_target(parent: pruning.Parent) -> None:
    again = pruning.Parent(SHAPE, 1, ("test",))
    for name, matrix in parent.layer(2).items():
        assert matrix.shape == SHAPE.matrices[name]
        assert matrix.tobytes() == again.layer(2)[name].tobytes()
    assert parent.layer(0)["W_V"].tobytes() != parent.layer(1)["W_V"].tobytes()
    total = sum(matrix.size for index in range(len(parent)) for matrix in parent.layer(index).values())
    assert total == SHAPE.weights


def test_widths_are_those_of_the_chapter() -> None:
    shape = pruning.Shape(m=4, m_a=2, w=8, layers=2, n=24, m_large=16)
    assert (shape.w_large, shape.ma_large) == (1596, 231)
    assert shape.weights == pytest.approx(4.1e7, rel=0.01)
