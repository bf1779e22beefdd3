"""Trained models for other libraries: TransformerLens' `HookedTransformer`.

Needs the extra ``export``: ``pip install -r requirements-export.txt -c constraints.txt``.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.models.transformer import decoder as transformer

if TYPE_CHECKING:
    from pipeline.access.replica import Replica

CONTEXT = 512  # the longest sequences of the studies have 501 positions


def to_hooked_transformer(model: Replica, n_ctx: int = CONTEXT) -> Any:
    """Return ``model`` as a `transformer_lens.HookedTransformer` with the same logits and attention patterns.

    Exact for block ``gpt``. TransformerLens' block has no normalisation before attention, like that one,
    when its config says ``normalization_type=None``; the one before the MLP stands at ``blocks.<l>.ln2``.
    A model without positions gets position vectors of zeros, one with linear positions its code.
    It reads the same ids (no tokenizer, and no start token is put in front), ``n_ctx`` of them at most.

    Raises SandglassError if TransformerLens is not installed or the model has another block, which
    `HookedTransformer` cannot express.
    """
    spec = model.spec
    if not isinstance(spec, transformer.Spec) or spec.block != "gpt":
        kind = getattr(spec, "block", type(spec).__name__)
        raise SandglassError(f"run {model.config['run']}: HookedTransformer cannot express block {kind!r}, only 'gpt'")
    try:
        from transformer_lens import HookedTransformer, HookedTransformerConfig
        from transformer_lens.components import LayerNorm
    except ImportError as error:
        raise SandglassError(
            f"TransformerLens cannot be imported ({error}); "
            "install it with: pip install -r requirements-export.txt -c constraints.txt"
        ) from None
    config = HookedTransformerConfig(
        n_layers=spec.layers,
        n_heads=spec.heads,
        d_model=spec.width,
        d_head=spec.width // spec.heads,
        d_mlp=spec.ffn,
        d_vocab=spec.inputs,
        d_vocab_out=spec.outputs,
        n_ctx=n_ctx,
        act_fn="gelu_new",
        eps=transformer.LN_EPS,
        normalization_type=None,
        default_prepend_bos=False,
        init_weights=False,
        model_name=f"{model.config['run']}-{model.config['replica']}",
        device=str(model.table.device),
        dtype=model.table.dtype,
    )
    with warnings.catch_warnings():  # the last major version with HookedTransformer says so at every turn
        warnings.simplefilter("ignore", DeprecationWarning)
        hooked = HookedTransformer(config)
    for block in hooked.blocks:
        block.ln2 = LayerNorm(config).to(model.table.device)
    hooked.setup()  # names the hooks of the new modules
    weights = _weights(spec, dict(model.named_parameters()), model.table, n_ctx)
    missing, surplus = hooked.load_state_dict(weights, strict=False)
    trained = {name for name, _ in hooked.named_parameters()}
    assert not surplus and not trained & set(missing), (missing, surplus)
    return hooked.eval()


def _weights(spec: transformer.Spec, p: dict[str, Tensor], table: Tensor, n_ctx: int) -> dict[str, Tensor]:
    """Return the weights under TransformerLens' names: heads on an axis of their own, biases everywhere."""
    heads = (spec.heads, spec.width // spec.heads)
    positions = torch.zeros(n_ctx, spec.width, dtype=table.dtype, device=table.device)
    if spec.position == "linear":
        positions[:, -1] = torch.arange(n_ctx, device=table.device) * (1.0 / spec.t_max)
    weights = {
        "embed.W_E": table,
        "pos_embed.W_pos": positions,
        "unembed.W_U": p["head.W"],
        "unembed.b_U": torch.zeros_like(p["head.W"][0]),
    }
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        W, b = p[f"{at}.attn.W_QKV"], p[f"{at}.attn.b_QKV"]
        for name, columns, bias in zip("QKV", W.chunk(3, -1), b.chunk(3, -1), strict=True):
            learned = 0 if name == "Q" and spec.attention == "uniform" else 1
            weights[f"{at}.attn.W_{name}"] = learned * columns.unflatten(-1, heads).transpose(0, 1)
            weights[f"{at}.attn.b_{name}"] = learned * bias.unflatten(-1, heads)
        weights[f"{at}.attn.W_O"] = p[f"{at}.attn.W_O"].unflatten(0, heads)
        weights |= {f"{at}.ln2.{name}": p[f"{at}.ln.{name}"] for name in "wb"}
        same = ("attn.b_O", "mlp.W_in", "mlp.b_in", "mlp.W_out", "mlp.b_out")
        weights |= {f"{at}.{name}": p[f"{at}.{name}"] for name in same}
    return {name: value.detach() for name, value in weights.items()}
