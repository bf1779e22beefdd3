"""The Ising model as a model that is trained: couplings and fields as one vector, with a replica axis.

The parameter is ``theta`` (d,), d = N (N + 1) / 2, in the order of `pipeline.languages.ising`; it starts at 0. The
frozen table (2^N, d) of a checkpoint holds the sufficient statistics of all states, so that ``forward`` is linear
(Li 2025, Definition 4.1.12).
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
    """The shape of a model: its spins."""

    spins: int


Ensemble = checkpoints.Ensemble[Spec]


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of the trained parameter."""
    return {"theta": (spec.spins * (spec.spins + 1) // 2,)}


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the uniform law, the same for every replica."""
    return {"theta": np.zeros(shapes(spec)["theta"])}


def forward(
    spec: Spec, params: dict[str, Tensor], table: Tensor, states: Int[Tensor, "R B"], record: Collection[str] = ()
) -> tuple[Float[Tensor, "R B"], dict[str, Tensor]]:
    """Return the log weight of each state, log p but for a constant of the replica.

    Raises SandglassError if something is to be recorded: there is nothing.
    """
    if record:
        raise SandglassError(f"cannot record {sorted(record)}; an Ising model records nothing")
    weights_RxS = params["theta"] @ table.to(params["theta"].dtype).T
    return torch.gather(weights_RxS, 1, states.long()), {}


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
