"""Transformers with a leading replica axis: R models of one shape, trained and read together.

Layers come in the forms that the studies need (``Spec.block``), column vectors of the papers
written as rows here (rows of an attention pattern are queries):

``gpt``       H = X + Attn(X) W_O;  X' = H + W_out gelu_tanh(W_in LN(H)): no normalisation before
              attention, none at the end (DYCK-M1 to M3: Wen et al. 2023, section 4.1, D.1, and the
              authors' release).
``resln``     H = X + Attn(X) W_O;  H' = H + LN(H);  X' = H' + W_out gelu_tanh(W_in H'): one more
              residual connection, around the normalisation, nearer to eq. (6) (DYCK-M8: Table 1;
              the formula is the authors' release).
``stripped``  X' = LN(Attn(X)): no residual, output projection or MLP, the single trained layer
              on top of a minimal first layer (DYCK-M4 to M6: section 4.1, D.1).
``no_skip``   H = X + LN(Attn(X) W_O);  X' = W_out gelu_tanh(W_in H): no skip connection around the MLP,
              the order of eq. (6) with the parts of a GPT (DYCK-M10: the copy task of appendix B.1).

``Spec.attention`` is ``learned`` or ``uniform``: query vectors times 0, so that every query spreads
its attention evenly over what it may see, and all else is trained (DYCK-M7: footnote 4).

Names and shapes of parameters, without the replica axis (d = width, f = ffn, O = outputs):

``blocks.{l}.attn.W_QKV``  (d, 3d)   columns q | k | v, each split into heads
``blocks.{l}.attn.b_QKV``  (3d,)
``blocks.{l}.attn.W_O``    (d, d)    and ``b_O`` (d,)
``blocks.{l}.ln.w, .b``    (d,)
``blocks.{l}.mlp.W_in``    (d, f)    and ``b_in`` (f,), ``W_out`` (f, d), ``b_out`` (d,)
``head.W``                 (d, O)

Names that ``forward`` can record, and that a hook can change: ``blocks.{l}.attn.pattern`` (R, B, H, T, T).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
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

Hook = Callable[[Tensor], Tensor]  # an activation, and what the model goes on with in its place
NO_HOOKS: Mapping[str, Hook] = {}


@dataclass(frozen=True)
class Spec:
    """The shape of a model; ``inputs`` and ``outputs`` count the symbols it reads and predicts."""

    block: str
    layers: int
    heads: int
    width: int
    ffn: int
    attention: str
    position: str
    t_max: int
    inputs: int
    outputs: int


Ensemble = checkpoints.Ensemble[Spec]


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every trained parameter of one model, in the order they are initialised."""
    d, f = spec.width, spec.ffn
    parameters: dict[str, tuple[int, ...]] = {}
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        parameters |= {f"{at}.attn.W_QKV": (d, 3 * d), f"{at}.attn.b_QKV": (3 * d,)}
        if spec.block != "stripped":
            parameters |= {f"{at}.attn.W_O": (d, d), f"{at}.attn.b_O": (d,)}
        parameters |= {f"{at}.ln.w": (d,), f"{at}.ln.b": (d,)}
        if spec.block != "stripped":
            parameters |= {f"{at}.mlp.W_in": (d, f), f"{at}.mlp.b_in": (f,)}
            parameters |= {f"{at}.mlp.W_out": (f, d), f"{at}.mlp.b_out": (d,)}
    return parameters | {"head.W": (d, spec.outputs)}


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the weights of one model before training, drawn in float64 so that no device changes them:
    N(0, 0.02^2), the outputs of residual branches scaled by 1/sqrt(2 layers), biases 0, LN 1 and 0."""
    values = {}
    for name, shape in shapes(spec).items():
        kind = name.rsplit(".", 1)[1]
        std = INIT_STD / math.sqrt(2 * spec.layers) if kind in ("W_O", "W_out") else INIT_STD
        normal = rng.normal(0.0, std, shape)
        values[name] = normal if kind.startswith("W") else normal * 0 + (kind == "w")
    return values


def forward(
    spec: Spec,
    params: dict[str, Tensor],
    table: Float[Tensor, "V d"],
    ids: Int[Tensor, "R B T"],
    positions: Int[Tensor, "R B T"] | None = None,
    segments: Int[Tensor, "R B T"] | None = None,
    record: Collection[str] = (),
    select: Int[Tensor, "R K"] | None = None,
    hooks: Mapping[str, Hook] = NO_HOOKS,
) -> tuple[Float[Tensor, "R B T O"] | Float[Tensor, "R K O"], dict[str, Tensor]]:
    """Return the logits for the next symbol at every position, and the recorded activations.

    ``ids`` with a replica axis of 1 gives every replica the same input. ``positions`` (default
    0..T-1) feed the position code; tokens attend only within their ``segment`` (default: all one),
    so that several sequences may share a row. With ``select``, places in the B*T flattened
    positions, only these get logits, and what the last layer computes after its attention.

    ``hooks`` change activations by name (activation patching): the model goes on with what the hook makes
    of its argument, and that is what is recorded.

    Raises SandglassError for a name in ``record`` or ``hooks`` that this model does not have.
    """
    known = [f"blocks.{layer}.attn.pattern" for layer in range(spec.layers)]
    if unknown := {*record, *hooks} - {*known}:
        raise SandglassError(f"cannot record {sorted(unknown)}; this model has: {', '.join(known)}")
    R = params["head.W"].shape[0]
    _, B, T = ids.shape
    x_RxNxD = _embed(spec, table, ids, positions).expand(R, B, T, spec.width).reshape(R, B * T, spec.width)
    mask = _mask(segments, T, x_RxNxD)
    if segments is not None:
        mask = mask.expand(R, B, T, T).reshape(R * B, 1, T, T)
    recorded: dict[str, Tensor] = {}
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        p = _layer(spec, params, at)
        name, hook = f"{at}.attn.pattern", hooks.get(f"{at}.attn.pattern")
        if layer == 0 and spec.position == "none" and name not in record and hook is None:
            o_RxNxD = _attention_by_counts(spec, p, table, ids, mask)
        else:
            o_RxNxD, pattern_RxBxHxTxT = _attention(spec, p, x_RxNxD, mask, B, T, hook)
            if name in record:
                recorded[name] = pattern_RxBxHxTxT
        if select is not None and layer == spec.layers - 1:
            wide = select[..., None].expand(-1, -1, spec.width)
            o_RxNxD, x_RxNxD = o_RxNxD.gather(1, wide), x_RxNxD.gather(1, wide)
        x_RxNxD = _after_attention(spec, p, x_RxNxD, o_RxNxD)
    logits = torch.bmm(x_RxNxD, params["head.W"])
    return logits if select is not None else logits.view(R, B, T, spec.outputs), recorded


def _layer(spec: Spec, params: dict[str, Tensor], at: str) -> dict[str, Tensor]:
    """Return the parameters of one layer by their own names; queries times 0 where attention is uniform."""
    p = {name.removeprefix(f"{at}."): value for name, value in params.items() if name.startswith(f"{at}.")}
    if spec.attention == "uniform":
        kept = torch.ones_like(p["attn.b_QKV"][:1])
        kept[:, : spec.width] = 0
        p |= {"attn.W_QKV": p["attn.W_QKV"] * kept[:, None], "attn.b_QKV": p["attn.b_QKV"] * kept}
    return p


def _embed(spec: Spec, table: Tensor, ids: Tensor, positions: Tensor | None) -> Tensor:
    """Return the frozen embeddings; the linear position code i/t_max takes the last coordinate (M2)."""
    x = table[ids]
    if spec.position == "linear":
        if positions is None:
            positions = torch.arange(ids.shape[-1], device=ids.device).expand(ids.shape)
        code = torch.zeros(spec.width, dtype=x.dtype, device=x.device)
        code[-1] = 1.0 / spec.t_max
        x = x + positions[..., None].to(x.dtype) * code
    return x


def _mask(segments: Tensor | None, T: int, like: Tensor) -> Tensor:
    """Return an additive mask: 0 where a query may look, -inf elsewhere (never a large finite number)."""
    allowed = torch.ones(T, T, dtype=torch.bool, device=like.device).tril()
    if segments is not None:
        allowed = allowed & (segments[..., :, None] == segments[..., None, :])
    return torch.zeros(allowed.shape, dtype=like.dtype, device=like.device).masked_fill(~allowed, -math.inf)


def _attention(
    spec: Spec, p: dict[str, Tensor], x: Tensor, mask: Tensor, B: int, T: int, hook: Hook | None
) -> tuple[Tensor, Tensor]:
    """Return the softmax attention of all heads, logits scaled by 1/sqrt(head width), and its pattern."""
    R, H, dh = x.shape[0], spec.heads, spec.width // spec.heads
    qkv = _affine(x, p["attn.W_QKV"], p["attn.b_QKV"]).view(R * B, T, 3, H, dh)
    q, k, v = (t.transpose(1, 2) for t in qkv.unbind(2))
    scores = torch.matmul(q, k.transpose(-1, -2)) * (1 / math.sqrt(dh)) + mask
    pattern = scores.softmax(-1).view(R, B, H, T, T)
    if hook is not None:
        pattern = hook(pattern)
    mixed = torch.matmul(pattern.reshape(R * B, H, T, T), v).transpose(1, 2)
    return mixed.reshape(R, B * T, spec.width), pattern


def _attention_by_counts(spec: Spec, p: dict[str, Tensor], table: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the output of `_attention` for a first layer whose inputs carry no position: exact, and linear
    in the length.

    What a query mixes depends only on how often each of the V symbols has come before it, so the
    softmax runs over symbols, with the logarithm of their counts added to the logits.
    """
    R, H, dh, V = p["attn.W_QKV"].shape[0], spec.heads, spec.width // spec.heads, table.shape[0]
    _, B, T = ids.shape
    seen = (mask == 0).to(table.dtype).view(-1, T, T)  # (1 or R*B, T, T)
    onehot = F.one_hot(ids, V).to(table.dtype).reshape(-1, T, V)
    log_counts = torch.matmul(seen, onehot).log().view(-1, B * T, 1, V)
    qkv = _affine(table.expand(R, -1, -1), p["attn.W_QKV"], p["attn.b_QKV"]).view(R, V, 3, H, dh)
    q_RxVxHxA, k_RxVxHxA, v_RxVxHxA = qkv.unbind(2)
    logits_RxVxHxV = torch.einsum("rqha,rkha->rqhk", q_RxVxHxA, k_RxVxHxA) * (1 / math.sqrt(dh))
    flat = ids.expand(R, B, T).reshape(R, B * T)
    picked = logits_RxVxHxV.reshape(R, V, H * V).gather(1, flat[..., None].expand(-1, -1, H * V))
    share_RxNxHxV = (picked.view(R, B * T, H, V) + log_counts).softmax(-1)
    return torch.einsum("rnhv,rvha->rnha", share_RxNxHxV, v_RxVxHxA).reshape(R, B * T, spec.width)


