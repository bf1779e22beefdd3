"""Trained models in TransformerLens: the same logits and attention patterns, to 1e-4."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest
import torch

from pipeline.access.export import to_hooked_transformer
from pipeline.access.replica import Replica
from pipeline.errors import SandglassError
from pipeline.languages import dyck
from pipeline.models.transformer import decoder as transformer

STANDARD = transformer.Spec("gpt", 2, 1, 50, 50, "learned", "none", 6000, 5, 4)
SPECS = {
    "standard": STANDARD,
    "five heads": dataclasses.replace(STANDARD, heads=5, ffn=30, layers=3),
    "linear position": dataclasses.replace(STANDARD, position="linear", t_max=28),
    "uniform": dataclasses.replace(STANDARD, attention="uniform"),
}
TOLERANCE = 1e-4


def model(spec: transformer.Spec, std: float = 0.25) -> Replica:
    """Weights far from initialisation, so that attention is anything but flat."""
    rng = np.random.default_rng(5)
    weights = {name: rng.normal(0, std, shape) for name, shape in transformer.shapes(spec).items()}
    entry = {"model": "transformer/decoder", "k": 2, "depth": 4, "embedding": "token"}
    config = {"run": "random", "replica": 0, "study": "dyck", "entry": entry}
    tensors = {name: torch.from_numpy(value).float() for name, value in weights.items()}
    table = dyck.embedding_table("token", k=2, max_depth=4, width=spec.width)
    return Replica(config, spec, tensors, torch.from_numpy(table))


@pytest.mark.filterwarnings("ignore")  # of the packages that TransformerLens brings
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_logits_and_attention_agree(spec: transformer.Spec) -> None:
    pytest.importorskip("transformer_lens", reason="optional: pip install -r requirements-export.txt")
    replica = model(spec)
    hooked = to_hooked_transformer(replica)
    inputs = {
        "random": torch.from_numpy(np.random.default_rng(1).integers(0, 5, (8, 70))),
        "D4": replica.encode("[[[[]]]](((())))"),
    }
    with torch.inference_mode():
        for name, ids in inputs.items():
            logits, cache = hooked.run_with_cache(ids)
            patterns = [cache["pattern", layer] for layer in range(spec.layers)]
            expected = [replica(ids), *replica.attention_patterns(ids)]
            gaps = [(a - b).abs().max().item() for a, b in zip([logits, *patterns], expected, strict=True)]
            print(f"{name}: largest difference of logits {gaps[0]:.1e}, of attention {max(gaps[1:]):.1e}")
            assert max(gaps) <= TOLERANCE
            uneven = (patterns[-1][:, :, -1].amax(-1) - patterns[-1][:, :, -1].amin(-1)).max()
            assert (uneven > 0.02) == (spec.attention == "learned")  # flat attention would agree by itself


@pytest.mark.filterwarnings("ignore")
def test_the_hooked_model_is_used_as_any_other() -> None:
    pytest.importorskip("transformer_lens", reason="optional: pip install -r requirements-export.txt")
    hooked = to_hooked_transformer(model(STANDARD), n_ctx=20)
    ids = torch.tensor([[0, 1, 1, 2]])
    blind = hooked.run_with_hooks(ids, fwd_hooks=[("blocks.1.attn.hook_z", lambda z, hook: torch.zeros_like(z))])
    assert not torch.equal(blind, hooked(ids))
    assert "blocks.0.ln2.hook_normalized" in hooked.hook_dict
    assert hooked.pos_embed.W_pos.shape == (20, 50)


@pytest.mark.parametrize("block", ["resln", "stripped"])
def test_other_blocks_are_refused_in_one_line(block: str) -> None:
    ffn = 0 if block == "stripped" else 50
    with pytest.raises(SandglassError, match=f"cannot express block '{block}', only 'gpt'$"):
        to_hooked_transformer(model(dataclasses.replace(STANDARD, block=block, ffn=ffn)))


def test_without_transformer_lens_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformer_lens", None)
    with pytest.raises(SandglassError, match=r"pip install -r requirements-export\.txt"):
        to_hooked_transformer(model(STANDARD))
