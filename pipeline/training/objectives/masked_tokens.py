"""Two masked tokens predicted from one on squared loss (Liu 2024, Eq. 2.35).

Loss of one replica on one batch: the mean of |f(x) - e_a (x) e_b|^2 over triples of a symbol x that is read and symbols
a and b that are masked.

Data (arrays of the job, c corpora): ``read`` (c, n), the symbol that is shown, and ``pair`` (c, n), the number a d + b
of the pair that is not. Held: ``conditional`` (c, d, d^2), the share of each pair among the samples of each symbol.

Metrics: ``loss``; ``accuracy``, the share of pairs that are the likeliest by the predictor; ``distance``, the Frobenius
norm of the difference between the predictor and ``held.conditional``.
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
    side_by_side = 64  # tables are small
    metrics = ("loss", "accuracy")
    evaluated = ("distance",)

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        self.data = data
        self.sequences = data["read"].shape[1]

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: Sequence[Callable[[], np.random.Generator]]
    ) -> dict[str, np.ndarray]:
        """Return ``read`` and ``pair`` (R, B): the samples chosen from each replica's corpus."""
        chosen = list(zip(corpora, selections, strict=True))
        return {name: np.stack([self.data[name][c, rows] for c, rows in chosen]) for name in ("read", "pair")}

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica."""
        outputs_RxBxO, _ = forward(batch["read"])
        hit_RxB = outputs_RxBxO.gather(-1, batch["pair"].long()[..., None])[..., 0]
        right_RxB = outputs_RxBxO.detach().argmax(-1) == batch["pair"].long()
        # |f - e|^2 = |f|^2 - 2 f_e + 1
        loss = (outputs_RxBxO.square().sum(-1) - 2 * hit_RxB + 1).mean(-1)
        return {"loss": loss, "accuracy": right_RxB.to(loss.dtype).mean(-1)}

    def evaluate(self, forward: Forward, held: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``evaluated`` per replica."""
        conditional_RxdxO = held["conditional"][held["corpus"]]
        R, d, _ = conditional_RxdxO.shape
        symbols = torch.arange(d, device=conditional_RxdxO.device).expand(R, d)
        difference = forward(symbols)[0] - conditional_RxdxO
        return {"distance": difference.square().sum((1, 2)).sqrt()}
