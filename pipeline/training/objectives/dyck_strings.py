"""Next-token cross-entropy on balanced strings of one length, new ones at every step (Li 2025, section 3.2.1.1).

Settings: ``brackets`` (D), ``p`` (share of kind 0), ``q`` (probability of an open), ``max_depth``; ``held``, the names
of the held-out sets.

Data of the job: ``held.<set>`` (N, D + 2), whole strings.

Metrics: ``loss``, the mean over all D + 1 next signs; ``accuracy``, on the batch and as ``accuracy_<set>`` on held-out
strings: of the signs that are closers, the share on which the likeliest sign of the whole vocabulary is that closer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.languages import dyck_strings as language

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Forward = Callable[..., tuple[Tensor, dict[str, Tensor]]]
HELD = 250  # strings that are evaluated at once


class Objective:
    """Batches and losses of one run."""

    l2 = 0.0
    sequences = 0
    side_by_side = 3
    metrics = ("loss", "accuracy")

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        self.settings = settings
        self.evaluated = tuple(f"accuracy_{name}" for name in settings["held"])

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: Sequence[Callable[[], np.random.Generator]]
    ) -> dict[str, np.ndarray]:
        """Return ``tokens`` (R, B, D + 2), int8."""
        return {"tokens": np.stack(selections)}

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Return (n, D + 2) new strings."""
        law = (self.settings[name] for name in ("brackets", "p", "q", "max_depth"))
        return language.sample(rng, n, *law)

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica."""
        tokens = batch["tokens"].long()
        logits, _ = forward(tokens[..., :-1])
        targets = tokens[..., 1:]
        entropy = F.cross_entropy(logits.flatten(0, 2), targets.flatten(), reduction="none")
        return {"loss": entropy.view(targets.shape).mean((1, 2)), "accuracy": closers(logits.detach(), targets)}

    def evaluate(self, forward: Forward, held: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return the accuracy on closers of each held-out set per replica."""
        found = {}
        for name in self.settings["held"]:
            parts = held[name].split(HELD)
            sums = [closers(forward(part[None, :, :-1].long())[0], part[None, :, 1:].long(), False) for part in parts]
            count = sum(int(((part == 2) | (part == 3)).sum()) for part in parts)
            found[f"accuracy_{name}"] = torch.stack(sums).sum(0) / count
        return found


def closers(logits: Float[Tensor, "R B T V"], targets: Int[Tensor, "R B T"], mean: bool = True) -> Float[Tensor, " R"]:
    """Return the share of closers that are the likeliest sign, or how many; targets with a replica axis of 1 are of all
    models."""
    closing = (targets == language.CLOSE[0]) | (targets == language.CLOSE[1])
    right = ((logits.argmax(-1) == targets) & closing).sum((1, 2)).float()
    return right / closing.sum((1, 2)) if mean else right
