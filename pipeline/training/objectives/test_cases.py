"""Next-token cross-entropy on documents of test cases, new ones at every step (SYN-TC, the stand-in for section 3.2.2).

Settings: ``corpus``, the law of documents (`pipeline.languages.test_cases.Corpus`). Data of the job: ``held.documents``
(N, T), filled up with PAD. Metrics: ``loss``, the mean over all next tokens but PAD, and ``accuracy``; on held-out
documents ``loss_held``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.languages import test_cases as language

if TYPE_CHECKING:
    from jaxtyping import Float

Forward = Callable[..., tuple[Tensor, dict[str, Tensor]]]
HELD = 50  # documents that are evaluated at once


class Objective:
    """Batches and losses of one run."""

    l2 = 0.0
    sequences = 0
    side_by_side = 3
    metrics = ("loss", "accuracy")
    evaluated = ("loss_held",)

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        law = settings["corpus"] | {"corruption": tuple(settings["corpus"]["corruption"])}
        self.corpus = language.Corpus(**law)

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: Sequence[Callable[[], np.random.Generator]]
    ) -> dict[str, np.ndarray]:
        """Return ``tokens`` (R, B, T), int8, as long as the longest document."""
        tokens = np.stack(selections)
        used = int((tokens != language.PAD).any((0, 1)).sum())
        return {"tokens": tokens[..., :used]}

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Return (n, T) new documents."""
        return language.sample(rng, n, self.corpus)[0]

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica."""
        tokens = batch["tokens"].long()
        logits, _ = forward(tokens[..., :-1])
        entropy, right, count = _sums(logits, tokens[..., 1:])
        return {"loss": entropy / count, "accuracy": right / count}

    def evaluate(self, forward: Forward, held: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return the loss on held-out documents per replica."""
        total, count = torch.zeros(1), torch.zeros(1)
        for part in held["documents"].split(HELD):
            tokens = part[None].long()
            entropy, _, targets = _sums(forward(tokens[..., :-1])[0], tokens[..., 1:])
            total, count = total.to(entropy) + entropy, count.to(entropy) + targets
        return {"loss_held": total / count}


def _sums(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return summed entropy (R,), right tokens and how many there are, PAD aside."""
    R, shared = logits.shape[0], targets.expand(logits.shape[:3])
    flat = F.cross_entropy(logits.flatten(0, 2), shared.flatten(), ignore_index=language.PAD, reduction="none")
    used = shared != language.PAD
    right = ((logits.detach().argmax(-1) == shared) & used).sum((1, 2))
    return flat.view(R, -1).sum(1), right, used.sum((1, 2))
