"""Encoders of BERT's form (Devlin et al. 2019; Li 2025, section 2.1.5.4), R of one shape side by side.

Token, position and type are embedded and the sum is normalised; each layer attends in both directions, adds,
normalises, and does the same with an MLP with exact GELU (normalisation behind each sum). Everything has one type.
Logits of masked words are read by the embedding of tokens itself and a bias. Encoders that were trained elsewhere have
no such head.

Names and shapes of parameters, without the replica axis (V = symbols, D = width, F = ffn):

``embed.W`` (V, D), ``embed.P`` (positions, D), ``embed.W_type`` (types, D), ``embed.ln.w, .b`` (D,)
``blocks.{l}.attn.W_Q``, ``W_K``, ``W_V``, ``W_O`` (D, D), ``b_Q``, ``b_K``, ``b_V``, ``b_O`` (D,), ``blocks.{l}.ln1.w,
.b`` (D,)
``blocks.{l}.mlp.W_in`` (D, F), ``b_in`` (F,), ``W_out`` (F, D), ``b_out`` (D,), ``blocks.{l}.ln2.w, .b`` (D,)
``head.b`` (V,)

They act from the right: x W + b. ``encode`` and ``forward`` can record ``blocks.{l}.attn.pattern`` (R, B, H, T, T),
rows are queries; ``forward`` records ``norms`` (R, L, 3) as well, the Frobenius norms of W_K, W_Q and W_V, all heads
together.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.store import checkpoints

if TYPE_CHECKING:
    from jaxtyping import Float, Int

ATTENTION = ("W_K", "W_Q", "W_V")


@dataclass(frozen=True)
class Spec:
    """The shape of a model, and standard deviations of its weights before training: of all, and of W_Q, W_K, W_V."""

    symbols: int
    positions: int
    types: int
    width: int
    layers: int
    heads: int
    ffn: int
    eps: float
    std: float
    std_attention: float

    @property
    def outputs(self) -> int:
        """Return the number of outputs: as many as ids."""
        return self.symbols


Ensemble = checkpoints.Ensemble[Spec]


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every trained parameter of one model."""
    return trunk(spec) | {"head.b": (spec.symbols,)}


