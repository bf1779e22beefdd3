"""The model of Proposition 5 (Liu 2024, section 3.5.7.3): one layer and head, no normalisation, linear positions.

v_t = [e(sigma_t); t / C] with t = 1, 2, ... and C the training length; scores <W_Q v_i, W_K v_j> / sqrt(d); then
h = v + W_O (attended W_V v) and h + MLP(h) with ReLU, and a linear head. R models of one shape side by side.

Names and shapes of parameters, without the replica axis (d = width, V = inputs, O = outputs): ``embed.W`` (V, d - 1),
``attn.W_Q``, ``attn.W_K``, ``attn.W_V``, ``attn.W_O`` (d, d), ``mlp.W_in`` (d, 4d), ``mlp.b_in``, ``mlp.W_out``
(4d, d), ``mlp.b_out``, ``head.W`` (d, O), ``head.b`` (O,).

``forward`` can record ``blocks.0.attn.pattern`` (R, B, 1, T, T) and ``blocks.0.attn.norms`` (R, B, 1, T), |W_O W_V v|.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.store import checkpoints

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float, Int

PATTERN, NORMS = "blocks.0.attn.pattern", "blocks.0.attn.norms"


@dataclass(frozen=True)
class Spec:
    """The shape of a model; ``scale`` is C, the position whose coordinate is 1."""

    width: int
    scale: int
    inputs: int
    outputs: int

    @property
    def layers(self) -> int:
        """One, as of the other families."""
        return 1

    @property
    def heads(self) -> int:
        """One."""
        return 1


Ensemble = checkpoints.Ensemble[Spec]


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every trained parameter of one model, in the order they are initialised."""
    d = spec.width
    return {
        "embed.W": (spec.inputs, d - 1),
        **{f"attn.W_{name}": (d, d) for name in "QKVO"},
        "mlp.W_in": (d, 4 * d),
        "mlp.b_in": (4 * d,),
        "mlp.W_out": (4 * d, d),
        "mlp.b_out": (d,),
        "head.W": (d, spec.outputs),
        "head.b": (spec.outputs,),
    }


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the weights of one model before training: embeddings N(0, 1), linear maps uniform within
    1/sqrt(inputs), biases 0."""
    values = {}
    for name, shape in shapes(spec).items():
        if name == "embed.W":
            values[name] = rng.normal(0.0, 1.0, shape)
        else:
            values[name] = rng.uniform(-1, 1, shape) / math.sqrt(shape[0]) * (len(shape) == 2)
    return values


def embedded(spec: Spec, params: dict[str, Tensor], ids: Int[Tensor, "R B T"]) -> Float[Tensor, "R B T d"]:
    """Return v_t of all positions."""
    R = params["head.W"].shape[0]
    _, B, T = ids.shape
    flat = ids.expand(R, B, T).reshape(R, B * T, 1).expand(-1, -1, spec.width - 1)
    tokens = params["embed.W"].gather(1, flat).view(R, B, T, -1)
    at = torch.arange(1, T + 1, device=ids.device).to(tokens) / spec.scale
    return torch.cat([tokens, at[:, None].expand(R, B, T, 1)], -1)


def forward(
    spec: Spec,
    params: dict[str, Tensor],
    table: Tensor,
    ids: Int[Tensor, "R B T"],
    dropout: None = None,
    record: Collection[str] = (),
) -> tuple[Float[Tensor, "R B T O"], dict[str, Tensor]]:
    """Return logits of all positions and the recorded activations.

    ``ids`` with a replica axis of 1 gives every replica the same input. Raises SandglassError for a name in ``record``
    that this model does not have.
    """
    if unknown := {*record} - {PATTERN, NORMS}:
        raise SandglassError(f"cannot record {sorted(unknown)}; this model has: {PATTERN}, {NORMS}")
    v = embedded(spec, params, ids)
    R, B, T, d = v.shape
    flat = v.view(R, B * T, d)
    q, k, value = (torch.bmm(flat, params[f"attn.W_{name}"]).view(R, B, T, d) for name in "QKV")
    ahead = torch.ones(T, T, dtype=torch.bool, device=v.device).triu(1)
    scores = q @ k.transpose(-1, -2) / math.sqrt(d)
    pattern = scores.masked_fill(ahead, -math.inf).softmax(-1)
    mixed = (pattern @ value).view(R, B * T, d)
    h = torch.baddbmm(flat, mixed, params["attn.W_O"])
    inner = torch.baddbmm(params["mlp.b_in"][:, None], h, params["mlp.W_in"]).relu()
    h = h + torch.baddbmm(params["mlp.b_out"][:, None], inner, params["mlp.W_out"])
    logits = torch.baddbmm(params["head.b"][:, None], h, params["head.W"])
    recorded: dict[str, Tensor] = {}
    if PATTERN in record:
        recorded[PATTERN] = pattern[:, :, None]
    if NORMS in record:
        recorded[NORMS] = (value @ params["attn.W_O"][:, None]).norm(dim=-1)[:, :, None]
    return logits.view(R, B, T, spec.outputs), recorded


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
