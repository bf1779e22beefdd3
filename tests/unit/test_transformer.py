"""The model: patterns are its real internals, replicas do not meet, packing and padding change nothing."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.errors import SandglassError
from pipeline.models.transformer import decoder as transformer
from pipeline.models.transformer.decoder import Spec
from pipeline.store import checkpoints
from pipeline.training.packing import pack

GPT = Spec("gpt", 2, 1, 50, 50, "learned", "none", 6000, 5, 4)
SPECS = {
    "gpt": GPT,
    "wide": dataclasses.replace(GPT, width=200, ffn=200),
    "five heads": dataclasses.replace(GPT, heads=5, ffn=30),
    "linear position": dataclasses.replace(GPT, position="linear", t_max=28),
    "uniform": dataclasses.replace(GPT, attention="uniform"),
    "resln": dataclasses.replace(GPT, block="resln", layers=3),
    "no skip": dataclasses.replace(GPT, block="no_skip", heads=2),
    "stripped": dataclasses.replace(GPT, block="stripped", layers=1, ffn=0),
}


def weights(spec: Spec, replicas: int = 3, dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    """Random weights far from initialisation, so that attention is not flat."""
    rng = np.random.default_rng(7)
    shapes = transformer.shapes(spec)
    return {n: torch.from_numpy(rng.normal(0, 0.4, (replicas, *s))).to(dtype) for n, s in shapes.items()}


def table(spec: Spec) -> torch.Tensor:
    return torch.eye(spec.inputs, spec.width, dtype=torch.float64)


def ids(replicas: int, rows: int, length: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(3).integers(0, 5, (replicas, rows, length)))


@pytest.fixture(params=SPECS.values(), ids=SPECS.keys())
def spec(request: pytest.FixtureRequest) -> Spec:
    return request.param


def layer_norm(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + transformer.LN_EPS) * w + b


def by_hand(
    spec: Spec, p: dict[str, np.ndarray], tokens: list[int], instead: dict[int, np.ndarray] | None = None
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Chapter section 3.2 in numpy, one replica, one sequence, one query at a time; ``instead``: layer -> pattern."""
    x = np.eye(spec.inputs, spec.width)[tokens]
    if spec.position == "linear":
        x[:, -1] += np.arange(len(tokens)) / spec.t_max
    d, dh = spec.width, spec.width // spec.heads
    patterns = []
    for layer in range(spec.layers):
        q, k, v = np.split(x @ p[f"blocks.{layer}.attn.W_QKV"] + p[f"blocks.{layer}.attn.b_QKV"], 3, axis=-1)
        pattern = np.zeros((spec.heads, len(tokens), len(tokens)))
        mixed = np.zeros((len(tokens), d))
        for h in range(spec.heads):
            cut = slice(h * dh, (h + 1) * dh)
            for i in range(len(tokens)):
                query = q[i, cut] * (spec.attention == "learned")
                scores = np.array([query @ k[j, cut] / math.sqrt(dh) for j in range(i + 1)])
                share = np.exp(scores - scores.max())
                pattern[h, i, : i + 1] = share / share.sum()
        pattern = pattern if instead is None else instead.get(layer, pattern)
        for h in range(spec.heads):
            cut = slice(h * dh, (h + 1) * dh)
            mixed[:, cut] = pattern[h] @ v[:, cut]
        patterns.append(pattern)
        at = f"blocks.{layer}"
        if spec.block == "stripped":
            x = layer_norm(mixed, p[f"{at}.ln.w"], p[f"{at}.ln.b"])
            continue
        attended = mixed @ p[f"{at}.attn.W_O"] + p[f"{at}.attn.b_O"]
        if spec.block == "no_skip":
            z, x = x + layer_norm(attended, p[f"{at}.ln.w"], p[f"{at}.ln.b"]), np.zeros_like(x)
        else:
            x = x + attended
            z = layer_norm(x, p[f"{at}.ln.w"], p[f"{at}.ln.b"])
        if spec.block == "resln":
            x = x + z
            z = x
        z = z @ p[f"{at}.mlp.W_in"] + p[f"{at}.mlp.b_in"]
        gelu = 0.5 * z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
        x = x + gelu @ p[f"{at}.mlp.W_out"] + p[f"{at}.mlp.b_out"]
    return x @ p["head.W"], patterns


def test_logits_and_patterns_are_those_of_the_definition(spec: Spec) -> None:
    params, tokens = weights(spec), ids(3, 2, 9)
    names = [f"blocks.{layer}.attn.pattern" for layer in range(spec.layers)]
    logits, recorded = transformer.forward(spec, params, table(spec), tokens, record=names)
    for r in range(3):
        one = {name: value[r].numpy() for name, value in params.items()}
        for b in range(2):
            expected, patterns = by_hand(spec, one, tokens[r, b].tolist())
            np.testing.assert_allclose(logits[r, b], expected, atol=1e-10)
            for name, pattern in zip(names, patterns, strict=True):
                np.testing.assert_allclose(recorded[name][r, b], pattern, atol=1e-12)


