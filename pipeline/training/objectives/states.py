"""Cross-entropy of the state behind each symbol, on sequences seen once (Liu 2024, sections 3.4.5.1.1, 3.4.5.2).

Data (tensors of the job): ``tokens`` (N, T) and ``labels`` (N, T); for evaluation ``held.tokens``, ``held.labels``
(M, T). Settings: ``revealed``, the probability with which each label is shown (section 3.4.5.2.2); ``shift``, the
largest number that is added to all positions of a batch (0: none); ``dropout``; ``scratchpad``, the number of
symbols where states are written between the symbols, and 0 elsewhere (section 3.4.5.2.3): the sequence is s_1 q_1
s_2 .. s_T and q_t is asked for at s_t, with the true states before it.

Metrics: ``loss`` and ``accuracy`` on the batch, which is always fresh; ``accuracy_held`` on held-out sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float

Forward = Callable[..., tuple[Tensor, dict[str, Tensor]]]


class Objective:
    """Batches and losses of one run."""

    l2 = 0.0
    side_by_side = 5
    metrics = ("loss", "accuracy")

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        self.data, self.settings = data, settings
        self.evaluated: tuple[str, ...] = ("accuracy_held",) if settings["held"] else ()
        self.sequences = int(data["tokens"].shape[0])

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: Sequence[Callable[[], np.random.Generator]]
    ) -> dict[str, np.ndarray]:
        """Return ``tokens`` and ``labels`` (R, B, T), int64, -1 for a label that is not shown; where training shifts
        positions ``shift`` (R,), and where it drops ``dropout`` (R,), seeds."""
        chosen = np.stack(selections)
        batch = {name: self.data[name][chosen].astype(np.int64) for name in ("tokens", "labels")}
        settings = self.settings
        if settings["revealed"] < 1 or settings["shift"] or settings["dropout"]:
            draws = [rng() for rng in rngs]
            shown = [rng.random(batch["labels"].shape[1:]) < settings["revealed"] for rng in draws]
            batch["labels"] = np.where(np.stack(shown), batch["labels"], -1)
            if settings["shift"]:
                batch["shift"] = np.array([rng.integers(settings["shift"] + 1) for rng in draws])
            if settings["dropout"]:
                batch["dropout"] = np.array([rng.integers(2**62) for rng in draws])
        return batch

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica: means over the labels that are shown; 0 where none is."""
        more: dict[str, Any] = {}
        if "shift" in batch:
            at = torch.arange(batch["tokens"].shape[-1], device=batch["tokens"].device)
            more["positions"] = at + batch["shift"][:, None, None]
        if "dropout" in batch:
            seeds = batch["dropout"].tolist()
            device = batch["tokens"].device
            more["dropout"] = (self.settings["dropout"], [torch.Generator(device).manual_seed(seed) for seed in seeds])
        labels = batch["labels"]
        logits = self._logits(forward, batch["tokens"], labels, more)
        shown = labels >= 0
        n = shown.sum((1, 2)).clamp(min=1)
        flat = F.cross_entropy(logits.flatten(0, 2), labels.flatten(), ignore_index=-1, reduction="none")
        right = (logits.detach().argmax(-1) == labels).sum((1, 2))
        return {"loss": flat.view(labels.shape).sum((1, 2)) / n, "accuracy": right / n}

    def evaluate(self, forward: Forward, held: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``accuracy_held`` per replica."""
        labels = held["labels"].long()[None]
        logits = self._logits(forward, held["tokens"].long()[None], labels, {})
        return {"accuracy_held": (logits.argmax(-1) == labels).float().mean((1, 2))}

    def _logits(self, forward: Forward, tokens: Tensor, labels: Tensor, more: dict[str, Any]) -> Tensor:
        symbols = self.settings["scratchpad"]
        if not symbols:
            return forward(tokens, **more)[0]
        mixed = torch.stack([tokens, labels + symbols], -1).flatten(-2)[..., :-1]
        return forward(mixed, **more)[0][..., ::2, :]
