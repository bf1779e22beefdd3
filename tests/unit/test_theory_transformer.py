"""The layer of eq. (6): what it computes, that it trains, and that it is read and written like any model."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.errors import SandglassError
from pipeline.models.transformer import theory as model
from pipeline.models.transformer.theory import Spec
from pipeline.store import checkpoints
from pipeline.training import core, ensemble, jobs
from pipeline.training.packing import pack

EQ6 = Spec("eq6", 2, 1, 6, (5, 7), "learned", "none", 1, 5, 4, keys=3, floor=0.1)
SPECS = {
    "eq6": EQ6,
    "eq52": dataclasses.replace(EQ6, block="eq52"),
    "one hidden layer": dataclasses.replace(EQ6, ffn=8, keys=None, layers=1),
    "uniform": dataclasses.replace(EQ6, attention="uniform"),
    "LN_0": dataclasses.replace(EQ6, floor=0.0),
}


@pytest.fixture(params=SPECS.values(), ids=SPECS.keys())
def spec(request: pytest.FixtureRequest) -> Spec:
    return request.param


def weights(spec: Spec, replicas: int = 3) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(7)
    return {n: torch.from_numpy(rng.normal(0, 0.7, (replicas, *s))) for n, s in model.shapes(spec).items()}


def table(spec: Spec) -> torch.Tensor:
    return torch.eye(spec.inputs, spec.width, dtype=torch.float64)


def ids(replicas: int, rows: int, length: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(3).integers(0, 5, (replicas, rows, length)))


def by_hand(spec: Spec, p: dict[str, np.ndarray], tokens: list[int]) -> np.ndarray:
    """Eqs (6) to (10) as printed, with column vectors, one column at a time."""
    m = spec.width
    project = np.eye(m) - np.ones((m, m)) / m
    X = np.eye(m, spec.inputs)[:, tokens]
    for layer in range(spec.layers):
        W_Q, W_K, W_V = (p[f"blocks.{layer}.attn.{name}"].T for name in ("W_Q", "W_K", "W_V"))
        out = np.zeros_like(X)
        for n in range(len(tokens)):
            scores = (W_K @ X[:, : n + 1]).T @ (W_Q @ X[:, n]) * (spec.attention != "uniform")
            weight = np.exp(scores) / np.exp(scores).sum()
            a = W_V @ X[:, : n + 1] @ weight
            a = project @ (a if spec.block == "eq6" else a + X[:, n])
            x = a / max(np.linalg.norm(a), spec.floor) + (X[:, n] if spec.block == "eq6" else 0)
            depth = len(spec.widths) - 1
            for i in range(depth):
                x = p[f"blocks.{layer}.mlp.{i}.W"].T @ x + p[f"blocks.{layer}.mlp.{i}.b"]
                x = np.maximum(x, 0) if i < depth - 1 else x
            out[:, n] = x
        X = out
    return (p["head.W"].T @ X).T


def test_the_layer_is_that_of_the_paper(spec: Spec) -> None:
    params, tokens = weights(spec), ids(3, 2, 7)
    logits, _ = model.forward(spec, params, table(spec), tokens)
    for r in range(3):
        one = {name: value[r].numpy() for name, value in params.items()}
        for b in range(2):
            np.testing.assert_allclose(logits[r, b], by_hand(spec, one, tokens[r, b].tolist()), atol=1e-12)


def test_the_floor_matters_and_zero_stays_zero() -> None:
    a = torch.tensor([[3.0, -3.0], [0.03, -0.03], [2.0, 2.0], [1e-16, -1e-16]], dtype=torch.float64)
    root = 0.5**0.5
    expected = [[root, -root], [0.3, -0.3], [0.0, 0.0], [1e-15, -1e-15]]
    assert torch.allclose(model.layer_norm(a, 0.1), torch.tensor(expected, dtype=torch.float64), atol=1e-18)
    assert torch.equal(model.layer_norm(a, 0.0)[2:], torch.zeros(2, 2, dtype=torch.float64))
    assert torch.allclose(model.layer_norm(a, 0.0)[1], model.layer_norm(a, 0.0)[0])
    a.requires_grad_()
    model.layer_norm(a, 0.1).square().sum().backward()
    assert a.grad is not None and torch.isfinite(a.grad).all()


def test_replicas_segments_and_selection_change_nothing(spec: Spec) -> None:
    params, tokens = weights(spec), ids(1, 2, 8)
    logits, _ = model.forward(spec, params, table(spec), tokens)
    alone = {name: value[1:2] for name, value in params.items()}
    np.testing.assert_allclose(model.forward(spec, alone, table(spec), tokens)[0][0], logits[1], atol=1e-13)
    places = torch.tensor([[9, 3, 3]]).expand(3, -1)
    chosen, _ = model.forward(spec, params, table(spec), tokens, select=places)
    np.testing.assert_allclose(chosen, logits.reshape(3, 16, -1)[:, [9, 3, 3]], atol=1e-13)
    packed = pack(np.array([8, 8]), 16)
    row = torch.zeros(1, 1, 16, dtype=torch.long)
    row.view(-1)[torch.from_numpy(packed.where)] = tokens.reshape(-1)
    segments = torch.from_numpy(packed.segments)[None]
    together, _ = model.forward(spec, params, table(spec), row, segments=segments)
    np.testing.assert_allclose(together.reshape(3, 16, -1)[:, packed.where], logits.reshape(3, 16, -1), atol=1e-13)


def test_what_is_recorded_is_what_was_computed(spec: Spec) -> None:
    params, tokens = weights(spec), ids(3, 2, 6)
    last = f"blocks.{spec.layers - 1}"
    names = [f"{last}.{name}" for name in model.RECORDED]
    logits, activations = model.forward(spec, params, table(spec), tokens, record=names)
    pattern = activations[f"{last}.attn.pattern"]
    assert pattern.shape == (3, 2, 1, 6, 6) and torch.allclose(pattern.sum(-1), torch.ones(3, 2, 1, 6).double())
    assert torch.equal(pattern, pattern.tril())
    np.testing.assert_allclose(
        torch.einsum("rbtm,rmo->rbto", activations[f"{last}.out"], params["head.W"]), logits, atol=1e-12
    )
    if spec.block == "eq6":
        normal = model.layer_norm(activations[f"{last}.attn.out"], spec.floor)
        assert torch.equal(activations[f"{last}.ln"], normal)
    with pytest.raises(SandglassError, match=r"cannot record .*; this model has: blocks\.0\.attn\.pattern"):
        model.forward(spec, params, table(spec), tokens, record=["blocks.9.ln"])


@pytest.mark.parametrize("wrong", [{"block": "gpt"}, {"heads": 2}, {"position": "linear"}])
def test_what_it_cannot_do_is_refused(wrong: dict[str, object]) -> None:
    spec = dataclasses.replace(EQ6, **wrong)  # type: ignore[arg-type]
    with pytest.raises(SandglassError, match="block eq6 or eq52"):
        model.forward(spec, weights(EQ6), table(EQ6), ids(3, 1, 4))


def test_checkpoints(tmp_path: Path) -> None:
    spec, params = EQ6, {name: value.numpy() for name, value in weights(EQ6).items()}
    path = tmp_path / "model.safetensors"
    header = {"spec": dataclasses.asdict(spec)}
    checkpoints.write(path, params | {"table": table(spec).numpy()}, header)
    checkpoint = model.load(path)
    assert checkpoint.spec.widths == spec.widths
    assert torch.equal(
        model.forward(checkpoint.spec, checkpoint.params, checkpoint.table, ids(3, 1, 5))[0],
        model.forward(spec, weights(spec), table(spec), ids(3, 1, 5))[0],
    )
    checkpoints.write(path, params | {"table": table(spec).numpy(), "head.W": params["head.W"][:, 1:]}, header)
    with pytest.raises(SandglassError, match=r"head\.W has shape \(5, 4\), its header says \(6, 4\)"):
        model.load(path)


def test_the_trainer_trains_it(tmp_path: Path) -> None:
    """On strings of two tokens, the second of which follows from the first."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(1, 5, (64, 1))
    data = {
        "ids": np.concatenate([np.zeros((64, 1)), tokens], 1)[None].astype(np.int16),
        "lengths": np.full((1, 64), 2, np.int16),
        "targets": np.concatenate([np.full((64, 1), -1), 4 - tokens], 1)[None].astype(np.int8),
    }
    spec = {
        "block": "eq6",
        "layers": 1,
        "heads": 1,
        "width": 12,
        "ffn": 24,
        "attention": "learned",
        "position": "none",
        "t_max": 1,
        "inputs": 5,
        "outputs": 4,
    }
    header = jobs.Header(
        model="transformer/theory",
        spec=spec,
        objective="next_token",
        seed=1,
        settings={"weight": 0.0, "prefix_first": False},
        study="dyck",
        stream="s",
        corpus=[0, 0],
        lr=[0.02, 0.02],
        steps=60,
        batch=32,
        schedule="constant",
        betas=[0.9, 0.999],
        eps=1e-8,
        clip=0.0,
        precision="fp32",
        log_every=20,
    )
    ensemble.write_job(tmp_path / "job.safetensors", header, data, np.eye(5, 12, dtype=np.float32))
    job = jobs.TrainingJob(tmp_path / "job.safetensors")
    state = core.train_chunk(job, [0, 1], torch.device("cpu"))
    losses = torch.stack(state.curves["loss"])
    assert (losses[-1] < 0.1).all() and (state.diverged_at == -1).all()
    assert not torch.equal(state.flat[0], state.flat[1])