def test_no_position_sees_what_comes_later(spec: Spec) -> None:
    """By gradient: the logits at t do not depend on the embeddings of later inputs."""
    params = weights(spec)
    rows = table(spec).requires_grad_()
    # Token 4 occurs from position 6 on only, so its embedding must have no gradient before.
    tokens = torch.tensor([[[0, 1, 2, 3, 1, 2, 4, 4, 4]]]).expand(3, 1, 9)
    logits, _ = transformer.forward(spec, params, rows, tokens)
    (before,) = torch.autograd.grad(logits[:, :, :6].square().sum(), rows, retain_graph=True)
    (after,) = torch.autograd.grad(logits.square().sum(), rows)
    assert before[4].abs().max() == 0
    assert after[4].abs().max() > 0


def test_replicas_do_not_meet(spec: Spec) -> None:
    params, tokens = weights(spec), ids(3, 2, 9)
    together, _ = transformer.forward(spec, params, table(spec), tokens)
    for r in range(3):
        alone, _ = transformer.forward(
            spec, {n: v[r : r + 1] for n, v in params.items()}, table(spec), tokens[r : r + 1]
        )
        torch.testing.assert_close(alone[0], together[r], atol=1e-12, rtol=0)


def test_one_input_for_all_replicas(spec: Spec) -> None:
    params, tokens = weights(spec), ids(1, 2, 9)
    shared, _ = transformer.forward(spec, params, table(spec), tokens)
    each, _ = transformer.forward(spec, params, table(spec), tokens.expand(3, 2, 9))
    torch.testing.assert_close(shared, each, atol=0, rtol=0)


def test_packed_rows_give_the_logits_of_padded_ones(spec: Spec) -> None:
    lengths = np.array([3, 9, 5, 2, 9, 4, 4])
    rows = ids(3, len(lengths), 9)
    params = weights(spec)
    padded, _ = transformer.forward(spec, params, table(spec), rows)
    packed = pack(lengths, 9)
    used = torch.from_numpy(np.arange(9) < lengths[:, None])
    flat = torch.zeros(3, packed.segments.size, dtype=torch.int64)
    flat[:, packed.where] = rows[:, used]
    positions, segments = (torch.from_numpy(a).expand(3, *a.shape) for a in (packed.positions, packed.segments))
    assert len(packed.segments) < len(lengths)
    logits, _ = transformer.forward(spec, params, table(spec), flat.view(segments.shape), positions, segments)
    torch.testing.assert_close(
        logits.reshape(3, -1, spec.outputs)[:, packed.where], padded[:, used], atol=1e-12, rtol=1e-12
    )


def test_attention_by_counts_is_attention(spec: Spec) -> None:
    """Without a recorded pattern the first layer sums over symbols instead of positions: same logits, same gradient."""
    tokens = ids(3, 4, 40)
    segments = torch.arange(40).expand(3, 4, 40) // 13
    positions = torch.arange(40).expand(3, 4, 40) % 13
    results = []
    for record in ([], ["blocks.0.attn.pattern"]):
        params = {name: value.requires_grad_() for name, value in weights(spec).items()}
        logits, _ = transformer.forward(spec, params, table(spec), tokens, positions, segments, record)
        gradients = torch.autograd.grad(logits.square().mean(), list(params.values()))
        results.append((logits, torch.cat([gradient.flatten() for gradient in gradients])))
    for counts, plain in zip(*results, strict=True):
        assert (counts - plain).abs().max() < 1e-11 * plain.abs().max()


def test_selected_places_get_the_logits_they_have_anyway(spec: Spec) -> None:
    params, tokens = weights(spec), ids(3, 2, 9)
    select = torch.tensor([[0, 17, 4], [4, 4, 4], [16, 1, 8]])
    everywhere, _ = transformer.forward(spec, params, table(spec), tokens)
    some, _ = transformer.forward(spec, params, table(spec), tokens, select=select)
    flat = everywhere.reshape(3, 18, spec.outputs)
    for r in range(3):
        torch.testing.assert_close(some[r], flat[r, select[r]], atol=1e-12, rtol=1e-10)


def test_uniform_attention_is_uniform_and_leaves_its_queries_untrained() -> None:
    """M7: one over the number of keys, and a gradient for everything but the query maps."""
    spec = SPECS["uniform"]
    params = {name: value.requires_grad_() for name, value in weights(spec).items()}
    name = "blocks.1.attn.pattern"
    logits, recorded = transformer.forward(spec, params, table(spec), ids(3, 2, 6), record=[name])
    expected = torch.ones(6, 6, dtype=torch.float64).tril() / torch.arange(1, 7)[:, None]
    torch.testing.assert_close(recorded[name], expected.expand(3, 2, 1, 6, 6), atol=1e-15, rtol=0)
    logits.square().sum().backward()
    for layer in range(2):
        for kind in ("W_QKV", "b_QKV"):
            gradient = params[f"blocks.{layer}.attn.{kind}"].grad
            assert gradient is not None
            query, _, value = gradient.split(50, dim=-1)
            assert query.abs().max() == 0
            assert value.abs().max() > 0


