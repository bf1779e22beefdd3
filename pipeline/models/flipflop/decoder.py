"""Causal Transformers as in Liu 2024, section 3.5.2, R of one shape side by side: those of the x-transformers package.

Normalisation before each block and at the end, no biases on queries, keys, values and their output, MLPs of four times
the width, all dropouts off by default. Positions: ``learned`` (a table, over sqrt(d)), ``sin`` (fixed, over sqrt(d)),
``alibi`` (-m_h |i - j| on scores, m_h = 2^(-8h/H)), ``rope`` (queries and keys are rotated), ``rope-values`` (values as
well, as that package did in 2023), ``none``. Activations: ``gelu`` (exact), ``relu``, ``relu2`` (squared), and the
gated ``geglu``, ``swiglu`` (Shazeer 2020).

Names and shapes of parameters, without the replica axis (d = width, V = inputs, O = outputs, f = 4d, or 8d if gated):

``embed.W``                (V, d)   and, with learned positions, ``embed.P`` (t_max, d)
``blocks.{l}.ln1.w, .b``   (d,)     and ``ln2``
``blocks.{l}.attn.W_QKV``  (d, 3d)  columns q | k | v, each split into heads; ``W_O`` (d, d)
``blocks.{l}.mlp.W_in``    (d, f)   and ``b_in``, ``W_out`` (4d, d), ``b_out``
``ln.w, .b``               (d,)
``head.W``                 (d, O)   and ``head.b`` (O,)

``forward`` can record ``blocks.{l}.attn.pattern`` (R, B, H, T, T) and ``blocks.{l}.attn.norms`` (R, B, H, T), the
length of what each head would add to the stream if it looked at one key alone, |W_O W_V v|, and
``blocks.{l}.attn.inputs`` (R, B, T, d), what queries, keys and values are made of.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
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

LN_EPS = 1e-5
GATED = ("geglu", "swiglu")
ROTATED = 32  # channels of a head that rotary positions turn at least

Dropout = tuple[dict[str, float], list[torch.Generator]]  # rates by place; a generator for each replica


@dataclass(frozen=True)
class Spec:
    """The shape of a model; ``inputs`` and ``outputs`` count the symbols it reads and predicts."""

    layers: int
    heads: int
    width: int
    position: str
    activation: str
    t_max: int
    inputs: int
    outputs: int


Ensemble = checkpoints.Ensemble[Spec]


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every trained parameter of one model, in the order they are initialised."""
    d, inner = spec.width, 4 * spec.width
    outer = 2 * inner if spec.activation in GATED else inner
    sizes: dict[str, tuple[int, ...]] = {"embed.W": (spec.inputs, d)}
    if spec.position == "learned":
        sizes["embed.P"] = (spec.t_max, d)
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        sizes |= {f"{at}.ln1.w": (d,), f"{at}.ln1.b": (d,), f"{at}.ln2.w": (d,), f"{at}.ln2.b": (d,)}
        sizes |= {f"{at}.attn.W_QKV": (d, 3 * d), f"{at}.attn.W_O": (d, d)}
        sizes |= {f"{at}.mlp.W_in": (d, outer), f"{at}.mlp.b_in": (outer,)}
        sizes |= {f"{at}.mlp.W_out": (inner, d), f"{at}.mlp.b_out": (d,)}
    return sizes | {"ln.w": (d,), "ln.b": (d,), "head.W": (d, spec.outputs), "head.b": (spec.outputs,)}