def trunk(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the same without the head."""
    D, ffn = spec.width, spec.ffn
    parameters: dict[str, tuple[int, ...]] = {
        "embed.W": (spec.symbols, D),
        "embed.P": (spec.positions, D),
        "embed.W_type": (spec.types, D),
        "embed.ln.w": (D,),
        "embed.ln.b": (D,),
    }
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        for which in "QKVO":
            parameters |= {f"{at}.attn.W_{which}": (D, D), f"{at}.attn.b_{which}": (D,)}
        parameters |= {f"{at}.ln1.w": (D,), f"{at}.ln1.b": (D,), f"{at}.mlp.W_in": (D, ffn), f"{at}.mlp.b_in": (ffn,)}
        parameters |= {f"{at}.mlp.W_out": (ffn, D), f"{at}.mlp.b_out": (D,), f"{at}.ln2.w": (D,), f"{at}.ln2.b": (D,)}
    return parameters


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the weights of one model before training: normal matrices, normalisations 1, biases 0."""
    weights = {}
    for name, shape in shapes(spec).items():
        kind = name.rsplit(".", 1)[1]
        if kind.startswith("W") or kind == "P":
            weights[name] = rng.normal(0.0, spec.std_attention if kind in ATTENTION else spec.std, shape)
        else:
            weights[name] = np.full(shape, float(kind == "w"))
    return weights


def forward(
    spec: Spec,
    params: dict[str, Tensor],
    table: Tensor,
    ids: Int[Tensor, "R B T"],
    lengths: Int[Tensor, "R B"] | None = None,
    places: Int[Tensor, "R P"] | None = None,
    record: Collection[str] = (),
) -> tuple[Float[Tensor, "R P V"], dict[str, Tensor]]:
    """Return logits at ``places``, which number the tokens of the batch from 0 to B T - 1, and what is recorded.

    Without ``places`` there are logits of all tokens, (R, B, T, V); without ``lengths`` no row is padded. A replica
    axis of 1 in what is given stands for all replicas.

    Raises SandglassError as `encode` does.
    """
    hidden, recorded = encode(spec, params, ids, lengths, [name for name in record if name != "norms"])
    if "norms" in record:
        recorded["norms"] = norms(spec, params)
    R, B, T, D = hidden.shape
    x = hidden.flatten(1, 2)
    if places is not None:
        x = x.gather(1, places.expand(R, -1)[..., None].expand(-1, -1, D))
    logits = torch.baddbmm(params["head.b"][:, None], x, params["embed.W"].mT)
    return logits if places is not None else logits.view(R, B, T, -1), recorded


def embedded(
    spec: Spec, params: dict[str, Tensor], ids: Int[Tensor, "R B T"], first: int = 0
) -> Float[Tensor, "R B T D"]:
    """Return what the embedding layer gives to the first block: word + position + type, normalised.

    The first token of each row stands at position ``first``.

    Raises SandglassError if there are not so many positions.
    """
    R, (B, T) = params["embed.W"].shape[0], ids.shape[-2:]
    if first + T > spec.positions:
        raise SandglassError(
            f"an input of {first + T} tokens is longer than the {spec.positions} positions of this model"
        )
    flat = ids.expand(R, B, T).reshape(R, B * T, 1).expand(-1, -1, spec.width)
    x = params["embed.W"].gather(1, flat).view(R, B, T, spec.width)
    x = x + params["embed.P"][:, None, first : first + T] + params["embed.W_type"][:, None, :1]
    return _norm(spec, params, "embed.ln", x)


def encode(
    spec: Spec,
    params: dict[str, Tensor],
    ids: Int[Tensor, "R B T"],
    lengths: Int[Tensor, "R B"] | None = None,
    record: Collection[str] = (),
) -> tuple[Float[Tensor, "R B T D"], dict[str, Tensor]]:
    """Return what the last block leaves, and the recorded activations. Tokens behind ``lengths`` are attended to by
    none.

    Raises SandglassError for a name in ``record`` that this model does not have, or an input that is too long.
    """
    known = [f"blocks.{layer}.attn.pattern" for layer in range(spec.layers)]
    if unknown := {*record} - {*known}:
        raise SandglassError(f"cannot record {sorted(unknown)}; this model has: {', '.join(known)}, norms")
    x = embedded(spec, params, ids)
    R, B, T, D = x.shape
    ends = torch.full((1, 1), T, device=x.device) if lengths is None else lengths
    seen = torch.arange(T, device=x.device) < ends.expand(R, B)[..., None]
    seen = seen.reshape(R * B, 1, 1, T)
    recorded: dict[str, Tensor] = {}
    x = x.reshape(R, B * T, D)
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        weight = torch.cat([params[f"{at}.attn.W_{which}"] for which in "QKV"], dim=-1)
        bias = torch.cat([params[f"{at}.attn.b_{which}"] for which in "QKV"], dim=-1)
        qkv = torch.baddbmm(bias[:, None], x, weight).view(R * B, T, 3, spec.heads, -1)
        q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
        if f"{at}.attn.pattern" in record:
            scores = q @ k.mT / math.sqrt(D // spec.heads)
            pattern = scores.masked_fill(~seen, -math.inf).softmax(-1)
            recorded[f"{at}.attn.pattern"] = pattern.view(R, B, spec.heads, T, T)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen.expand(-1, -1, T, -1))
        mixed = mixed.transpose(1, 2).reshape(R, B * T, D)
        x = _norm(spec, params, f"{at}.ln1", x + _affine(mixed, params, f"{at}.attn", "O"))
        inner = F.gelu(_affine(x, params, f"{at}.mlp", "in"))
        x = _norm(spec, params, f"{at}.ln2", x + _affine(inner, params, f"{at}.mlp", "out"))
    return x.view(R, B, T, D), recorded


def norms(spec: Spec, params: dict[str, Tensor]) -> Float[Tensor, "R L 3"]:
    """Return the Frobenius norms of W_K, W_Q and W_V of each layer, all heads together."""
    each = [
        [params[f"blocks.{layer}.attn.{name}"].flatten(1).norm(dim=1) for name in ATTENTION]
        for layer in range(spec.layers)
    ]
    return torch.stack([torch.stack(row, dim=1) for row in each], dim=1)


def _affine(x: Tensor, params: dict[str, Tensor], module: str, which: str) -> Tensor:
    return torch.baddbmm(params[f"{module}.b_{which}"][:, None], x, params[f"{module}.W_{which}"])


def _norm(spec: Spec, params: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    plain = F.layer_norm(x, x.shape[-1:], eps=spec.eps)
    over = (slice(None), *[None] * (x.ndim - 2))
    return torch.addcmul(params[f"{name}.b"][over], plain, params[f"{name}.w"][over])


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
