"""Pseudolikelihood with masks, on whole samples (Li 2025, Definitions 4.1.2 and 4.1.3).

Loss of one replica: the mean of -log p(x_K | x_-K) over its sample, where p is proportional to exp of what the model
says of each state. A *context* is a mask with a value of what it leaves: the states that fit it compete.

Data (arrays of the job, c corpora, C contexts of J states): ``states`` (C, J), which states fit each context, and
``observed`` (c, C, J), the share of the sample that is that state under that mask. A step takes all of it.

Metrics: ``loss``; ``accuracy``, the share of masked values that are the likeliest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float

    from pipeline.training.jobs import Forward


class Objective:
    """Batches and losses of one run, which has no settings."""

    l2 = 0.0
    side_by_side = 64  # samples are small
    metrics = ("loss", "accuracy")
    evaluated: tuple[str, ...] = ()
    sequences = 1  # the whole sample

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        self.observed = data["observed"]
        self.states = torch.from_numpy(data["states"].astype(np.int64))

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: Sequence[Callable[[], np.random.Generator]]
    ) -> dict[str, np.ndarray]:
        """Return ``observed`` (R, C, J) of each replica's sample."""
        return {"observed": self.observed[corpora]}

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica."""
        observed_RxCxJ = batch["observed"]
        R, C, J = observed_RxCxJ.shape
        states = self.states.to(observed_RxCxJ.device).view(1, C * J).expand(R, -1)
        logs_RxCxJ = forward(states)[0].view(R, C, J).log_softmax(-1)
        likeliest = logs_RxCxJ.detach().argmax(-1, keepdim=True)
        accuracy = observed_RxCxJ.gather(-1, likeliest).sum((1, 2))
        return {"loss": -(observed_RxCxJ * logs_RxCxJ).sum((1, 2)), "accuracy": accuracy}

    def evaluate(self, forward: Forward, held: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return nothing: how far a fit is from the truth is measured behind training, in double precision."""
        return {}
