"""Causal Transformers of GPT-2's shape (Liu 2024, sections 4.2.7.2 and 4.2.9), S of them side by side in each replica.

Tokens and learned positions are embedded; blocks normalise before attention and before the MLP (4 times the width,
GELU by tanh), a last normalisation follows, and logits are read without a bias, at the last position or at all. Weights
start from N(0, 0.02^2), those that end a block from N(0, 0.02^2 / (2 layers)), biases from 0. Heads have ``head_width``
channels; their outputs are concatenated or, with ``average``, averaged.

Parameters, without the replica axis and behind an axis S (D = width, c = heads x head_width, V = inputs, O = outputs):

``embed.W`` (V, D) and ``embed.P`` (t_max, D)
``blocks.{l}.ln1.w, .b`` (D,) and ``ln2``
``blocks.{l}.attn.W_QKV`` (D, 3c), ``b_QKV`` (3c,), ``W_O`` (c, D), or (head_width, D) of averaged heads, ``b_O`` (D,)
``blocks.{l}.mlp.W_in`` (D, 4D), ``b_in``, ``W_out`` (4D, D), ``b_out``
``ln.w, .b`` (D,) and ``head.W`` (D, O)

``forward`` can record ``blocks.{l}.attn.pattern`` (R, S, B, H, T, T).
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

LN_EPS = 1e-5
START = 0.02  # standard deviation of weights before training


@dataclass(frozen=True)
class Spec:
    """The shape of a model; ``last``: logits are those behind the last token alone."""

    side: int
    inputs: int
    outputs: int
    t_max: int
    width: int
    layers: int
    heads: int
    head_width: int
    average: bool
    last: bool


Ensemble = checkpoints.Ensemble[Spec]


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every trained parameter."""
    D, c = spec.width, spec.heads * spec.head_width
    mixed = spec.head_width if spec.average else c
    found: dict[str, tuple[int, ...]] = {"embed.W": (spec.inputs, D), "embed.P": (spec.t_max, D)}
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        found |= {f"{at}.ln1.w": (D,), f"{at}.ln1.b": (D,), f"{at}.ln2.w": (D,), f"{at}.ln2.b": (D,)}
        found |= {f"{at}.attn.W_QKV": (D, 3 * c), f"{at}.attn.b_QKV": (3 * c,)}
        found |= {f"{at}.attn.W_O": (mixed, D), f"{at}.attn.b_O": (D,)}
        found |= {f"{at}.mlp.W_in": (D, 4 * D), f"{at}.mlp.b_in": (4 * D,)}
        found |= {f"{at}.mlp.W_out": (4 * D, D), f"{at}.mlp.b_out": (D,)}
    found |= {"ln.w": (D,), "ln.b": (D,), "head.W": (D, spec.outputs)}
    return {name: (spec.side, *shape) for name, shape in found.items()}


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the weights before training; those of the first models do not depend on how many follow."""
    models = [_one(spec, rng) for _ in range(spec.side)]
    return {name: np.stack([model[name] for model in models]) for name in shapes(spec)}


def _one(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    found = {}
    for name, (_, *shape) in shapes(spec).items():
        kind = name.rsplit(".", 1)[1]
        if kind.startswith("W") or kind == "P":
            ends = kind in ("W_O", "W_out")
            found[name] = rng.normal(0.0, START / math.sqrt(2 * spec.layers) if ends else START, shape)
        else:
            found[name] = np.full(shape, float(kind == "w"))
    return found


def forward(
    spec: Spec,
    params: dict[str, Tensor],
    table: Tensor,
    ids: Int[Tensor, "R S B T"],
    record: Collection[str] = (),
) -> tuple[Float[Tensor, "R S B O"], dict[str, Tensor]]:
    """Return logits behind the last token, or (R, S, B, T, O) behind all, and the recorded activations.

    An axis of 1 in ``ids`` in place of R or S gives all models the same input.

    Raises SandglassError for a name in ``record`` that this model does not have, or an input longer than its positions.
    """
    known = [f"blocks.{layer}.attn.pattern" for layer in range(spec.layers)]
    if unknown := {*record} - {*known}:
        raise SandglassError(f"cannot record {sorted(unknown)}; this model has: {', '.join(known)}")
    R, S = params["head.W"].shape[:2]
    B, T = ids.shape[-2:]
    if spec.t_max < T:
        raise SandglassError(
            f"an input of {T} tokens is longer than the {spec.t_max} positions of this model"
        )
    own = {name: value.flatten(0, 1) for name, value in params.items()}
    N, D = R * S, spec.width
    flat = ids.expand(R, S, B, T).reshape(N, B * T)
    x = own["embed.W"].gather(1, flat[..., None].expand(-1, -1, D)).view(N, B, T, D)
    x = (x + own["embed.P"][:, None, :T]).reshape(N, B * T, D)
    recorded: dict[str, Tensor] = {}
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        qkv = _affine(_norm(own, f"{at}.ln1", x), own, f"{at}.attn", "QKV")
        q, k, v = (part.transpose(2, 3) for part in qkv.view(N, B, T, 3, spec.heads, -1).unbind(3))
        if f"{at}.attn.pattern" in record:
            ahead = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
            scores = q @ k.transpose(-1, -2) / math.sqrt(spec.head_width)
            pattern = scores.masked_fill(ahead, -math.inf).softmax(-1)
            recorded[f"{at}.attn.pattern"] = pattern.view(R, S, B, spec.heads, T, T)
            mixed = pattern @ v
        else:
            parts = [part.reshape(N * B, *part.shape[2:]) for part in (q, k, v)]
            mixed = F.scaled_dot_product_attention(*parts, is_causal=True).view(v.shape)  # type: ignore[misc, arg-type]
        mixed = mixed.mean(2) if spec.average else mixed.transpose(2, 3)
        x = x + _affine(mixed.reshape(N, B * T, -1), own, f"{at}.attn", "O")
        inner = F.gelu(_affine(_norm(own, f"{at}.ln2", x), own, f"{at}.mlp", "in"), approximate="tanh")
        x = x + _affine(inner, own, f"{at}.mlp", "out")
    if spec.last:
        x = x.view(N, B, T, D)[:, :, -1]
    logits = _norm(own, "ln", x) @ own["head.W"]
    return logits.view(R, S, B, *([] if spec.last else [T]), spec.outputs), recorded


def _affine(x: Tensor, params: dict[str, Tensor], module: str, which: str) -> Tensor:
    return torch.baddbmm(params[f"{module}.b_{which}"][:, None], x, params[f"{module}.W_{which}"])


def _norm(params: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    plain = F.layer_norm(x, x.shape[-1:], eps=LN_EPS)
    return torch.addcmul(params[f"{name}.b"][:, None], plain, params[f"{name}.w"][:, None])


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
