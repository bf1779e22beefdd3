"""GPT-2-like causal Transformers with a head over states, R of one shape side by side (Liu 2024, section 3.4.5.3).

Normalisation before each block and at the end, GELU, scores scaled by 1/sqrt(head width), an MLP as wide as ``ffn``.
Positions (section 3.4.5.2.4): ``sin`` (also where training shifts them), ``linear`` p_t = scale t on every coordinate,
``none``, or ``recency``: no code, and -m_h (i - j) added to the scores of head h, m_h = 2^(-8h/H) (Press et al. 2022).

Names and shapes of parameters, without the replica axis (d = width, f = ffn, V = inputs, O = outputs):

``embed.W``                (V, d)
``blocks.{l}.ln1.w, .b``   (d,)     and ``ln2``
``blocks.{l}.attn.W_QKV``  (d, 3d)  columns q | k | v, each split into heads; ``b_QKV``, ``W_O`` (d, d), ``b_O``
``blocks.{l}.mlp.W_in``    (d, f)   and ``b_in``, ``W_out`` (f, d), ``b_out``
``ln.w, .b``               (d,)
``head.W``                 (d, O)   and ``head.b`` (O,)

``forward`` can record ``blocks.{l}.attn.pattern`` (R, B, H, T, T).
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

INIT_STD = 0.02
LN_EPS = 1e-5


@dataclass(frozen=True)
class Spec:
    """The shape of a model; ``inputs`` and ``outputs`` count the symbols it reads and predicts."""

    layers: int
    heads: int
    width: int
    ffn: int
    position: str
    scale: float  # of the linear position code
    inputs: int
    outputs: int


Ensemble = checkpoints.Ensemble[Spec]


Cache = list[tuple[Tensor, Tensor]]  # keys and values of each layer, (R, B, H, T, d/H)


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every trained parameter of one model, in the order they are initialised."""
    d, f = spec.width, spec.ffn
    parameters: dict[str, tuple[int, ...]] = {"embed.W": (spec.inputs, d)}
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        parameters |= {f"{at}.ln1.w": (d,), f"{at}.ln1.b": (d,), f"{at}.ln2.w": (d,), f"{at}.ln2.b": (d,)}
        parameters |= {f"{at}.attn.W_QKV": (d, 3 * d), f"{at}.attn.b_QKV": (3 * d,)}
        parameters |= {f"{at}.attn.W_O": (d, d), f"{at}.attn.b_O": (d,)}
        parameters |= {f"{at}.mlp.W_in": (d, f), f"{at}.mlp.b_in": (f,)}
        parameters |= {f"{at}.mlp.W_out": (f, d), f"{at}.mlp.b_out": (d,)}
    return parameters | {"ln.w": (d,), "ln.b": (d,), "head.W": (d, spec.outputs), "head.b": (spec.outputs,)}


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the weights of one model before training: GPT-2's N(0, 0.02^2), outputs of residual branches over
    sqrt(2 layers), biases 0, normalisations 1 and 0."""
    values = {}
    for name, shape in shapes(spec).items():
        kind = name.rsplit(".", 1)[1]
        std = INIT_STD / math.sqrt(2 * spec.layers) if kind in ("W_O", "W_out") else INIT_STD
        normal = rng.normal(0.0, std, shape)
        values[name] = normal if kind.startswith("W") else normal * 0 + (kind == "w")
    return values


def slopes(heads: int) -> list[float]:
    """Return m_h = 2^(-8h/H) of heads h = 1..H.

    >>> slopes(4)
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    return [2.0 ** (-8 * h / heads) for h in range(1, heads + 1)]


def code(spec: Spec, positions: Tensor) -> Tensor:
    """Return what is added to embeddings at ``positions`` (..., T): (..., T, d)."""
    at = positions[..., None].to(torch.float32)
    if spec.position == "linear":
        return (spec.scale * at).expand(*positions.shape, spec.width)
    if spec.position != "sin":
        return torch.zeros(*positions.shape, 1, device=positions.device)
    even = torch.arange(0, spec.width, 2, device=positions.device)
    angle = at * torch.exp(-math.log(10000.0) * even / spec.width)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)


