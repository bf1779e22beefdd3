"""Causal Transformers of the Llama shape (Touvron et al. 2023), R of one shape side by side.

They are trained from scratch, or read from a folder (`pipeline.models.llama.folder`).

Root-mean-square normalisation before each block and at the end, rotary positions, gated MLPs (SwiGLU), no biases, no
dropout, an unembedding of its own (Li 2025, section 3.2.1.1, and the authors' release). A layer:

    H = X + Attn(RMS(X)) W_O;   X' = H + (silu(RMS(H) W_gate) * RMS(H) W_up) W_out

Names and shapes of parameters, without the replica axis (d = width, f = inner, V = symbols):

``embed.W``                (V, d)
``blocks.{l}.ln1.w``       (d,)      and ``ln2.w``
``blocks.{l}.attn.W_QKV``  (d, 3d)   columns q | k | v, each split into heads; ``W_O`` (d, d)
``blocks.{l}.mlp.W_in``    (d, 2f)   columns gate | up; ``W_out`` (f, d)
``ln.w``                   (d,)
``head.W``                 (d, V)

``forward`` can record ``states.{l}`` (R, B, T, d): l = 0 the embeddings, l < L what layer l makes of the stream, l = L
the stream behind the last normalisation, which the unembedding reads.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.store import checkpoints

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float, Int

INIT_STD = 0.02
EPS = 1e-6  # of the normalisation, unless a shape says otherwise
BASE = 10_000.0  # theta of rotary positions, likewise


@dataclass(frozen=True)
class Spec:
    """The shape of a model; ``symbols`` are read and predicted. ``eps`` is of the normalisation, ``base`` the theta of
    rotary positions: models that were trained elsewhere have their own."""

    layers: int
    heads: int
    width: int
    inner: int
    symbols: int
    eps: float = EPS
    base: float = BASE


Ensemble = checkpoints.Ensemble[Spec]


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every trained parameter of one model, in the order they are initialised."""
    d, f = spec.width, spec.inner
    sizes: dict[str, tuple[int, ...]] = {"embed.W": (spec.symbols, d)}
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        sizes |= {f"{at}.ln1.w": (d,), f"{at}.attn.W_QKV": (d, 3 * d), f"{at}.attn.W_O": (d, d)}
        sizes |= {f"{at}.ln2.w": (d,), f"{at}.mlp.W_in": (d, 2 * f), f"{at}.mlp.W_out": (f, d)}
    return sizes | {"ln.w": (d,), "head.W": (d, spec.symbols)}


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the weights of one model before training, drawn in float64: N(0, 0.02^2), normalisations 1."""
    return {
        name: rng.normal(0.0, INIT_STD, shape) if name.rsplit(".", 1)[1] != "w" else rng.normal(1.0, 0.0, shape)
        for name, shape in shapes(spec).items()
    }


def forward(
    spec: Spec,
    params: dict[str, Tensor],
    table: Tensor,
    ids: Int[Tensor, "R B T"],
    record: Collection[str] = (),
    keys_and_values: list[tuple[Tensor, Tensor]] | None = None,
) -> tuple[Float[Tensor, "R B T V"], dict[str, Tensor]]:
    """Return the logits for the next symbol at every position, and the recorded states.

    ``ids`` with a replica axis of 1 gives every model the same input. ``table`` is not used: embeddings are trained.
    A list ``keys_and_values`` takes those of each layer, (R, B, H, T, d / H), keys with their positions.

    Raises SandglassError for a name in ``record`` that this model does not have.
    """
    known = state_names(spec)
    if unknown := {*record} - {*known}:
        raise SandglassError(f"cannot record {sorted(unknown)}; this model has: {', '.join(known)}")
    R, H, d = params["head.W"].shape[0], spec.heads, spec.width
    _, B, T = ids.shape
    symbols = torch.arange(R, device=ids.device)[:, None] * spec.symbols + ids.reshape(-1, B * T)
    x_RxNxD = F.embedding(symbols, params["embed.W"].reshape(R * spec.symbols, d))
    cos, sin = rotation(T, d // H, x_RxNxD.dtype, ids.device, spec.base)
    recorded: dict[str, Tensor] = {}
    if known[0] in record:
        recorded[known[0]] = x_RxNxD.view(R, B, T, d)
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        qkv = torch.bmm(normalised(x_RxNxD, params[f"{at}.ln1.w"], spec.eps), params[f"{at}.attn.W_QKV"])
        q, k, v = (part.transpose(1, 2) for part in qkv.view(R * B, T, 3, H, d // H).unbind(2))
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        if keys_and_values is not None:
            keys_and_values.append((k.reshape(R, B, H, T, -1), v.reshape(R, B, H, T, -1)))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed_RxNxD = mixed.transpose(1, 2).reshape(R, B * T, d)
        x_RxNxD = after_attention(spec, params, at, x_RxNxD, mixed_RxNxD)
        if layer < spec.layers - 1 and known[layer + 1] in record:
            recorded[known[layer + 1]] = x_RxNxD.view(R, B, T, d)
    x_RxNxD = normalised(x_RxNxD, params["ln.w"], spec.eps)
    if known[-1] in record:
        recorded[known[-1]] = x_RxNxD.view(R, B, T, d)
    return torch.bmm(x_RxNxD, params["head.W"]).view(R, B, T, spec.symbols), recorded


def state_names(spec: Spec) -> list[str]:
    """Return the names of what can be recorded, from the embeddings to what the unembedding reads."""
    return [f"states.{layer}" for layer in range(spec.layers + 1)]


def after_attention(spec: Spec, params: dict[str, Tensor], at: str, x_RxNxD: Tensor, mixed_RxNxD: Tensor) -> Tensor:
    """Return what a layer makes of its input and of the values that its heads mixed."""
    h_RxNxD = torch.baddbmm(x_RxNxD, mixed_RxNxD, params[f"{at}.attn.W_O"])
    gate, up = torch.bmm(normalised(h_RxNxD, params[f"{at}.ln2.w"], spec.eps), params[f"{at}.mlp.W_in"]).chunk(2, -1)
    return torch.baddbmm(h_RxNxD, F.silu(gate) * up, params[f"{at}.mlp.W_out"])


def normalised(x_RxNxD: Tensor, w_RxD: Tensor, eps: float) -> Tensor:
    """Return rows over their root mean square, times the weights of each model."""
    return F.rms_norm(x_RxNxD, x_RxNxD.shape[-1:], eps=eps) * w_RxD[:, None]


@lru_cache(maxsize=8)
def rotation(
    positions: int, width: int, dtype: torch.dtype, device: torch.device, base: float
) -> tuple[Tensor, Tensor]:
    """Return cosines and sines (T, width / 2) by which pairs of channels turn at positions 0 to T - 1."""
    rates = base ** (-torch.arange(0, width, 2, dtype=torch.float64, device=device) / width)
    angles = torch.arange(positions, dtype=torch.float64, device=device)[:, None] * rates
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Return ``x`` (..., width) with channel i and channel i + width / 2 turned as a pair."""
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
