"""Attention-only Transformers with a leading replica axis (DEP-M1, M2: Chen and Zou 2024, section 3.1, eqs 2, 3).

A layer with m heads maps the columns H (d', n) to

    H + (1/m) sum_i V_i H sigma(H' W_i H),    W_i = W_Q' W_K merged to one matrix,

without mask, MLP or normalisation. Entry (j, q) of H' W_i H weighs key j for query q: the first index is the key, as
in eqs (6) to (8) of the paper, not the query as in its eq. (2). ``Spec.attention`` is ``relu``, elementwise
(DEP-M1), or ``softmax`` over keys (DEP-M2: section 16). Columns of the paper are rows of tensors here; W and V stand as
in the paper. What is predicted is read from the last column alone, so the last layer computes no other.

Column j of the first H is the one-hot token, the one-hot position, and zeros up to the width d': rows of `embedding`.

Names and shapes of parameters, without the replica axis (h_l = heads of layer l, O = outputs):

``blocks.{l}.W``  (h_l, d', d')   ``blocks.{l}.V``  (h_l, d', d')   ``head.W``  (d', O)

Names that ``forward`` can record: ``blocks.{l}.attn.pattern`` (R, B, h_l, T, T), indices (key, query), and
``blocks.{l}.out`` (R, B, T, d'), what the layer gives.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.store import checkpoints

if TYPE_CHECKING:
    from jaxtyping import Float, Int

RECORDED = ("attn.pattern", "out")


@dataclass(frozen=True)
class Spec:
    """The shape of a model; ``inputs`` counts the tokens it reads (d), ``outputs`` what it chooses from (C).

    ``heads`` has one number per layer; ``width`` is d', ``length`` the number of positions, that of the longest
    input. ``init`` says where training starts (`initial`), ``later`` and ``readout`` how large W of later
    layers and the classifier are there: by default what the chapter recommends and what the paper has. With
    ``frozen`` no gradient reaches W and V: the classifier alone is trained.
    """

    layers: int
    heads: tuple[int, ...]
    attention: str
    width: int
    length: int
    inputs: int
    outputs: int
    init: str
    later: float = 0.02
    readout: float = 1.0
    frozen: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads", tuple(self.heads))  # JSON knows lists only
        if len(self.heads) != self.layers:
            raise SandglassError(f"heads: expected one number for each of {self.layers} layers, got {self.heads}")
        if self.width < self.inputs + self.length:
            raise SandglassError(
                f"width {self.width} is less than {self.inputs} tokens and {self.length} positions need"
            )


Ensemble = checkpoints.Ensemble[Spec]


def embedding(spec: Spec) -> np.ndarray:
    """Return the rows that stand for each token, then for each position, (d + n, d') float32 (eq. 3)."""
    return np.eye(spec.inputs + spec.length, spec.width, dtype=np.float32)


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every trained parameter of one model, in the order they are initialised."""
    d = spec.width
    parameters: dict[str, tuple[int, ...]] = {}
    for layer, heads in enumerate(spec.heads):
        parameters |= {f"blocks.{layer}.W": (heads, d, d), f"blocks.{layer}.V": (heads, d, d)}
    return parameters | {"head.W": (d, spec.outputs)}


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw the weights of one model before training, in float64 so that no device changes them (section 9.1).

    V is I ("a value of 1"), the classifier uniform in [0, readout). By ``spec.init``, W is uniform in [0, 1)
    in all layers (``memorization``), or 0 in the first layer, for the run to put the construction there, and
    uniform in [0, later) in later ones (``task``). With ``random`` (DEP-R2) everything, V as well, is
    N(0, 1/d').
    """
    values = {}
    for name, shape in shapes(spec).items():
        if spec.init == "random":
            values[name] = rng.normal(0.0, spec.width**-0.5, shape)
        elif name.endswith(".V"):
            values[name] = np.broadcast_to(np.eye(spec.width), shape).copy()
        elif spec.init == "memorization" or name == "head.W":
            values[name] = rng.uniform(0.0, spec.readout if name == "head.W" else 1.0, shape)
        else:
            values[name] = rng.uniform(0.0, spec.later, shape) * (name != "blocks.0.W")
    return values


def forward(
    spec: Spec,
    params: dict[str, Tensor],
    table: Float[Tensor, "V d"],
    ids: Int[Tensor, "R B T"],
    record: Collection[str] = (),
) -> tuple[Float[Tensor, "R B O"], dict[str, Tensor]]:
    """Return the scores of the outputs, read from the last column, and the recorded activations.

    ``ids`` with a replica axis of 1 gives every replica the same input; T may be less than ``spec.length``. Weights
    and table may be float32 or float64.

    Raises SandglassError for a name in ``record`` that this model does not have, and for longer inputs.
    """
    known = [f"blocks.{layer}.{name}" for layer in range(spec.layers) for name in RECORDED]
    if unknown := {*record} - {*known}:
        raise SandglassError(f"cannot record {sorted(unknown)}; this model has: {', '.join(known)}")
    R, (_, B, T) = params["head.W"].shape[0], ids.shape
    if spec.length < T:
        raise SandglassError(f"inputs of {T} tokens, but the model has {spec.length} positions")
    x_RxBxTxD = table[ids] + table[spec.inputs : spec.inputs + T]
    recorded: dict[str, Tensor] = {}
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        names = {f"{at}.{name}" for name in RECORDED} & {*record}
        queries = slice(T - 1, T) if layer == spec.layers - 1 and not names else slice(0, T)
        W, V = (params[f"{at}.{name}"].detach() if spec.frozen else params[f"{at}.{name}"] for name in "WV")
        x_RxBxTxD, pattern_RxBxHxTxQ = _layer(spec.attention, W, V, x_RxBxTxD, queries)
        for name, value in zip(RECORDED, (pattern_RxBxHxTxQ, x_RxBxTxD), strict=True):
            if f"{at}.{name}" in record:
                recorded[f"{at}.{name}"] = value
    return torch.matmul(x_RxBxTxD[:, :, -1].expand(R, B, -1), params["head.W"]), recorded


def _layer(
    attention: str, W_RxHxDxD: Tensor, V_RxHxDxD: Tensor, x_RxBxTxD: Tensor, queries: slice
) -> tuple[Tensor, Tensor]:
    """Return what the layer makes of the columns ``queries`` of H, and the pattern that reads the keys."""
    R, H, D, _ = W_RxHxDxD.shape
    _, B, T, _ = x_RxBxTxD.shape
    x_RxBxTxD = x_RxBxTxD.expand(R, B, T, D)
    q_RxBxQxD = x_RxBxTxD[:, :, queries]
    Q = q_RxBxQxD.shape[2]
    # (W_i q) of all heads in one product, and a row of scores for each query and head: few products, none small.
    stacked = W_RxHxDxD.reshape(R, H * D, D).transpose(1, 2)
    projections = torch.bmm(q_RxBxQxD.reshape(R, B * Q, D), stacked).view(R * B, Q * H, D)
    keys = x_RxBxTxD.reshape(R * B, T, D)
    scores = torch.bmm(projections, keys.transpose(1, 2))
    pattern = scores.softmax(-1) if attention == "softmax" else scores.relu()
    flat = torch.bmm(pattern, keys).view(R, B * Q, H * D)
    values = V_RxHxDxD.transpose(2, 3).reshape(R, H * D, D)
    mixed = torch.baddbmm(q_RxBxQxD.reshape(R, B * Q, D), flat, values, alpha=1 / H)
    return mixed.view(R, B, Q, D), pattern.view(R, B, Q, H, T).permute(0, 1, 3, 4, 2)


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
