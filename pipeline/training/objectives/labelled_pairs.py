"""Squared loss of a classifier of pairs on their labels: mean of (h - y)^2, h = sigmoid(g) (Liu 2024, Eq. 2.5).

Data (arrays of the job, c corpora): ``pairs`` (c, m, inputs) and ``labels`` (c, m). Each step takes pairs with
replacement, so that a corpus smaller than a batch is one as well.
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
    """Batches and losses of one run; it has no ``settings``."""

    sequences = 0  # each step draws its pairs anew
    l2 = 0.0
    side_by_side = 6
    metrics = ("loss", "accuracy")
    evaluated: tuple[str, ...] = ()

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        self.data = data
        self.size = data["labels"].shape[1]

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Return (n,) the numbers of the pairs that steps take."""
        return rng.integers(self.size, size=n)

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: Sequence[Callable[[], np.random.Generator]]
    ) -> dict[str, np.ndarray]:
        """Return ``pairs`` (R, B, I) and ``labels`` (R, B)."""
        chosen = list(zip(corpora, selections, strict=True))
        return {name: np.stack([self.data[name][at] for at in chosen]) for name in ("pairs", "labels")}

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica; accuracy is the share of pairs on the side of 1/2 where they belong."""
        g_RxB, _ = forward(batch["pairs"])
        y_RxB = batch["labels"]
        right_RxB = (g_RxB.detach() > 0) == (y_RxB > 0.5)
        return {
            "loss": (torch.sigmoid(g_RxB) - y_RxB).square().mean(-1),
            "accuracy": right_RxB.to(g_RxB.dtype).mean(-1),
        }

    def evaluate(self, forward: Forward, held: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return nothing: what a classifier has learned is measured by quadrature, after training."""
        return {}