def test_a_hook_that_changes_nothing_changes_nothing(spec: Spec) -> None:
    params, tokens = weights(spec), ids(3, 2, 9)
    names = [f"blocks.{layer}.attn.pattern" for layer in range(spec.layers)]
    plain, recorded = transformer.forward(spec, params, table(spec), tokens, record=names)
    hooks: dict[str, Any] = {name: lambda pattern, name=name: recorded[name] for name in names}
    patched, again = transformer.forward(spec, params, table(spec), tokens, record=names, hooks=hooks)
    torch.testing.assert_close(patched, plain, atol=0, rtol=0)
    assert all(torch.equal(again[name], recorded[name]) for name in names)


def test_the_model_goes_on_with_what_a_hook_returns(spec: Spec) -> None:
    """Replica 1 looks at the position itself in its last layer, which is recorded; what other replicas see stays."""
    params, tokens = weights(spec), ids(3, 2, 9)
    name = f"blocks.{spec.layers - 1}.attn.pattern"
    own = torch.eye(9, dtype=torch.float64)

    def hook(pattern: torch.Tensor) -> torch.Tensor:
        changed = pattern.clone()
        changed[1] = own
        return changed

    plain, _ = transformer.forward(spec, params, table(spec), tokens)
    logits, recorded = transformer.forward(spec, params, table(spec), tokens, record=[name], hooks={name: hook})
    unrecorded, _ = transformer.forward(spec, params, table(spec), tokens, hooks={name: hook})
    assert torch.equal(unrecorded, logits)
    assert torch.equal(recorded[name][1], own.expand(2, spec.heads, 9, 9))
    torch.testing.assert_close(logits[[0, 2]], plain[[0, 2]], atol=1e-12, rtol=1e-12)
    one = {name: value[1].numpy() for name, value in params.items()}
    instead = {spec.layers - 1: np.tile(own.numpy(), (spec.heads, 1, 1))}
    for b in range(2):
        expected, _ = by_hand(spec, one, tokens[1, b].tolist(), instead)
        np.testing.assert_allclose(logits[1, b], expected, atol=1e-10)
        assert np.abs(expected - plain[1, b].numpy()).max() > 0.01


def test_an_unknown_hook_is_refused() -> None:
    with pytest.raises(SandglassError, match=r"\['blocks\.9\.attn\.pattern'\]; this model has: blocks\.0"):
        hooks = {"blocks.9.attn.pattern": torch.clone}
        transformer.forward(GPT, weights(GPT), table(GPT), ids(1, 1, 3), hooks=hooks)


def test_an_unknown_record_lists_the_known_ones() -> None:
    with pytest.raises(SandglassError, match=r"this model has: blocks\.0\.attn\.pattern, blocks\.1"):
        transformer.forward(GPT, weights(GPT), table(GPT), ids(1, 1, 3), record=["layer1"])


def test_initial_weights_are_those_of_the_text() -> None:
    values = transformer.initial(SPECS["wide"], np.random.default_rng(0))
    assert np.std(values["blocks.0.attn.W_QKV"]) == pytest.approx(0.02, rel=0.02)
    assert np.std(values["blocks.1.mlp.W_out"]) == pytest.approx(0.01, rel=0.02)
    assert np.std(values["blocks.0.attn.W_O"]) == pytest.approx(0.01, rel=0.02)
    assert (values["blocks.0.ln.w"] == 1).all()
    assert (values["blocks.0.ln.b"] == 0).all()
    assert (values["blocks.0.attn.b_QKV"] == 0).all()


def checkpoint(path: Path, spec: Spec, **changes: Any) -> None:
    arrays = {name: value.numpy() for name, value in weights(spec, dtype=torch.float32).items()}
    header = {"spec": dataclasses.asdict(spec) | changes}
    checkpoints.write(path, arrays | {"table": table(spec).numpy()}, header)


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    checkpoint(path, GPT)
    first = path.read_bytes()
    model = transformer.load(path)
    assert model.spec == GPT
    assert model.params.keys() == transformer.shapes(GPT).keys()
    assert torch.equal(model.params["head.W"], weights(GPT, dtype=torch.float32)["head.W"])
    checkpoint(path, GPT)
    assert path.read_bytes() == first


def test_checkpoints_that_cannot_be_used_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with pytest.raises(SandglassError, match="is missing; make it with"):
        transformer.load(path)
    checkpoint(path, GPT)
    whole = path.read_bytes()
    for size in (0, 5, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(SandglassError, match="is truncated or damaged"):
            transformer.load(path)
    checkpoint(path, GPT, width=60)
    with pytest.raises(SandglassError, match=r"W_QKV has shape \(50, 150\), its header says \(60, 180\)"):
        transformer.load(path)


def test_a_flipped_bit_anywhere_in_a_checkpoint_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    checkpoint(path, GPT)
    whole = path.read_bytes()
    rng = np.random.default_rng(5)
    places = [*range(0, 2000, 7), *rng.integers(0, len(whole), 300).tolist()]
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(SandglassError, match="damaged"):
            transformer.load(path)
