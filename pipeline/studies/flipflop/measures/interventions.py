"""What the last layer of a decoder looks at where it reads, and what it answers if it looks at one place alone.

Not in the source. The largest weight says little of a model of several layers (section 3.5.6.5, footnote 44). So its
attention is changed, and nothing else: all of it is put on the last write. Of its two tokens each head keeps the
proportion that it has: what else a head would see, it does not; what it looks at in a write stays its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.languages import flipflop as language
from pipeline.models.flipflop import decoder

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Seen:
    """At all reads of some strings, (R, reads): whether the answer is wrong, and whether it is once attention is
    changed; whether weights times lengths of values add up to more for the wrong bit; the weight on the last write."""

    wrong: Bools
    patched_wrong: Bools
    votes: Bools
    on_write: NDArray[np.float64]


def last_layer(
    spec: decoder.Spec, params: dict[str, Tensor], tokens_NxT: NDArray[np.integer]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the stream before the last layer (R, N, T, d), its scores (R, N, H, T, T), -inf on later keys, and its
    values (R, N, H, T, d/H), of models whose positions are in their inputs."""
    (N, T), R = tokens_NxT.shape, params["head.W"].shape[0]
    x = params["embed.W"][:, torch.from_numpy(tokens_NxT.astype(np.int64)).flatten()]
    x = x.view(R, N, T, spec.width)
    if spec.position == "learned":
        x = x + params["embed.P"][:, None, :T] / math.sqrt(spec.width)
    elif spec.position == "sin":
        x = x + decoder.sinusoids(T, spec.width).to(x) / math.sqrt(spec.width)
    x, bias = x.reshape(R, N * T, spec.width), decoder._bias(spec, T)
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        qkv = decoder._norm(params, f"{at}.ln1", x) @ params[f"{at}.attn.W_QKV"]
        q, k, v = decoder._heads(qkv, spec.heads, N, T)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias
        if layer < spec.layers - 1:
            x = added(spec, params, layer, x, (scores.softmax(-1) @ v).transpose(2, 3).reshape(R, N * T, -1))
    return x.view(R, N, T, -1), scores, v


def added(spec: decoder.Spec, params: dict[str, Tensor], layer: int, x: Tensor, mixed: Tensor) -> Tensor:
    """Return the stream (R, n, d) behind a layer whose heads have taken ``mixed`` (R, n, d) of the values."""
    at = f"blocks.{layer}"
    x = torch.baddbmm(x, mixed, params[f"{at}.attn.W_O"])
    inner = decoder._activated(spec, decoder._affine(decoder._norm(params, f"{at}.ln2", x), params, f"{at}.mlp", "in"))
    return x + decoder._affine(inner, params, f"{at}.mlp", "out")


def seen(spec: decoder.Spec, params: dict[str, Tensor], tokens_NxT: NDArray[np.integer]) -> Seen:
    """Return what the models do at all reads of strings with two data symbols."""
    reads = language.reads(tokens_NxT)
    row, at, last = (torch.from_numpy(part) for part in (reads.row, 2 * reads.pair, reads.pair - reads.dist_write))
    x, scores, v = last_layer(spec, params, tokens_NxT[:, :-1])
    R, n, d = x.shape[0], len(row), spec.width
    mixed = (scores.softmax(-1) @ v).transpose(2, 3)[:, row, at]  # (R, reads, H, d/H)
    scores, values = scores.transpose(2, 3)[:, row, at], v.transpose(2, 3)  # (R, reads, H, T), (R, N, T, H, d/H)
    weights = scores.softmax(-1)

    def wrong(mixed: Tensor) -> Bools:
        stream = added(spec, params, spec.layers - 1, x[:, row, at], mixed.reshape(R, n, d))
        stream = decoder._norm(params, "ln", stream)
        logits = torch.baddbmm(params["head.b"][:, None], stream, params["head.W"])
        answers: NDArray[np.int64] = logits.argmax(-1).numpy() - language.DATA
        return answers != reads.target

    data = torch.from_numpy(tokens_NxT[:, :-1].astype(np.int64))[row] - language.DATA  # (reads, T)
    W_O = params[f"blocks.{spec.layers - 1}.attn.W_O"].view(R, 1, spec.heads, -1, d)
    lengths = (v @ W_O).norm(dim=-1)[:, row]  # (R, reads, H, T)
    heavy = (weights * lengths).sum(2)
    for_target, against = (
        (heavy * (data == torch.from_numpy(bit)[:, None])).sum(-1) for bit in (reads.target, 1 - reads.target)
    )
    pairs = torch.stack([2 * last, 2 * last + 1], -1).expand(R, spec.heads, n, 2).transpose(1, 2)
    first, second = scores.gather(-1, pairs).softmax(-1).split(1, -1)
    return Seen(
        wrong(mixed),
        wrong(first * values[:, row, 2 * last] + second * values[:, row, 2 * last + 1]),
        (against > for_target).numpy(),
        weights.gather(-1, pairs).sum(-1).mean(-1).double().numpy(),
    )
