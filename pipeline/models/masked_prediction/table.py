"""A predictor of two tokens from one as a table: a row of d^2 numbers for each of d symbols, with a replica axis.

What such a table learns on squared loss is the conditional mean of one-hot pairs (Liu 2024, Eq. 2.35): of a sample, the
share of each pair among the samples with that symbol. The parameter is ``W`` (d, d^2), without the replica axis; it
starts at the uniform law.
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


@dataclass(frozen=True)
class Spec:
    """The shape of a model: how many symbols there are."""

    symbols: int


Ensemble = checkpoints.Ensemble[Spec]


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of the trained parameter."""
    return {"W": (spec.symbols, spec.symbols**2)}


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the table before training, the same for every replica."""
    return {"W": np.full((spec.symbols, spec.symbols**2), 1 / spec.symbols**2)}


def forward(
    spec: Spec, params: dict[str, Tensor], table: Tensor, symbols: Int[Tensor, "R B"], record: Collection[str] = ()
) -> tuple[Float[Tensor, "R B O"], dict[str, Tensor]]:
    """Return the row of each symbol. Raises SandglassError if something is to be recorded: there is nothing."""
    if record:
        raise SandglassError(f"cannot record {sorted(record)}; a table records nothing")
    onehot = torch.nn.functional.one_hot(symbols.long(), spec.symbols).to(params["W"].dtype)
    return torch.bmm(onehot, params["W"]), {}


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
