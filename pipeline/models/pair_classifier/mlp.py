"""SDE-H2: an MLP that reads a pair (z, z') and returns the log-odds g that z' followed z, with a leading replica axis.

Hidden layers have tanh. Parameters, without the replica axis (i inputs, o outputs of a layer): ``layers.{l}.W`` (i, o)
and ``layers.{l}.b`` (o,), the last layer with one output. They start with W normal of variance 2/i, in the last layer a
tenth of that in size, and b = 0 (chapter, E5): h = sigmoid(g) begins near 1/2.

The frozen ``table`` (1, 2) of a checkpoint is the noise, its shift and its standard deviation, which make g + log q the
logarithm of a kernel.
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
    from jaxtyping import Float

LAST = 0.1  # of the size of the last layer's weights at the start, beside the others'


@dataclass(frozen=True)
class Spec:
    """The shape of a model: how many numbers a pair has, and the widths of the hidden layers."""

    inputs: int
    widths: list[int]

    @property
    def sizes(self) -> list[int]:
        """Return the widths of all layers, from the input to the one output."""
        return [self.inputs, *self.widths, 1]


Ensemble = checkpoints.Ensemble[Spec]


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every trained parameter."""
    found: dict[str, tuple[int, ...]] = {}
    for layer, (i, o) in enumerate(zip(spec.sizes, spec.sizes[1:], strict=False)):
        found |= {f"layers.{layer}.W": (i, o), f"layers.{layer}.b": (o,)}
    return found


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw the weights of one model before training."""
    weights = {}
    last = f"layers.{len(spec.widths)}.W"
    for name, shape in shapes(spec).items():
        size = 0.0 if name.endswith(".b") else math.sqrt(2 / shape[0]) * (LAST if name == last else 1.0)
        weights[name] = size * rng.standard_normal(shape)
    return weights


def forward(
    spec: Spec, params: dict[str, Tensor], table: Tensor, pairs: Float[Tensor, "R B I"], record: Collection[str] = ()
) -> tuple[Float[Tensor, "R B"], dict[str, Tensor]]:
    """Return the log-odds of each pair; an axis of 1 in place of R gives all models the same pairs.

    Raises SandglassError if something is to be recorded: there is nothing.
    """
    if record:
        raise SandglassError(f"cannot record {sorted(record)}; a classifier of pairs records nothing")
    R = params["layers.0.b"].shape[0]
    h = pairs.expand(R, *pairs.shape[1:])
    for layer in range(len(spec.sizes) - 1):
        h = torch.baddbmm(params[f"layers.{layer}.b"][:, None], h, params[f"layers.{layer}.W"])
        if layer < len(spec.widths):
            h = torch.tanh(h)
    return h[..., 0], {}


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