def forward(
    spec: Spec,
    params: dict[str, Tensor],
    table: Tensor,
    ids: Int[Tensor, "R B T"],
    positions: Int[Tensor, "R B T"] | None = None,
    dropout: tuple[float, list[torch.Generator]] | None = None,
    record: Collection[str] = (),
    cache: Cache | None = None,
) -> tuple[Float[Tensor, "R B T O"], dict[str, Tensor]]:
    """Return logits of all positions and the recorded activations.

    ``ids`` with a replica axis of 1 gives every replica the same input. ``dropout`` is a rate and a generator for each
    replica. ``cache`` holds the keys and values of what came before, and grows: then ``ids`` go on from there.

    Raises SandglassError for a name in ``record`` that this model does not have.
    """
    known = [f"blocks.{layer}.attn.pattern" for layer in range(spec.layers)]
    if unknown := {*record} - {*known}:
        raise SandglassError(f"cannot record {sorted(unknown)}; this model has: {', '.join(known)}")
    R = params["head.W"].shape[0]
    _, B, T = ids.shape
    before = cache[0][0].shape[3] if cache else 0
    if positions is None:
        positions = torch.arange(before, before + T, device=ids.device).expand(1, 1, T)
    flat = ids.expand(R, B, T).reshape(R, B * T)
    x = params["embed.W"].gather(1, flat[..., None].expand(-1, -1, spec.width)).view(R, B, T, spec.width)
    x = _dropped(x + code(spec, positions), dropout).reshape(R, B * T, spec.width)
    bias = _bias(spec, before, T, x)
    recorded: dict[str, Tensor] = {}
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        p = {name.removeprefix(f"{at}."): value for name, value in params.items() if name.startswith(f"{at}.")}
        key = known[layer] if known[layer] in record else ""
        mixed, pattern = _attention(spec, p, _norm(p, "ln1", x), bias, B, T, cache, layer, bool(key))
        x = x + _dropped(_affine(mixed, p["attn.W_O"], p["attn.b_O"]), dropout)
        inner = F.gelu(_affine(_norm(p, "ln2", x), p["mlp.W_in"], p["mlp.b_in"]), approximate="tanh")
        x = x + _dropped(_affine(inner, p["mlp.W_out"], p["mlp.b_out"]), dropout)
        if key:
            recorded[key] = pattern
    logits = _affine(_norm(params, "ln", x), params["head.W"], params["head.b"])
    return logits.view(R, B, T, spec.outputs), recorded


def _bias(spec: Spec, before: int, T: int, like: Tensor) -> Tensor:
    """Return what is added to scores, (H or 1, T, before + T): -inf on later keys, and the recency bias."""
    query = torch.arange(before, before + T, device=like.device)[:, None]
    ahead = torch.arange(before + T, device=like.device)[None] - query
    bias = torch.zeros(1, *ahead.shape, dtype=like.dtype, device=like.device)
    if spec.position == "recency":
        m = torch.tensor(slopes(spec.heads), dtype=like.dtype, device=like.device)
        bias = m[:, None, None] * ahead
    return bias.masked_fill(ahead > 0, -math.inf)


def _attention(
    spec: Spec,
    p: dict[str, Tensor],
    x: Tensor,
    bias: Tensor,
    B: int,
    T: int,
    cache: Cache | None,
    layer: int,
    record: bool,
) -> tuple[Tensor, Tensor]:
    """Return the values that all heads mix, and their pattern (empty if it is not recorded)."""
    R, H, dh = x.shape[0], spec.heads, spec.width // spec.heads
    qkv = _affine(x, p["attn.W_QKV"], p["attn.b_QKV"]).view(R, B, T, 3, H, dh)
    q, k, v = (part.transpose(2, 3) for part in qkv.unbind(3))
    if cache is not None:
        if layer < len(cache):
            k, v = (torch.cat([old, new], 3) for old, new in zip(cache[layer], (k, v), strict=True))
            cache[layer] = (k, v)
        else:
            cache.append((k, v))
    if record:
        pattern = (q @ k.transpose(-1, -2) / math.sqrt(dh) + bias).softmax(-1)
        mixed = pattern @ v
    else:
        pattern = x.new_empty(0)
        mixed = F.scaled_dot_product_attention(
            q.reshape(R * B, H, T, dh), k.reshape(R * B, H, -1, dh), v.reshape(R * B, H, -1, dh), attn_mask=bias[None]
        ).view(R, B, H, T, dh)
    return mixed.transpose(2, 3).reshape(R, B * T, spec.width), pattern


def _dropped(x: Tensor, dropout: tuple[float, list[torch.Generator]] | None) -> Tensor:
    """Return ``x`` with a share of its entries 0 and the others larger; each replica draws by itself."""
    if dropout is None or not dropout[0]:
        return x
    rate, generators = dropout
    shape = x.shape[1:]
    kept = torch.stack([torch.rand(shape, generator=g, device=g.device) for g in generators]) >= rate
    return x * kept.to(x.device) / (1 - rate)


def _affine(x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    return torch.baddbmm(b[:, None], x, W)


def _norm(p: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], eps=LN_EPS) * p[f"{name}.w"][:, None] + p[f"{name}.b"][:, None]


def decode(ensemble: Ensemble, tokens: Int[Tensor, "R B T"], n_symbols: int) -> Int[Tensor, "R B T"]:
    """Return the states that a scratchpad model answers, (R, B, T), writing each answer behind its symbol.

    Its sequence is s_1 q_1 s_2 ..., its vocabulary the symbols, then the states (section 3.4.5.2.3).
    """
    R = ensemble.params["head.W"].shape[0]
    tokens = tokens.expand(R, *tokens.shape[1:])
    cache: Cache = []
    states: list[Tensor] = []
    for t in range(tokens.shape[2]):
        new = tokens[:, :, t : t + 1]
        if states:
            new = torch.cat([states[-1][..., None] + n_symbols, new], 2)
        logits, _ = forward(ensemble.spec, ensemble.params, ensemble.table, new, cache=cache)
        states.append(logits[:, :, -1].argmax(-1))
    return torch.stack(states, 2)


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
