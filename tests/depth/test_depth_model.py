"""The attention-only model: equal to the formula, column by column; replicas do not meet; starts as the paper says."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.access.replica import Replica
from pipeline.errors import SandglassError
from pipeline.models.attention_only import network as attention_only
from pipeline.models.attention_only.network import Spec
from pipeline.store import checkpoints

SPECS = {
    "one layer, one head": Spec(1, (1,), "relu", 9, 4, 5, 3, "random"),
    "one layer, three heads": Spec(1, (3,), "relu", 12, 4, 5, 3, "random"),
    "three layers": Spec(3, (1, 2, 3), "relu", 11, 4, 5, 2, "random"),
    "softmax": Spec(2, (2, 1), "softmax", 11, 4, 5, 2, "random"),
}


@pytest.fixture(params=SPECS.values(), ids=SPECS.keys())
def spec(request: pytest.FixtureRequest) -> Spec:
    return request.param


def weights(spec: Spec, replicas: int = 3) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(7)
    return {n: torch.from_numpy(rng.normal(0, 0.5, (replicas, *s))) for n, s in attention_only.shapes(spec).items()}


def table(spec: Spec) -> torch.Tensor:
    return torch.from_numpy(attention_only.embedding(spec)).double()


def ids(spec: Spec, replicas: int = 3, length: int | None = None) -> torch.Tensor:
    shape = (replicas, 6, length or spec.length)
    return torch.from_numpy(np.random.default_rng(3).integers(0, spec.inputs, shape))


def by_hand(spec: Spec, p: dict[str, np.ndarray], tokens: list[int]) -> tuple[np.ndarray, list[np.ndarray], list]:
    """Eqs (2), (3) for one sequence, one key and query at a time, columns as in the paper."""
    H = np.zeros((spec.width, len(tokens)))
    for j, token in enumerate(tokens):
        H[token, j] = H[spec.inputs + j, j] = 1
    patterns, outs = [], []
    for layer, heads in enumerate(spec.heads):
        new, weights = H.copy(), np.zeros((heads, len(tokens), len(tokens)))
        for i in range(heads):
            W, V = p[f"blocks.{layer}.W"][i], p[f"blocks.{layer}.V"][i]
            for q in range(len(tokens)):
                scores = np.array([H[:, j] @ W @ H[:, q] for j in range(len(tokens))])
                if spec.attention == "relu":
                    weights[i, :, q] = np.maximum(scores, 0)
                else:
                    weights[i, :, q] = np.exp(scores) / np.exp(scores).sum()
                for j in range(len(tokens)):
                    new[:, q] += V @ H[:, j] * weights[i, j, q] / heads
        H = new
        patterns.append(weights)
        outs.append(H.T)
    return p["head.W"].T @ H[:, -1], patterns, outs


def test_forward_is_the_formula(spec: Spec) -> None:
    p, x = weights(spec), ids(spec)
    names = [f"blocks.{layer}.{name}" for layer in range(spec.layers) for name in attention_only.RECORDED]
    logits, recorded = attention_only.forward(spec, p, table(spec), x, record=names)
    for r in range(3):
        mine = {name: value[r].numpy() for name, value in p.items()}
        for b in range(x.shape[1]):
            expected, patterns, outs = by_hand(spec, mine, x[r, b].tolist())
            np.testing.assert_allclose(logits[r, b], expected, rtol=1e-9, atol=1e-9)
            for layer in range(spec.layers):
                np.testing.assert_allclose(
                    recorded[f"blocks.{layer}.attn.pattern"][r, b], patterns[layer], rtol=1e-9, atol=1e-9
                )
                np.testing.assert_allclose(recorded[f"blocks.{layer}.out"][r, b], outs[layer], rtol=1e-9, atol=1e-9)


def test_unrecorded_columns_change_nothing(spec: Spec) -> None:
    p, x = weights(spec), ids(spec)
    alone = attention_only.forward(spec, p, table(spec), x)[0]
    last = f"blocks.{spec.layers - 1}.attn.pattern"
    seen, recorded = attention_only.forward(spec, p, table(spec), x, record=[last])
    torch.testing.assert_close(alone, seen, rtol=1e-12, atol=1e-12)
    assert list(recorded) == [last]


def test_replicas_do_not_meet(spec: Spec) -> None:
    p, x = weights(spec), ids(spec, replicas=1)
    together = attention_only.forward(spec, p, table(spec), x)[0]
    for r in range(3):
        one = attention_only.forward(spec, {n: v[r : r + 1] for n, v in p.items()}, table(spec), x)[0]
        torch.testing.assert_close(together[r], one[0], rtol=1e-12, atol=1e-12)


def test_shorter_inputs_take_the_first_positions_and_longer_ones_are_refused(spec: Spec) -> None:
    x = ids(spec, replicas=1, length=spec.length - 1)
    logits = attention_only.forward(spec, weights(spec), table(spec), x)[0]
    mine = {name: value[0].numpy() for name, value in weights(spec).items()}
    np.testing.assert_allclose(logits[0, 0], by_hand(spec, mine, x[0, 0].tolist())[0], rtol=1e-9)
    with pytest.raises(SandglassError, match="5 tokens, but the model has 4 positions"):
        attention_only.forward(spec, weights(spec), table(spec), ids(spec, length=5))


def test_float32_gives_float32(spec: Spec) -> None:
    p = {name: value.float() for name, value in weights(spec).items()}
    logits = attention_only.forward(spec, p, table(spec).float(), ids(spec))[0]
    exact = attention_only.forward(spec, weights(spec), table(spec), ids(spec))[0]
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits.double(), exact, rtol=1e-3, atol=1e-3)


def test_initial_weights_are_the_papers() -> None:
    spec = Spec(2, (2, 3), "relu", 40, 10, 20, 7, "task")
    drawn = {
        init: attention_only.initial(dataclasses.replace(spec, init=init), np.random.default_rng(0))
        for init in ("memorization", "task", "random")
    }
    for init, values in drawn.items():
        assert {name: value.shape for name, value in values.items()} == attention_only.shapes(spec)
        if init != "random":
            assert all((values[f"blocks.{layer}.V"] == np.eye(40)).all() for layer in range(2))
            assert values["head.W"].min() >= 0 and 0.9 < values["head.W"].max() < 1
    task, memorization = drawn["task"], drawn["memorization"]
    assert not task["blocks.0.W"].any() and 0.019 < task["blocks.1.W"].max() < 0.02
    assert all(0.99 < memorization[f"blocks.{layer}.W"].max() < 1 for layer in range(2))
    assert all(abs(value.std() - 40**-0.5) < 0.02 and abs(value.mean()) < 0.02 for value in drawn["random"].values())


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    spec = SPECS["three layers"]
    with pytest.raises(SandglassError, match=r"heads: expected one number for each of 3 layers, got \(1, 2\)"):
        dataclasses.replace(spec, heads=[1, 2])
    with pytest.raises(SandglassError, match="width 8 is less than 5 tokens and 4 positions need"):
        dataclasses.replace(spec, width=8)
    with pytest.raises(SandglassError, match=r"cannot record \['head'\]; this model has: blocks.0.attn.pattern"):
        attention_only.forward(spec, weights(spec), table(spec), ids(spec), record=["head"])
    arrays = {name: value.float().numpy() for name, value in weights(spec).items()}
    header = {"spec": dataclasses.asdict(spec), "run": "depth-x"}
    path = tmp_path / "model.safetensors"
    checkpoints.write(path, arrays | {"table": attention_only.embedding(spec)}, header)
    loaded = attention_only.load(path)
    assert loaded.spec == spec and loaded.header["run"] == "depth-x"
    torch.testing.assert_close(loaded.params["head.W"], weights(spec)["head.W"].float())
    checkpoints.write(path, arrays | {"table": arrays["head.W"], "head.W": arrays["blocks.0.W"]}, header)
    with pytest.raises(SandglassError, match=r"head\.W has shape"):
        attention_only.load(path)


def test_a_trained_replica_is_a_module(tmp_path: Path) -> None:
    spec = SPECS["three layers"]
    arrays = {name: value.float().numpy() for name, value in weights(spec).items()}
    entry = {"model": "attention_only/network", "replicas": 3, "dataset": "depth-x-data"}
    header = {
        "spec": dataclasses.asdict(spec),
        "run": "depth-x",
        "study": "depth",
        "scale": "smoke",
        "entry": entry,
        "params_hash": "0",
        "diverged": {},
        "lr": [0.01] * 3,
    }
    path = tmp_path / "model.safetensors"
    checkpoints.write(path, arrays | {"table": attention_only.embedding(spec)}, header)
    model = Replica.load(path, 1)
    expected = attention_only.forward(spec, weights(spec), table(spec), ids(spec, 1))[0][1]
    torch.testing.assert_close(model(ids(spec, 1)[0]).double(), expected, rtol=1e-3, atol=1e-3)
    maps = model.attention_patterns(ids(spec, 1)[0])
    assert [tuple(map_.shape[1:]) for map_ in maps] == [(1, 4, 4), (2, 4, 4), (3, 4, 4)]
    assert model.labels == ["0", "1"]
    with pytest.raises(SandglassError, match=r"read numbers of tokens, not 'A='; .* dataset depth-x-data"):
        model.encode("A=")