def _after_attention(spec: Spec, p: dict[str, Tensor], x_RxNxD: Tensor, o_RxNxD: Tensor) -> Tensor:
    """Return what a layer makes of its input ``x`` and of the values ``o`` that its attention mixed."""
    if spec.block == "stripped":
        return _layer_norm(p, o_RxNxD)
    a_RxNxD = _affine(o_RxNxD, p["attn.W_O"], p["attn.b_O"])
    if spec.block == "no_skip":
        return _mlp(p, x_RxNxD + _layer_norm(p, a_RxNxD))
    h_RxNxD = x_RxNxD + a_RxNxD
    z_RxNxD = _layer_norm(p, h_RxNxD)
    if spec.block == "resln":
        z_RxNxD = h_RxNxD = h_RxNxD + z_RxNxD
    return h_RxNxD + _mlp(p, z_RxNxD)


def _mlp(p: dict[str, Tensor], x_RxNxD: Tensor) -> Tensor:
    inner = F.gelu(_affine(x_RxNxD, p["mlp.W_in"], p["mlp.b_in"]), approximate="tanh")
    return _affine(inner, p["mlp.W_out"], p["mlp.b_out"])


def _affine(x_RxNxA: Tensor, W_RxAxB: Tensor, b_RxB: Tensor) -> Tensor:
    return torch.baddbmm(b_RxB[:, None], x_RxNxA, W_RxAxB)


def _layer_norm(p: dict[str, Tensor], x_RxNxD: Tensor) -> Tensor:
    return F.layer_norm(x_RxNxD, x_RxNxD.shape[-1:], eps=LN_EPS) * p["ln.w"][:, None] + p["ln.b"][:, None]


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