def parameters(spec: Spec) -> int:
    """Return the number of trained parameters.

    >>> parameters(Spec(6, 8, 512, "learned", "gelu", 512, 5, 5))
    19170309
    """
    return sum(math.prod(shape) for shape in shapes(spec).values())


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the weights of one model before training: linear maps uniform within 1/sqrt(inputs), embeddings
    N(0, 2/d), positions N(0, 1), normalisations 1 and 0."""
    values = {}
    named = shapes(spec)
    for name, shape in named.items():
        module, kind = name.rsplit(".", 1)
        if kind.startswith("W") and module != "embed":
            values[name] = rng.uniform(-1, 1, shape) / math.sqrt(shape[0])
        elif kind in ("b_in", "b_out") or name == "head.b":
            fan_in = named[f"{module}.{kind.replace('b', 'W', 1)}"][0]
            values[name] = rng.uniform(-1, 1, shape) / math.sqrt(fan_in)
        elif module == "embed":
            values[name] = rng.normal(0.0, math.sqrt(2 / spec.width) if kind == "W" else 1.0, shape)
        else:
            values[name] = rng.normal(0.0, 1.0, shape) * 0 + (kind == "w")
    return values


def forward(
    spec: Spec,
    params: dict[str, Tensor],
    table: Tensor,
    ids: Int[Tensor, "R B T"],
    dropout: Dropout | None = None,
    record: Collection[str] = (),
) -> tuple[Float[Tensor, "R B T O"], dict[str, Tensor]]:
    """Return logits of all positions and the recorded activations.

    ``ids`` with a replica axis of 1 gives every replica the same input. ``dropout`` has rates of ``embed``,
    ``attention`` and ``ffn``, and a generator for each replica.

    Raises SandglassError for a name in ``record`` that this model does not have, or an input longer than its positions.
    """
    known = [f"blocks.{layer}.attn.{what}" for layer in range(spec.layers) for what in ("pattern", "norms", "inputs")]
    if unknown := {*record} - {*known}:
        raise SandglassError(f"cannot record {sorted(unknown)}; this model has: {', '.join(known)}")
    R, d = params["head.W"].shape[0], spec.width
    _, B, T = ids.shape
    if spec.position == "learned" and spec.t_max < T:
        raise SandglassError(f"an input of {T} tokens is longer than the {spec.t_max} positions of this model")
    flat = ids.expand(R, B, T).reshape(R, B * T)
    x = params["embed.W"].gather(1, flat[..., None].expand(-1, -1, d)).view(R, B, T, d)
    if spec.position == "learned":
        x = x + params["embed.P"][:, None, :T] / math.sqrt(d)
    elif spec.position == "sin":
        x = x + sinusoids(T, d).to(x) / math.sqrt(d)
    x = _dropped(x, dropout, "embed").reshape(R, B * T, d)
    bias = _bias(spec, T).to(x)
    rotated = {"rope": 2, "rope-values": 3}.get(spec.position, 0)  # of queries, keys and values
    turn = tuple(part.to(x) for part in _rotation(T, spec.width // spec.heads)) if rotated else ()
    recorded: dict[str, Tensor] = {}
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        W_QKV, W_O = params[f"{at}.attn.W_QKV"], params[f"{at}.attn.W_O"]
        seen = _norm(params, f"{at}.ln1", x)
        parts = _heads(seen @ W_QKV, spec.heads, B, T)
        q, k, v = (*(_turned(part, turn) for part in parts[:rotated]), *parts[rotated:])
        explicit = f"{at}.attn.pattern" in record or (dropout is not None and dropout[0]["attention"] > 0)
        if explicit:
            pattern = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias).softmax(-1)
            mixed = _dropped(pattern, dropout, "attention") @ v
        else:
            flat_parts = [part.reshape(R * B, *part.shape[2:]) for part in (q, k, v)]
            causal = spec.position != "alibi"
            mixed = F.scaled_dot_product_attention(  # type: ignore[misc]
                *flat_parts,  # type: ignore[arg-type]
                attn_mask=None if causal else bias[None],
                is_causal=causal,
            ).view(v.shape)
        if f"{at}.attn.pattern" in record:
            recorded[f"{at}.attn.pattern"] = pattern
        if f"{at}.attn.inputs" in record:
            recorded[f"{at}.attn.inputs"] = seen.view(R, B, T, d)
        if f"{at}.attn.norms" in record:
            split = W_O.view(R, 1, spec.heads, -1, d)
            recorded[f"{at}.attn.norms"] = (v @ split).norm(dim=-1)
        x = torch.baddbmm(x, mixed.transpose(2, 3).reshape(R, B * T, d), W_O)
        inner = _activated(spec, _affine(_norm(params, f"{at}.ln2", x), params, f"{at}.mlp", "in"))
        inner = _dropped(inner.view(R, B, T, -1), dropout, "ffn").view(R, B * T, -1)
        x = x + _affine(inner, params, f"{at}.mlp", "out")
    logits = torch.baddbmm(params["head.b"][:, None], _norm(params, "ln", x), params["head.W"])
    return logits.view(R, B, T, spec.outputs), recorded


def sinusoids(length: int, width: int) -> Float[Tensor, "T d"]:
    """Return sin and cos of t / 10000^(j / (d/2)), sines first."""
    rates = torch.exp(-math.log(10000.0) * torch.arange(0, width, 2) / width)
    angle = torch.arange(length)[:, None] * rates
    return torch.cat([angle.sin(), angle.cos()], -1)


def slopes(heads: int) -> list[float]:
    """Return m_h = 2^(-8h/H) of heads h = 1..H (Press et al. 2022)."""
    return [2.0 ** (-8 * h / heads) for h in range(1, heads + 1)]


def _bias(spec: Spec, T: int) -> Tensor:
    """Return what is added to scores, (H or 1, T, T): -inf on later keys, and the bias of alibi."""
    at = torch.arange(T)
    ahead = at[None] - at[:, None]
    bias = torch.zeros(1, T, T)
    if spec.position == "alibi":
        bias = torch.tensor(slopes(spec.heads))[:, None, None] * ahead
    return bias.masked_fill(ahead > 0, -math.inf)


def _rotation(T: int, head_width: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines (T, c/2) of the c channels of a head that are rotated."""
    channels = min(head_width, max(head_width // 2, ROTATED))
    rates = 10000.0 ** (-torch.arange(0, channels, 2) / channels)
    angle = torch.arange(T)[:, None] * rates
    return angle.cos(), angle.sin()


def _turned(x: Tensor, turn: tuple[Tensor, ...]) -> Tensor:
    cos, sin = turn
    half = cos.shape[-1]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], -1)


def _heads(qkv: Tensor, heads: int, B: int, T: int) -> list[Tensor]:
    """Return queries, keys and values, (R, B, H, T, d/H) each."""
    split = qkv.view(qkv.shape[0], B, T, 3, heads, -1)
    return [part.transpose(2, 3) for part in split.unbind(3)]


def _activated(spec: Spec, x: Tensor) -> Tensor:
    if spec.activation in GATED:
        value, gate = x.chunk(2, -1)
        return value * (F.gelu(gate) if spec.activation == "geglu" else F.silu(gate))
    if spec.activation == "gelu":
        return F.gelu(x)
    return F.relu(x).square() if spec.activation == "relu2" else F.relu(x)


def _dropped(x: Tensor, dropout: Dropout | None, place: str) -> Tensor:
    """Return ``x`` with a share of its entries 0 and the others larger; each replica draws by itself."""
    if dropout is None or not dropout[0][place]:
        return x
    rate, generators = dropout[0][place], dropout[1]
    kept = torch.stack([torch.rand(x.shape[1:], generator=g, device=g.device) for g in generators]) >= rate
    return x * kept.to(x.device) / (1 - rate)


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
