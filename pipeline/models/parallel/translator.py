"""Encoder-decoders of PaDIR's form, and their autoregressive twins (Li 2025, sections 4.2.2, 4.2.3; chapter 3.7).

Layers normalise first (root mean square, a gain and no bias), projections have no bias, the MLP is ReLU. In the
decoder *positional attention* stands between self- and cross-attention: queries and keys are learned vectors of
positions, the same in all layers, and values what the residual stream has, so that a token can be taken from another
place whatever stands there. The embedding is shared by source, target and output. A model that decodes in parallel
attends to all positions and predicts the length behind the first token of the source; its ``causal`` twin looks back
and has no length.

Positions are learned vectors that are added to embeddings or, with ``buckets``, biases of scores by relative position,
as in T5 (32 buckets up to a distance of 128), shared by the layers of a stack.

Parameters, without the replica axis (D = width, V = vocabulary, P = positions):

``embed.E`` (V, D); without buckets ``source.P``, ``target.P`` (P, D), else ``source.bias``, ``target.bias`` (heads,
buckets)
``encoder.{l}.self.`` and ``decoder.{l}.self.``: ``g`` (D,), ``W_QKV`` (D, 3D), ``W_O`` (D, D)
``position.P`` (P, D), and ``decoder.{l}.position.``: ``g``, ``W_QK`` (D, 2D), ``W_V``, ``W_O`` (D, D)
``decoder.{l}.cross.``: ``g``, ``W_Q`` (D, D), ``W_KV`` (D, 2D), ``W_O``
``encoder.{l}.mlp.`` and ``decoder.{l}.mlp.``: ``g``, ``W_in`` (D, inner), ``W_out`` (inner, D)
``encoder.g``, ``decoder.g`` (D,); ``length.E`` (P + 1, D) where lengths are predicted

`encode` and `decode` can record ``<stack>.{l}.<attention>.pattern`` (R, B, H, T, keys).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.store import checkpoints

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

PAD = 0
EPS = 1e-6
FAR = 128  # distance from which relative positions are one bucket


@dataclass(frozen=True)
class Spec:
    """The shape of a model. ``positions`` is the longest source and target, ``positional`` whether the decoder has
    positional attention, ``buckets`` that of relative positions, 0: absolute ones."""

    vocabulary: int
    width: int
    heads: int
    inner: int
    encoder: int
    decoder: int
    positions: int
    causal: bool
    positional: bool
    buckets: int


Ensemble = checkpoints.Ensemble[Spec]


class Memory(NamedTuple):
    """What a decoder reads of sources: ``kv`` (2, R B H, S, C) of each of its layers, ``hidden`` (R B, 1, S), true
    where a source has ended, and ``lengths`` (R, B, P + 1) logits of the length of the target, None of causal
    models."""

    kv: list[Tensor]
    hidden: Bool[Tensor, "RB 1 S"]
    lengths: Float[Tensor, "R B L"] | None


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every trained parameter."""
    D = spec.width
    parameters: dict[str, tuple[int, ...]] = {"embed.E": (spec.vocabulary, D)}
    for stack, of in (("encoder", "source"), ("decoder", "target")):
        parameters |= {f"{of}.bias": (spec.heads, spec.buckets)} if spec.buckets else {f"{of}.P": (spec.positions, D)}
        for layer in range(getattr(spec, stack)):
            at = f"{stack}.{layer}"
            parameters |= {f"{at}.self.g": (D,), f"{at}.self.W_QKV": (D, 3 * D), f"{at}.self.W_O": (D, D)}
            if stack == "decoder":
                if spec.positional:
                    parameters |= {f"{at}.position.g": (D,), f"{at}.position.W_QK": (D, 2 * D)}
                    parameters |= {f"{at}.position.W_V": (D, D), f"{at}.position.W_O": (D, D)}
                parameters |= {f"{at}.cross.g": (D,), f"{at}.cross.W_Q": (D, D), f"{at}.cross.W_KV": (D, 2 * D)}
                parameters |= {f"{at}.cross.W_O": (D, D)}
            parameters |= {f"{at}.mlp.g": (D,), f"{at}.mlp.W_in": (D, spec.inner), f"{at}.mlp.W_out": (spec.inner, D)}
        parameters[f"{stack}.g"] = (D,)
    if spec.positional:
        parameters["position.P"] = (spec.positions, D)
    if not spec.causal:
        parameters["length.E"] = (spec.positions + 1, D)
    return parameters


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the weights before training: N(0, 1 / inputs) of matrices, N(0, 1) of embeddings, gains 1, biases 0.

    That is how T5 starts, which ties input and output as well and divides logits by the root of the width.
    """
    weights = {}
    for name, shape in shapes(spec).items():
        kind = name.rsplit(".", 1)[1]
        if kind == "g":
            weights[name] = np.ones(shape)
        elif kind == "bias":
            weights[name] = np.zeros(shape)
        else:
            inputs = shape[0] if kind.startswith("W_") else 1
            weights[name] = rng.normal(0.0, 1 / math.sqrt(inputs), shape)
    return weights


def forward(
    spec: Spec,
    params: dict[str, Tensor],
    table: Tensor,
    ids: Int[Tensor, "R B T"],
    memory: Memory | None = None,
    record: Collection[str] = (),
) -> tuple[Any, dict[str, Tensor]]:
    """Return what `encode` gives of sources or, with their ``memory``, what `decode` gives of targets."""
    if memory is None:
        return encode(spec, params, ids, record)
    return decode(spec, params, ids, memory, record)


def encode(
    spec: Spec, params: dict[str, Tensor], source: Int[Tensor, "R B S"], record: Collection[str] = ()
) -> tuple[Memory, dict[str, Tensor]]:
    """Return what the decoder reads of sources, `PAD` behind their ends.

    Raises SandglassError for a source longer than the model's positions.
    """
    R, B, _ = source.shape
    stack = _Stack(spec, params, source, "source")
    x = stack.embedded()
    recorded: dict[str, Tensor] = {}
    for layer in range(spec.encoder):
        at = f"encoder.{layer}"
        x = x + stack.attend(x, f"{at}.self", recorded, record)
        x = x + _mlp(params, f"{at}.mlp", x)
    x = norm(x, params["encoder.g"])
    kv = [stack.heads(x @ params[f"decoder.{layer}.cross.W_KV"], 2) for layer in range(spec.decoder)]
    lengths = None
    if not spec.causal:
        first = stack.padded(x).view(R, B, -1, spec.width)[:, :, 0]
        lengths = first @ params["length.E"].transpose(1, 2) / math.sqrt(spec.width)
    return Memory(kv, stack.hidden, lengths), recorded


def decode(
    spec: Spec, params: dict[str, Tensor], target: Int[Tensor, "R B T"], memory: Memory, record: Collection[str] = ()
) -> tuple[tuple[Float[Tensor, "R N V"], Int[Tensor, "R N"]], dict[str, Tensor]]:
    """Return logits of the tokens of targets, one after another without `PAD`, and their places in (B, T), flattened.

    Where replicas have different numbers of tokens, those of the others come with places of `PAD` behind them. Raises
    SandglassError for a target longer than the model's positions.
    """
    stack = _Stack(spec, params, target, "target")
    x = stack.embedded()
    recorded: dict[str, Tensor] = {}
    low = low_scores(memory.hidden, spec.heads, x)
    for layer in range(spec.decoder):
        at = f"decoder.{layer}"
        x = x + stack.attend(x, f"{at}.self", recorded, record)
        if spec.positional:
            x = x + stack.by_position(x, f"{at}.position", recorded, record)
        x = x + stack.cross(x, f"{at}.cross", memory.kv[layer], low, recorded, record)
        x = x + _mlp(params, f"{at}.mlp", x)
    logits = norm(x, params["decoder.g"]) @ params["embed.E"].transpose(1, 2) / math.sqrt(spec.width)
    return (logits, stack.at), recorded


class _Stack:
    """Sequences that a stack reads. Between attentions their tokens stand one after another, (R, N, D): padding, a
    third of (B, T), is not computed."""

    def __init__(self, spec: Spec, params: dict[str, Tensor], ids: Tensor, name: str) -> None:
        self.spec, self.params, self.ids, self.name = spec, params, ids, name
        self.R, self.B, self.T = ids.shape
        if spec.positions < self.T:
            raise SandglassError(
                f"a {name} of {self.T} tokens is longer than the {spec.positions} positions of this model"
            )
        pad = ids == PAD
        self.hidden = pad.view(self.R * self.B, 1, self.T)
        flat = pad.view(self.R, -1)
        most = int((~flat).sum(1).max())
        self.at = flat.to(torch.uint8).argsort(dim=1, stable=True)[:, :most]
        rows = torch.arange(self.R, device=ids.device)[:, None] * (self.B * self.T)
        self.rows = (self.at + rows).flatten()
        self.whole = most == self.B * self.T
        back = spec.causal and name == "target"
        self.blocked = self.hidden
        if back:
            ahead = torch.ones(self.T, self.T, dtype=torch.bool, device=ids.device).triu(1)
            self.blocked = self.hidden | ahead
        self.low = low_scores(self.blocked, spec.heads, params["embed.E"])
        self.low_self = self.low
        if spec.buckets:
            offsets = torch.arange(self.T, device=ids.device)
            buckets = relative_buckets(offsets[None] - offsets[:, None], spec.buckets, both=not back)
            bias = params[f"{name}.bias"][:, None, :, buckets].expand(-1, self.B, -1, -1, -1)  # (R, B, H, T, T)
            self.low_self = self.low + bias.flatten(0, 2)

    def embedded(self) -> Tensor:
        ids = self.ids.reshape(self.R, -1).gather(1, self.at)
        shift = torch.arange(self.R, device=ids.device)[:, None]
        x = F.embedding(ids + shift * self.spec.vocabulary, self.params["embed.E"].flatten(0, 1))
        if not self.spec.buckets:
            places = self.at % self.T + shift * self.spec.positions
            x = x + F.embedding(places, self.params[f"{self.name}.P"].flatten(0, 1))
        return x

    def padded(self, x: Tensor) -> Tensor:
        """Return (R N, ·) as (R B T, ·), 0 where there is no token."""
        x = x.flatten(0, 1)
        return x if self.whole else _Spread.apply(x, self.rows, self.R * self.B * self.T)

    def gathered(self, x: Tensor) -> Tensor:
        """Return (R B T, ·) as (R, N, ·)."""
        return (x if self.whole else _Collect.apply(x, self.rows)).view(self.R, -1, x.shape[-1])

    def heads(self, x: Tensor, parts: int) -> Tensor:
        """Return (R, N, parts D) as (parts, R B H, T, C)."""
        split = self.padded(x).view(self.R * self.B, self.T, parts, self.spec.heads, -1)
        return split.permute(2, 0, 3, 1, 4).reshape(parts, -1, self.T, self.spec.width // self.spec.heads)

    def attend(self, x: Tensor, at: str, recorded: dict[str, Tensor], record: Collection[str]) -> Tensor:
        q, k, v = self.heads(norm(x, self.params[f"{at}.g"]) @ self.params[f"{at}.W_QKV"], 3).unbind(0)
        return self.mixed(_scores(q, k, self.low_self), v, at, recorded, record)

    def by_position(self, x: Tensor, at: str, recorded: dict[str, Tensor], record: Collection[str]) -> Tensor:
        v = self.heads(norm(x, self.params[f"{at}.g"]) @ self.params[f"{at}.W_V"], 1)[0]
        P = self.params["position.P"][:, : self.T]
        qk = F.rms_norm(P, P.shape[-1:], None, EPS) @ self.params[f"{at}.W_QK"]
        q, k = qk.view(self.R, self.T, 2, self.spec.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])  # (R, H, T, T), of all sentences
        scores = scores[:, None] + self.low.view(self.R, self.B, self.spec.heads, -1, self.T)
        return self.mixed(scores.flatten(0, 2), v, at, recorded, record)

    def cross(
        self, x: Tensor, at: str, kv: Tensor, low: Tensor, recorded: dict[str, Tensor], record: Collection[str]
    ) -> Tensor:
        q = self.heads(norm(x, self.params[f"{at}.g"]) @ self.params[f"{at}.W_Q"], 1)[0]
        return self.mixed(_scores(q, kv[0], low), kv[1], at, recorded, record)

    def mixed(self, scores: Tensor, v: Tensor, at: str, recorded: dict[str, Tensor], record: Collection[str]) -> Tensor:
        pattern = scores.softmax(-1)
        if f"{at}.pattern" in record:
            recorded[f"{at}.pattern"] = pattern.view(self.R, self.B, -1, *pattern.shape[1:])
        read = torch.bmm(pattern, v).view(self.R * self.B, self.spec.heads, self.T, -1).transpose(1, 2)
        return self.gathered(read.reshape(self.R * self.B * self.T, -1)) @ self.params[f"{at}.W_O"]


class _Spread(torch.autograd.Function):
    """Rows put to the places ``rows`` of so many; each place takes one, so that nothing is added."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor, count: int) -> Tensor:
        ctx.save_for_backward(rows)
        return x.new_zeros(count, x.shape[1]).index_copy_(0, rows, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (rows,) = ctx.saved_tensors
        return gradients[0].index_select(0, rows), None, None


class _Collect(torch.autograd.Function):
    """Rows taken from the places ``rows``, the reverse of `_Spread`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.count = len(x)
        return x.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (rows,) = ctx.saved_tensors
        return gradients[0].new_zeros(ctx.count, gradients[0].shape[1]).index_copy_(0, rows, gradients[0]), None


def _scores(q: Tensor, k: Tensor, low: Tensor) -> Tensor:
    return torch.baddbmm(low, q, k.transpose(1, 2), alpha=1 / math.sqrt(q.shape[-1]))


def low_scores(blocked_NxQxK: Tensor, heads: int, like: Tensor) -> Tensor:
    """Return what is added to scores of each head (N H, Q, K): a number below all where a key is blocked, else 0."""
    low = like.new_zeros(blocked_NxQxK.shape).masked_fill_(blocked_NxQxK, torch.finfo(like.dtype).min / 2)
    return low.repeat_interleave(heads, 0)


def norm(x: Tensor, gain_RxD: Tensor) -> Tensor:
    """Return ``x`` (R, N, D) over its root mean square, times the gain."""
    return F.rms_norm(x, x.shape[-1:], None, EPS) * gain_RxD[:, None]


def _mlp(params: dict[str, Tensor], at: str, x: Tensor) -> Tensor:
    return (norm(x, params[f"{at}.g"]) @ params[f"{at}.W_in"]).relu() @ params[f"{at}.W_out"]


def relative_buckets(offset: Tensor, count: int, *, both: bool) -> Tensor:
    """Return the buckets of key minus query, as T5 has them: one for each short distance, then ever wider ones; with
    ``both`` half of them are ahead, otherwise what is ahead is of no matter."""
    ahead = torch.zeros_like(offset)
    if both:
        count //= 2
        ahead, distance = (offset > 0).long() * count, offset.abs()
    else:
        distance = (-offset).clamp(min=0)
    exact = count // 2
    far = distance.clamp(min=exact).double()
    wide = exact + ((far / exact).log() / math.log(FAR / exact) * (count - exact)).long()
    return ahead + torch.where(distance < exact, distance, wide.clamp(max=count - 1))


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
