"""MLPs and Transformers side by side, against plain loops; their weights before training."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from pipeline.errors import SandglassError
from pipeline.models.distillation import mlp, transformer

EMPTY = torch.zeros(1, 1)


def drawn(module: Any, spec: Any, replicas: int = 2) -> dict[str, torch.Tensor]:
    models = [module.initial(spec, np.random.default_rng(seed)) for seed in range(replicas)]
    noisy = np.random.default_rng(9)
    return {
        name: torch.from_numpy(np.stack([m[name] for m in models])).float()
        + 0.1 * torch.from_numpy(noisy.normal(size=(replicas, *shape))).float()
        for name, shape in module.shapes(spec).items()
    }


def test_networks_side_by_side_are_what_each_is_alone() -> None:
    spec = mlp.Spec(side=3, inputs=5, width=7, outputs=4)
    params = drawn(mlp, spec)
    x = torch.randn(2, 3, 6, 5)
    logits, recorded = mlp.forward(spec, params, EMPTY, x)
    assert logits.shape == (2, 3, 6, 4) and recorded == {}
    for r in range(2):
        for s in range(3):
            own = {name: value[r, s] for name, value in params.items()}
            plain = (x[r, s] @ own["W_1"] + own["b_1"]).relu() @ own["W_2"] + own["b_2"]
            torch.testing.assert_close(logits[r, s], plain)
    shared, _ = mlp.forward(spec, params, EMPTY, x[:1, :1])
    torch.testing.assert_close(shared[1, 2], mlp.forward(spec, params, EMPTY, x[:1, :1].expand(2, 3, 6, 5))[0][1, 2])
    with pytest.raises(SandglassError, match="records nothing"):
        mlp.forward(spec, params, EMPTY, x, record=["hidden"])


def test_networks_start_as_linear_layers_do_and_do_not_depend_on_their_number() -> None:
    spec = mlp.Spec(side=2, inputs=40, width=500, outputs=2)
    weights = mlp.initial(spec, np.random.default_rng(0))
    for name, bound in (("W_1", 40**-0.5), ("b_1", 40**-0.5), ("W_2", 500**-0.5), ("b_2", 500**-0.5)):
        assert np.abs(weights[name]).max() <= bound
    assert weights["W_1"].std() == pytest.approx(40**-0.5 / math.sqrt(3), rel=0.02)
    more = mlp.initial(mlp.Spec(3, 40, 500, 2), np.random.default_rng(0))
    assert all((more[name][:2] == weights[name]).all() for name in weights)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_transformers_against_plain_loops(average: bool, last: bool) -> None:
    spec = transformer.Spec("gpt2", 2, 2, 3, 6, 8, 2, 2, 8 if average else 4, average, 0.02, last, 0.0)
    params = drawn(transformer, spec)
    ids = torch.randint(2, (2, 2, 3, 5))
    logits, recorded = transformer.forward(spec, params, EMPTY, ids, record=["blocks.1.attn.pattern"])
    fused, _ = transformer.forward(spec, params, EMPTY, ids)
    torch.testing.assert_close(logits, fused, atol=1e-5, rtol=1e-5)
    r, s, b = 1, 0, 2
    own = {name: value[r, s] for name, value in params.items()}
    x = own["embed.W"][ids[r, s, b]] + own["embed.P"][:5]
    for layer in range(2):
        at, c = f"blocks.{layer}", spec.head_width
        seen = F.layer_norm(x, (8,), own[f"{at}.ln1.w"], own[f"{at}.ln1.b"])
        q, k, v = (seen @ own[f"{at}.attn.W_QKV"] + own[f"{at}.attn.b_QKV"]).chunk(3, -1)
        heads = []
        for h in range(2):
            part = slice(h * c, (h + 1) * c)
            rows = [(q[i, part] @ k[: i + 1, part].T / c**0.5).softmax(-1) for i in range(5)]
            heads.append(torch.stack([row @ v[: len(row), part] for row in rows]))
            if layer == 1:
                torch.testing.assert_close(recorded["blocks.1.attn.pattern"][r, s, b, h, 3, :4], rows[3])
        mixed = torch.stack(heads).mean(0) if average else torch.cat(heads, -1)
        x = x + mixed @ own[f"{at}.attn.W_O"] + own[f"{at}.attn.b_O"]
        seen = F.layer_norm(x, (8,), own[f"{at}.ln2.w"], own[f"{at}.ln2.b"])
        inner = F.gelu(seen @ own[f"{at}.mlp.W_in"] + own[f"{at}.mlp.b_in"], approximate="tanh")
        x = x + inner @ own[f"{at}.mlp.W_out"] + own[f"{at}.mlp.b_out"]
    plain = F.layer_norm(x, (8,), own["ln.w"], own["ln.b"]) @ own["head.W"]
    torch.testing.assert_close(logits[r, s, b], plain[-1] if last else plain, atol=1e-5, rtol=1e-5)


def test_later_tokens_do_not_matter_and_bad_requests_are_refused() -> None:
    spec = transformer.Spec("gpt2", 1, 2, 2, 6, 8, 2, 2, 4, False, 0.02, False, 0.0)
    params = drawn(transformer, spec, 1)
    ids = torch.randint(2, (1, 1, 4, 6))
    other = ids.clone()
    other[..., 4:] = 1 - other[..., 4:]
    first, second = (transformer.forward(spec, params, EMPTY, each)[0][..., :4, :] for each in (ids, other))
    torch.testing.assert_close(first, second)
    with pytest.raises(SandglassError, match="longer than the 6 positions"):
        transformer.forward(spec, params, EMPTY, torch.zeros(1, 1, 1, 7, dtype=torch.long))
    with pytest.raises(SandglassError, match="cannot record"):
        transformer.forward(spec, params, EMPTY, ids, record=["blocks.2.attn.pattern"])


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("strings", [1, 3, 200, 600])
def test_strings_that_begin_alike_are_read_as_each_is_alone(strings: int, average: bool) -> None:
    spec = transformer.Spec("gpt2", 2, 2, 3, 9, 8, 2, 2, 8 if average else 4, average, 0.02, True, 0.0)
    params = drawn(transformer, spec)
    ids = np.random.default_rng(strings).integers(0, 2, (strings, 9)).astype(np.uint8)  # of 600 some are alike
    plain, _ = transformer.forward(spec, params, EMPTY, torch.from_numpy(ids.astype(np.int64))[None, None])
    for numbers in (2**8, 2**20):
        logits = transformer.behind(spec, params, ids, numbers)
        torch.testing.assert_close(logits, plain.flatten(0, 1), atol=1e-5, rtol=1e-5)


def test_the_beginnings_that_are_read_once_are_those_that_spare_most() -> None:
    bits = np.array(list(np.ndindex((2,) * 6)))
    # 2 x 1 tokens, or 4 x 2, ... of beginnings, and what is left of each of 64 strings.
    costs = [2**length * length + 64 * (6 - length) for length in range(1, 6)]
    assert transformer._shared(bits) == 1 + costs.index(min(costs))
    assert transformer._shared(np.eye(5, dtype=int)[::-1]) == 0
    assert transformer._shared(bits[:1]) == 0 and transformer._shared(bits[:, :1][:1]) == 0


def test_transformers_start_as_gpt_2_does() -> None:
    spec = transformer.Spec("gpt2", 1, 2, 2, 20, 64, 2, 8, 8, False, 0.02, True, 0.0)
    weights = transformer.initial(spec, np.random.default_rng(0))
    assert weights["blocks.0.mlp.W_in"].std() == pytest.approx(0.02, rel=0.05)
    assert weights["blocks.0.mlp.W_out"].std() == pytest.approx(0.01, rel=0.05)
    assert (weights["ln.w"] == 1).all() and (weights["blocks.1.attn.b_QKV"] == 0).all()


BERT = transformer.Spec("bert", 2, 8, 8, 6, 8, 2, 2, 4, False, 0.02, False, 0.0)


def test_bert_against_plain_loops() -> None:
    """Attention to all visible tokens, normalised sums, exact GELU, outputs tied to the embedding."""
    params = drawn(transformer, BERT)
    ids = torch.randint(8, (2, 2, 3, 5))
    visible = torch.rand(2, 2, 3, 5) < 0.7
    visible[..., 0] = True
    names = ["last", "blocks.0.attn.pattern", "blocks.1.attn.pattern"]
    logits, recorded = transformer.forward(BERT, params, EMPTY, ids, visible, record=names)
    r, s, b = 1, 0, 2
    own = {name: value[r, s] for name, value in params.items()}

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.layer_norm(x, (8,), own[f"{name}.w"], own[f"{name}.b"], eps=1e-12)

    x = norm(own["embed.W"][ids[r, s, b]] + own["embed.P"][:5] + own["embed.W_type"][0], "embed.ln")
    seen = visible[r, s, b]
    for layer in range(2):
        at = f"blocks.{layer}"
        q, k, v = (x @ own[f"{at}.attn.W_QKV"] + own[f"{at}.attn.b_QKV"]).chunk(3, -1)
        heads = []
        for h, part in enumerate((slice(0, 4), slice(4, 8))):
            weights = (q[:, part] @ k[seen][:, part].T / 2).softmax(-1)
            heads.append(weights @ v[seen][:, part])
            pattern = recorded[f"{at}.attn.pattern"][r, s, b, h]
            torch.testing.assert_close(pattern[:, seen], weights, atol=1e-5, rtol=1e-5)
            assert (pattern[:, ~seen] == 0).all()
        mixed = torch.cat(heads, -1) @ own[f"{at}.attn.W_O"] + own[f"{at}.attn.b_O"]
        x = norm(x + mixed, f"{at}.ln1")
        inner = F.gelu(x @ own[f"{at}.mlp.W_in"] + own[f"{at}.mlp.b_in"])
        x = norm(x + inner @ own[f"{at}.mlp.W_out"] + own[f"{at}.mlp.b_out"], f"{at}.ln2")
    torch.testing.assert_close(recorded["last"][r, s, b], x, atol=1e-5, rtol=1e-5)
    plain = norm(F.gelu(x @ own["head.W_in"] + own["head.b_in"]), "head.ln") @ own["embed.W"].T
    torch.testing.assert_close(logits[r, s, b], plain + own["head.b_out"], atol=1e-5, rtol=1e-5)


def test_logits_at_places_are_those_of_all_tokens() -> None:
    for spec in (BERT, transformer.Spec("gpt2", 2, 8, 8, 6, 8, 2, 2, 4, False, 0.02, False, 0.0)):
        params = drawn(transformer, spec)
        ids = torch.randint(8, (2, 2, 3, 5))
        whole = transformer.forward(spec, params, EMPTY, ids)[0].flatten(2, 3)
        places = torch.tensor([[[4, 0, 13], [1, 1, 7]]]).expand(2, 2, 3)
        logits = transformer.forward(spec, params, EMPTY, ids, places=places)[0]
        for s in range(2):
            torch.testing.assert_close(logits[:, s], whole[:, s, places[0, s]])


def test_tokens_that_are_not_visible_do_not_matter() -> None:
    for form in ("bert", "gpt2"):
        spec = transformer.Spec(form, 1, 8, 8, 6, 8, 2, 2, 4, False, 0.02, False, 0.0)
        params = drawn(transformer, spec, 1)
        ids = torch.randint(8, (1, 1, 4, 6))
        other = ids.clone()
        other[..., 2] = (other[..., 2] + 1) % 8
        visible = torch.ones(1, 1, 4, 6, dtype=torch.bool)
        visible[..., 2] = False
        first, second = (transformer.forward(spec, params, EMPTY, each, visible)[0] for each in (ids, other))
        kept = [0, 1, 3, 4, 5]
        torch.testing.assert_close(first[..., kept, :], second[..., kept, :])
        if form == "gpt2":  # and what is visible still is not seen before its turn
            other[..., 5] = (other[..., 5] + 1) % 8
            third = transformer.forward(spec, params, EMPTY, other, visible)[0]
            torch.testing.assert_close(first[..., [0, 1, 3, 4], :], third[..., [0, 1, 3, 4], :])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("form", "last"), [("bert", False), ("gpt2", False), ("gpt2", True)])
def test_attention_by_products_is_that_of_the_fused_kernel(
    form: str, last: bool, masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logits and gradients. Products train up to ``SHORT`` tokens; beyond, and without a gradient, it is the kernel."""
    spec = transformer.Spec(form, 2, 8, 8, 6, 8, 3, 2, 4, False, 0.02, last, 0.0)
    params = {name: value.requires_grad_() for name, value in drawn(transformer, spec).items()}
    ids = torch.randint(8, (2, 2, 3, 6))
    visible = (torch.rand(2, 2, 3, 6) < 0.7) | (torch.arange(6) == 0) if masked else None

    def found() -> list[torch.Tensor]:
        logits = transformer.forward(spec, params, EMPTY, ids, visible)[0]
        return [logits, *torch.autograd.grad(logits.square().sum(), list(params.values()))]

    products = found()
    with torch.no_grad():
        alone = transformer.forward(spec, params, EMPTY, ids, visible)[0]
    monkeypatch.setattr(transformer, "SHORT", 5)
    fused = found()
    torch.testing.assert_close(alone, fused[0], atol=0, rtol=0)
    assert not torch.equal(products[0], fused[0])
    for one, other in zip(products, fused, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_the_gradient_of_each_model_is_bounded_by_itself() -> None:
    """As `torch.nn.utils.clip_grad_norm_` bounds that of one model; a small one stays as it is."""
    limit = 0.5
    spec = transformer.Spec("bert", 3, 8, 8, 6, 8, 2, 2, 4, False, 0.02, False, limit)
    plain = transformer.Spec(**vars(spec) | {"clip": 0.0})
    params = {name: value.requires_grad_() for name, value in drawn(transformer, spec).items()}
    ids = torch.randint(8, (2, 3, 4, 6))
    weight = torch.tensor([1e-4, 1.0, 30.0])

    def gradients(of: transformer.Spec) -> list[torch.Tensor]:
        logits = transformer.forward(of, params, EMPTY, ids)[0]
        losses = logits.square().mean((2, 3, 4)) * weight
        return list(torch.autograd.grad(losses.sum(), list(params.values())))

    free, bounded = gradients(plain), gradients(spec)
    norms = torch.stack([g.square().flatten(2).sum(-1) for g in free]).sum(0).sqrt()
    assert (norms[:, 0] < limit).all() and (norms[:, 2] > limit).all()
    for one, other in zip(free, bounded, strict=True):
        scale = (limit / norms).clamp(max=1).view(2, 3, *[1] * (one.ndim - 2))
        torch.testing.assert_close(other, one * scale)


def test_bert_starts_as_published() -> None:
    spec = transformer.Spec("bert", 1, 8, 8, 20, 64, 4, 8, 8, False, 0.02, False, 1.0)
    weights = transformer.initial(spec, np.random.default_rng(0))
    for name in ("blocks.0.mlp.W_in", "blocks.3.mlp.W_out", "blocks.1.attn.W_O", "head.W_in"):
        assert weights[name].std() == pytest.approx(0.02, rel=0.05)
    assert (weights["head.ln.w"] == 1).all() and (weights["head.b_out"] == 0).all()
    count = sum(math.prod(shape) for shape in transformer.shapes(spec).values())
    assert count == 8 * 64 + 20 * 64 + 64 + 2 * 64 + 4 * (12 * 64**2 + 13 * 64) + 64**2 + 3 * 64 + 8
