"""MLPs with one hidden layer of ReLUs (Liu 2024, section 4.2.7.1): z = W_2 relu(W_1 x + b_1) + b_2.

A model of this module is S of them side by side, of one shape, which never meet: small ones cost hardly more together
than one alone. Parameters, without the replica axis (K = outputs): ``W_1`` (S, d, m), ``b_1`` (S, m), ``W_2``
(S, m, K), ``b_2`` (S, K). They start as PyTorch's linear layers do, uniform within 1/sqrt(inputs).
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


@dataclass(frozen=True)
class Spec:
    """The shape of a model; ``inputs`` and ``outputs`` count the signs that it reads and the classes."""

    side: int
    inputs: int
    width: int
    outputs: int


Ensemble = checkpoints.Ensemble[Spec]


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every trained parameter."""
    S, d, m, K = spec.side, spec.inputs, spec.width, spec.outputs
    return {"W_1": (S, d, m), "b_1": (S, m), "W_2": (S, m, K), "b_2": (S, K)}


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the weights before training; those of the first models do not depend on how many follow."""
    S, d, m, K = spec.side, spec.inputs, spec.width, spec.outputs
    sizes = [d * m, m, m * K, K]
    drawn = rng.uniform(-1, 1, (S, sum(sizes)))
    bounds = [math.sqrt(d), math.sqrt(d), math.sqrt(m), math.sqrt(m)]
    ends = [sum(sizes[: i + 1]) for i in range(4)]
    weights = {}
    for (name, shape), size, end, bound in zip(shapes(spec).items(), sizes, ends, bounds, strict=True):
        weights[name] = (drawn[:, end - size : end] / bound).reshape(shape)
    return weights


def forward(
    spec: Spec, params: dict[str, Tensor], table: Tensor, x: Float[Tensor, "R S B d"], record: Collection[str] = ()
) -> tuple[Float[Tensor, "R S B O"], dict[str, Tensor]]:
    """Return logits; an axis of 1 in ``x`` in place of R or S gives all models the same input.

    Raises SandglassError if something is to be recorded: there is nothing.
    """
    if record:
        raise SandglassError(f"cannot record {sorted(record)}; an MLP records nothing")
    R, S = params["b_2"].shape[:2]
    B = x.shape[-2]
    x = x.expand(R, S, B, spec.inputs).reshape(R * S, B, spec.inputs)
    W_1, W_2 = params["W_1"].flatten(0, 1), params["W_2"].flatten(0, 1)
    b_1, b_2 = params["b_1"].reshape(R * S, 1, spec.width), params["b_2"].reshape(R * S, 1, spec.outputs)
    hidden = torch.baddbmm(b_1, x, W_1).relu_()
    return torch.baddbmm(b_2, hidden, W_2).view(R, S, B, spec.outputs), {}


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
