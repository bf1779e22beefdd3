"""Small Transformers over few spins: an encoder that reads rows of spins, some of them masked, and weighs completions.

The frozen table (U, N) of a checkpoint holds the rows that are read: 0 for -1, 1 for +1, 2 for a masked spin. Each row
is given ``outputs`` log weights. With one output and a row for each state the model is a law over all states, whose
conditional laws all agree (as in Li 2025, Definition 4.1.2); with an output for each state and a row for each context
it is a masked language model, whose conditional laws need not be those of any law (section 4.1.1).

What is asked for is numbered ``row * outputs + output``. Blocks are those of `pipeline.models.topic.encoder`; what they
leave is normalised, is averaged over positions, and read by one matrix.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pipeline.models.topic import encoder
from pipeline.store import checkpoints

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float, Int

MASKED = 2  # the symbol of a masked spin
EPS = 1e-5  # of normalisations


@dataclass(frozen=True)
class Spec:
    """The shape of a model; ``std`` is the standard deviation of its weights before training."""

    spins: int
    outputs: int
    width: int
    layers: int
    heads: int
    ffn: int
    std: float


Ensemble = checkpoints.Ensemble[Spec]


def trunk(spec: Spec) -> encoder.Spec:
    """Return the shape of the encoder."""
    return encoder.Spec(
        symbols=MASKED + 1,
        positions=spec.spins,
        types=1,
        width=spec.width,
        layers=spec.layers,
        heads=spec.heads,
        ffn=spec.ffn,
        eps=EPS,
        std=spec.std,
        std_attention=spec.std,
    )


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every trained parameter of one model."""
    return encoder.trunk(trunk(spec)) | {"head.W": (spec.width, spec.outputs), "head.b": (spec.outputs,)}


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the weights of one model before training: those of the encoder, and a head that starts as its matrices."""
    weights = encoder.initial(trunk(spec), rng)
    shape = shapes(spec)
    own = {"head.W": rng.normal(0.0, spec.std, shape["head.W"]), "head.b": rng.normal(0.0, 0.0, shape["head.b"])}
    return {name: own[name] if name in own else weights[name] for name in shape}


def forward(
    spec: Spec, params: dict[str, Tensor], table: Tensor, asked: Int[Tensor, "R B"], record: Collection[str] = ()
) -> tuple[Float[Tensor, "R B"], dict[str, Tensor]]:
    """Return the log weight of each row and output that is asked for, and what is recorded of the encoder.

    Raises SandglassError for a name in ``record`` that the encoder does not have.
    """
    hidden_RxUxNxD, recorded = encoder.encode(trunk(spec), params, table.long()[None], record=record)
    weights_RxUxO = torch.baddbmm(params["head.b"][:, None], hidden_RxUxNxD.mean(2), params["head.W"])
    return torch.gather(weights_RxUxO.flatten(1), 1, asked.long()), recorded


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
