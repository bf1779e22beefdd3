"""Transformers of GPT-2's and of BERT's form (Liu 2024, sections 4.2.7.2, 4.2.8.4.1, 4.2.9), S side by side in each
replica.

Both embed tokens and learned positions, and have MLPs of 4 times the width. Heads have ``head_width`` channels; their
outputs are concatenated or, with ``average``, averaged. Weights start from N(0, s^2), biases from 0; s = 0.02 in both
publications.

GPT-2: attention looks back, blocks normalise before attention and before the MLP (GELU by tanh), a last normalisation
follows, and logits are read without a bias. Weights that end a block start from N(0, s^2 / (2 layers)).

BERT: attention looks everywhere, a constant type vector is embedded as well, and embeddings and each sum are
normalised (exact GELU). Logits are read through a layer with GELU and a normalisation, by the embedding of tokens
itself and a bias.

Parameters, without the replica axis and behind an axis S (D = width, c = heads x head_width, V = inputs, O = outputs):

``embed.W`` (V, D) and ``embed.P`` (t_max, D)
``blocks.{l}.ln1.w, .b`` (D,) and ``ln2``
``blocks.{l}.attn.W_QKV`` (D, 3c), ``b_QKV`` (3c,), ``W_O`` (c, D), or (head_width, D) of averaged heads, ``b_O`` (D,)
``blocks.{l}.mlp.W_in`` (D, 4D), ``b_in``, ``W_out`` (4D, D), ``b_out``
GPT-2: ``ln.w, .b`` (D,) and ``head.W`` (D, O)
BERT: ``embed.W_type`` (1, D), ``embed.ln.w, .b``, ``head.W_in`` (D, D), ``b_in``, ``head.ln.w, .b``, ``b_out`` (V,)

``forward`` can record ``blocks.{l}.attn.pattern`` (R, S, B, H, T, T).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.store import checkpoints

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from numpy.typing import NDArray

GPT2, BERT = "gpt2", "bert"
LN_EPS = {GPT2: 1e-5, BERT: 1e-12}
# Tokens up to which attention is trained by plain products: with 8 heads forward and backward take two thirds of the
# time of torch's fused kernel, with 2 heads nine tenths. Beyond, and without a gradient, that is the faster one.
SHORT = 24


@dataclass(frozen=True)
class Spec:
    """The shape of a model. ``start``: standard deviation of its weights before training; ``last``: logits are those
    behind the last token alone; ``clip``: bound on the norm of the gradient of each of the models side by side, which
    would otherwise be clipped together, 0: none."""

    form: str
    side: int
    inputs: int
    outputs: int
    t_max: int
    width: int
    layers: int
    heads: int
    head_width: int
    average: bool
    start: float
    last: bool
    clip: float


Ensemble = checkpoints.Ensemble[Spec]


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every trained parameter."""
    D, c = spec.width, spec.heads * spec.head_width
    mixed = spec.head_width if spec.average else c
    parameters: dict[str, tuple[int, ...]] = {"embed.W": (spec.inputs, D), "embed.P": (spec.t_max, D)}
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        parameters |= {f"{at}.ln1.w": (D,), f"{at}.ln1.b": (D,), f"{at}.ln2.w": (D,), f"{at}.ln2.b": (D,)}
        parameters |= {f"{at}.attn.W_QKV": (D, 3 * c), f"{at}.attn.b_QKV": (3 * c,)}
        parameters |= {f"{at}.attn.W_O": (mixed, D), f"{at}.attn.b_O": (D,)}
        parameters |= {f"{at}.mlp.W_in": (D, 4 * D), f"{at}.mlp.b_in": (4 * D,)}
        parameters |= {f"{at}.mlp.W_out": (4 * D, D), f"{at}.mlp.b_out": (D,)}
    if spec.form == BERT:
        parameters |= {"embed.W_type": (1, D), "embed.ln.w": (D,), "embed.ln.b": (D,), "head.W_in": (D, D)}
        parameters |= {"head.b_in": (D,), "head.ln.w": (D,), "head.ln.b": (D,), "head.b_out": (spec.inputs,)}
    else:
        parameters |= {"ln.w": (D,), "ln.b": (D,), "head.W": (D, spec.outputs)}
    return {name: (spec.side, *shape) for name, shape in parameters.items()}


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the weights before training; those of the first models do not depend on how many follow."""
    models = [_one(spec, rng) for _ in range(spec.side)]
    return {name: np.stack([model[name] for model in models]) for name in shapes(spec)}


def _one(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    weights = {}
    for name, (_, *shape) in shapes(spec).items():
        kind = name.rsplit(".", 1)[1]
        if kind.startswith("W") or kind == "P":
            ends = kind in ("W_O", "W_out") and spec.form == GPT2
            weights[name] = rng.normal(0.0, spec.start / (math.sqrt(2 * spec.layers) if ends else 1), shape)
        else:
            weights[name] = np.full(shape, float(kind == "w"))
    return weights


def forward(
    spec: Spec,
    params: dict[str, Tensor],
    table: Tensor,
    ids: Int[Tensor, "R S B T"],
    visible: Bool[Tensor, "R S B T"] | None = None,
    places: Int[Tensor, "R S P"] | None = None,
    record: Collection[str] = (),
) -> tuple[Float[Tensor, "R S P O"], dict[str, Tensor]]:
    """Return logits and the recorded activations: logits behind all tokens, (R, S, B, T, O), behind the last one with
    ``last``, (R, S, B, O), or at ``places``, which number the tokens of the batch from 0 to B T - 1.

    An axis of 1 in ``ids`` in place of R or S gives all models the same input; ``visible`` and ``places`` have the
    axes of ``ids``. Tokens that are not visible are attended to by none, in GPT-2 by none but themselves; without
    ``visible`` all are seen that the form lets see. ``record`` takes ``blocks.{l}.attn.pattern`` (R, S, B, H, T, T)
    and ``last`` (R, S, B, T, D), what the last block leaves.

    Raises SandglassError for another name in ``record``, or an input longer than the model's positions.
    """
    known = [f"blocks.{layer}.attn.pattern" for layer in range(spec.layers)]
    known += [] if spec.last else ["last"]
    if unknown := {*record} - {*known}:
        raise SandglassError(f"cannot record {sorted(unknown)}; this model has: {', '.join(known)}")
    R, S = params["embed.W"].shape[:2]
    B, T = ids.shape[-2:]
    if spec.t_max < T:
        raise SandglassError(f"an input of {T} tokens is longer than the {spec.t_max} positions of this model")
    own = {name: value.flatten(0, 1) for name, value in _clipped(spec, params).items()}
    N, D = R * S, spec.width
    bert = spec.form == BERT
    flat = ids.expand(R, S, B, T).reshape(N, B * T)
    x = _at(own["embed.W"], _rows(flat, spec.inputs)).view(N, B, T, D)
    x = (x + own["embed.P"][:, None, :T]).reshape(N, B * T, D)
    if bert:
        x = _norm(spec, own, "embed.ln", x + own["embed.W_type"])
    seen = None if visible is None else visible.expand(R, S, B, T).reshape(N * B, 1, 1, T)
    if seen is not None and not bert:
        back = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        seen = (seen & back) | torch.eye(T, dtype=torch.bool, device=x.device)
    allowed = torch.ones(T, T, dtype=torch.bool, device=x.device) if seen is None else seen
    allowed = allowed if bert or seen is not None else allowed.tril()
    low = _low(spec, allowed, x) if T <= SHORT and x.requires_grad else None
    rows = None if places is None else _rows(places.expand(R, S, -1).reshape(N, -1), B * T)
    recorded: dict[str, Tensor] = {}
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        qkv = _affine(x if bert else _norm(spec, own, f"{at}.ln1", x), own, f"{at}.attn", "QKV")
        q, k, v = (part.transpose(2, 3) for part in qkv.view(N, B, T, 3, spec.heads, -1).unbind(3))
        if f"{at}.attn.pattern" in record:
            scores = (q @ k.transpose(-1, -2) / math.sqrt(spec.head_width)).view(N * B, spec.heads, T, T)
            pattern = scores.masked_fill(~allowed, -math.inf).softmax(-1)
            recorded[f"{at}.attn.pattern"] = pattern.view(R, S, B, spec.heads, T, T)
        # Behind the keys and values of the last block only the last token is read.
        ending = spec.last and layer == spec.layers - 1
        if ending:
            q, x = q[..., -1:, :], x.view(N, B, T, D)[:, :, -1]
        inputs = [part.reshape(N * B, *part.shape[2:]) for part in (q, k, v)]
        if low is not None and not ending:
            mixed = _attention(inputs, low)
        else:
            shown = seen[..., -1:, :] if ending and seen is not None else seen
            causal = not bert and not ending and seen is None
            mixed = F.scaled_dot_product_attention(*inputs, attn_mask=shown, is_causal=causal)  # type: ignore[misc, arg-type]
        mixed = mixed.view(q.shape)
        mixed = (mixed.mean(2) if spec.average else mixed.transpose(2, 3)).reshape(N, x.shape[1], -1)
        if rows is not None and layer == spec.layers - 1 and "last" not in record:
            # What follows the last attention mixes no tokens, so it is computed where it is asked for alone.
            x, mixed = _at(x, rows), _at(mixed, rows)
        x = _onward(spec, own, at, x, mixed)
    if "last" in record:
        recorded["last"] = x.view(R, S, B, T, D)
        x = x if rows is None else _at(x, rows)
    if bert:
        x = _norm(spec, own, "head.ln", F.gelu(_affine(x, own, "head", "in")))
        logits = torch.baddbmm(own["head.b_out"][:, None], x, own["embed.W"].transpose(1, 2))
    else:
        logits = _norm(spec, own, "ln", x) @ own["head.W"]
    each = [-1] if places is not None else [B] if spec.last else [B, T]
    return logits.view(R, S, *each, spec.outputs), recorded


def answers(
    spec: Spec,
    params: dict[str, Tensor],
    ids: NDArray[np.integer[Any]],
    chosen: NDArray[np.bool_],
    visible: NDArray[np.bool_] | None,
    numbers: int,
) -> Float[Tensor, "N P O"]:
    """Return the logits of all models, replica by replica, at the ``chosen`` tokens of sentences ``ids`` (B, T), in
    order; ``visible`` (B, T) are those that may be attended to, all if it is none.

    Sentences of a length are read together, so that nothing behind their last token is computed, and no mask where all
    is seen. About so many ``numbers`` of hidden values are held at once.
    """
    models = params["embed.W"].shape[0] * spec.side
    needed = chosen if visible is None else chosen | visible
    lengths = needed.shape[1] - needed[:, ::-1].argmax(1)
    order = (np.cumsum(chosen) - 1).reshape(chosen.shape)
    outputs, places = [], []
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        size = max(1, numbers // (models * 8 * spec.width * length))  # inputs and outputs of a GELU are the widest
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            targets = chosen[some, :length]
            seen = None if visible is None or visible[some, :length].all() else visible[some, :length]
            logits, _ = forward(
                spec,
                params,
                torch.zeros(1, 1),
                torch.from_numpy(ids[some, :length].astype(np.int64))[None, None],
                None if seen is None else torch.from_numpy(seen)[None, None],
                torch.from_numpy(np.flatnonzero(targets))[None, None],
            )
            outputs.append(logits.flatten(0, 1))
            places.append(order[some, :length][targets])
    both = torch.cat(outputs, 1)
    return torch.empty_like(both).index_copy_(1, torch.from_numpy(np.concatenate(places)), both)


def behind(
    spec: Spec, params: dict[str, Tensor], ids: NDArray[np.integer[Any]], numbers: int
) -> Float[Tensor, "N B O"]:
    """Return the logits of all models of GPT-2's form, replica by replica, behind the last tokens of ``ids`` (B, T).

    What strings have in common at their start is read once, since nothing behind it changes it. About so many
    ``numbers`` of hidden values are held at once, and keys and values of the beginnings.
    """
    strings, place = np.unique(ids, axis=0, return_inverse=True)
    logits = []
    for weights in zip(*(value.flatten(0, 1).split(1) for value in params.values()), strict=True):
        own = dict(zip(params, weights, strict=True))
        (x,) = _read(spec, own, strings, numbers, ending=True)
        logits.append(_norm(spec, own, "ln", x) @ own["head.W"])
    return torch.cat(logits)[:, torch.from_numpy(place.reshape(-1))]


def _read(
    spec: Spec, own: dict[str, Tensor], strings: NDArray[np.integer[Any]], numbers: int, *, ending: bool
) -> list[Tensor]:
    """Return of one model what its last block leaves behind the last of distinct strings (B, T), (1, B, D), if
    ``ending``, or else keys and values of all tokens in each block, (T, B, 2, H, C)."""
    T, start, heads = strings.shape[1], _shared(strings), (spec.heads, spec.head_width)
    past: list[Tensor] = []
    parents: tuple[Tensor | None, ...] = (None,) * len(strings)
    tokens = torch.from_numpy(strings[:, start:].T.astype(np.int64))
    size = max(1, numbers // (8 * spec.width * len(tokens)))
    if start:
        beginnings, place = np.unique(strings[:, :start], axis=0, return_inverse=True)
        past = _read(spec, own, beginnings, numbers, ending=False)
        parents = torch.from_numpy(place.reshape(-1)).split(size)
    allowed = torch.ones(len(tokens), T, dtype=torch.bool).tril(start)
    states: list[list[Tensor]] = []
    for ids, of in zip(tokens.split(size, 1), parents, strict=False):
        s, n = ids.shape
        x = own["embed.W"][:, ids.flatten()] + own["embed.P"][:, start:T].repeat_interleave(n, 1)
        kept: list[Tensor] = []
        for layer in range(spec.layers):
            at = f"blocks.{layer}"
            qkv = _affine(_norm(spec, own, f"{at}.ln1", x), own, f"{at}.attn", "QKV").view(s, n, 3, *heads)
            kept.append(qkv[:, :, 1:] if of is None else torch.cat((past[layer][:, of], qkv[:, :, 1:])))
            if layer == spec.layers - 1:
                if not ending:
                    break
                qkv, x, allowed_here = qkv[-1:], x[:, -n:], None
            else:
                allowed_here = allowed
            q, k, v = (part.permute(1, 2, 0, 3) for part in (qkv[:, :, 0], *kept[-1].unbind(2)))
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed_here).permute(2, 0, 1, 3)
            mixed = (mixed.mean(2) if spec.average else mixed.flatten(2)).reshape(1, x.shape[1], -1)
            x = _onward(spec, own, at, x, mixed)
        states.append([x] if ending else kept)
    return [torch.cat(parts, 1) for parts in zip(*states, strict=True)]


def _shared(strings: NDArray[np.integer[Any]]) -> int:
    """Return the length of the beginnings of distinct, sorted strings that is best read once for all who share them,
    0 if that saves less than a quarter of the tokens."""
    B, T = strings.shape
    apart = (strings[1:] != strings[:-1]).cumsum(1) > 0  # from which place on a string is not the one before
    lengths = np.arange(1, T)
    read = (1 + apart.sum(0)[:-1]) * lengths + B * (T - lengths)
    return int(lengths[read.argmin()]) if T > 1 and read.min() < 0.75 * B * T else 0


def _onward(spec: Spec, own: dict[str, Tensor], at: str, x: Tensor, mixed: Tensor) -> Tensor:
    """Return what the block ``at`` leaves (N, L, D) of its input and of what its attention has read."""
    bert = spec.form == BERT
    x = x + _affine(mixed, own, f"{at}.attn", "O")
    if bert:
        x = _norm(spec, own, f"{at}.ln1", x)
    inner = _affine(x if bert else _norm(spec, own, f"{at}.ln2", x), own, f"{at}.mlp", "in")
    x = x + _affine(F.gelu(inner, approximate="none" if bert else "tanh"), own, f"{at}.mlp", "out")
    return _norm(spec, own, f"{at}.ln2", x) if bert else x


def _rows(places: Tensor, length: int) -> Tensor:
    """Return the places (N, P) of N sequences of ``length`` rows as numbers of the rows of all, one behind the
    other."""
    return places + torch.arange(len(places), device=places.device)[:, None] * length


def _at(x: Tensor, rows: Tensor) -> Tensor:
    """Return the ``rows`` (N, P), numbered from 0 to N L - 1, of ``x`` (N, L, D): (N, P, D)."""
    return F.embedding(rows, x.flatten(0, 1))  # copies whole rows, where `gather` goes number by number


class _Clip(torch.autograd.Function):
    """Hands weights on as they are, and bounds the norm of the gradient of each model (R, S) over all of them."""

    @staticmethod
    def forward(ctx: Any, limit: float, *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.limit = limit
        return tuple(weight.view_as(weight) for weight in weights)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        squares = torch.stack([gradient.square().flatten(2).sum(-1) for gradient in gradients])
        scale_RxS = ctx.limit / squares.sum(0).sqrt().clamp(min=ctx.limit)
        return None, *(g * scale_RxS.view(*scale_RxS.shape, *[1] * (g.ndim - 2)) for g in gradients)


def _clipped(spec: Spec, params: dict[str, Tensor]) -> dict[str, Tensor]:
    if not spec.clip or not torch.is_grad_enabled():
        return params
    names = list(shapes(spec))
    return dict(zip(names, _Clip.apply(spec.clip, *(params[name] for name in names)), strict=True))


def _low(spec: Spec, allowed: Tensor, like: Tensor) -> Tensor:
    """Return what is added to scores: 0, or the lowest number where a query is not ``allowed`` to see a key; (T, T) as
    that is, or of (n, 1, 1, T) or (n, 1, T, T) so many for each of n sentences and each head, one behind the other."""
    if allowed.ndim > 2:
        allowed = allowed.expand(-1, spec.heads, -1, -1).flatten(0, 1)
    return like.new_zeros(allowed.shape).masked_fill_(~allowed, torch.finfo(like.dtype).min)


def _attention(inputs: list[Tensor], low: Tensor) -> Tensor:
    """Return what queries read of values, (n, H, T, C); ``inputs`` are queries, keys and values of this shape."""
    q, k, v = (part.flatten(0, 1) for part in inputs)
    scores = torch.baddbmm(low, q, k.transpose(1, 2), alpha=1 / math.sqrt(q.shape[-1]))
    return torch.bmm(scores.softmax(-1), v)


def _affine(x: Tensor, params: dict[str, Tensor], module: str, which: str) -> Tensor:
    return torch.baddbmm(params[f"{module}.b_{which}"][:, None], x, params[f"{module}.W_{which}"])


def _norm(spec: Spec, params: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    plain = F.layer_norm(x, x.shape[-1:], eps=LN_EPS[spec.form])
    return torch.addcmul(params[f"{name}.b"][:, None], plain, params[f"{name}.w"][:, None])


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
