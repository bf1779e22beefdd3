"""LSTMs of one layer with a linear head over states, R of one shape side by side (Liu 2024, section 3.4.5.3).

Hochreiter and Schmidhuber's cell as torch.nn.LSTM computes it: gates i | f | g | o.

Names and shapes of parameters, without the replica axis (e = embed, h = width, V = inputs, O = outputs): ``embed.W``
(V, e), ``cell.W_in`` (e, 4h), ``cell.W_hh`` (h, 4h), ``cell.b`` (4h,), ``head.W`` (h, O), ``head.b`` (O,).
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


@dataclass(frozen=True)
class Spec:
    """The shape of a model; ``inputs`` and ``outputs`` count the symbols it reads and predicts."""

    embed: int
    width: int
    inputs: int
    outputs: int


Ensemble = checkpoints.Ensemble[Spec]


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every trained parameter of one model, in the order they are initialised."""
    e, h = spec.embed, spec.width
    return {
        "embed.W": (spec.inputs, e),
        "cell.W_in": (e, 4 * h),
        "cell.W_hh": (h, 4 * h),
        "cell.b": (4 * h,),
        "head.W": (h, spec.outputs),
        "head.b": (spec.outputs,),
    }


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the weights of one model before training: uniform within 1/sqrt(width), embeddings N(0, 1), as torch
    draws them."""
    bound = 1 / math.sqrt(spec.width)
    return {
        name: rng.normal(0.0, 1.0, shape) if name == "embed.W" else rng.uniform(-bound, bound, shape)
        for name, shape in shapes(spec).items()
    }


def forward(
    spec: Spec, params: dict[str, Tensor], table: Tensor, ids: Int[Tensor, "R B T"], record: Collection[str] = ()
) -> tuple[Float[Tensor, "R B T O"], dict[str, Tensor]]:
    """Return logits of all positions, and nothing recorded.

    ``ids`` with a replica axis of 1 gives every replica the same input. Raises SandglassError for a name in ``record``.
    """
    if record:
        raise SandglassError(f"cannot record {sorted(record)}; an LSTM has no attention")
    R = params["head.W"].shape[0]
    _, B, T = ids.shape
    flat = ids.expand(R, B, T).transpose(1, 2).reshape(R, T * B)
    table_RxVx4H = torch.baddbmm(params["cell.b"][:, None], params["embed.W"], params["cell.W_in"])
    inputs = table_RxVx4H.gather(1, flat[..., None].expand(-1, -1, 4 * spec.width)).view(R, T, B, -1)
    h = c = inputs.new_zeros(R, B, spec.width)
    states = []
    for x in inputs.unbind(1):
        i, f, g, o = torch.baddbmm(x, h, params["cell.W_hh"]).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        states.append(h)
    hidden = torch.stack(states, 2).view(R, B * T, spec.width)
    logits = torch.baddbmm(params["head.b"][:, None], hidden, params["head.W"])
    return logits.view(R, B, T, spec.outputs), {}


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
