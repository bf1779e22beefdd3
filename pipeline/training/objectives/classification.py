"""Cross-entropy of a class, read after the last token of a sequence.

Data (tensors of the job), C corpora: ``ids`` (C, N, T); ``labels`` (C, N) outputs; ``sizes`` (C,), how many rows of a
corpus are there (a smaller one is read more often in an epoch); and where the context offers answers,
``candidates`` (C, N, K), outputs as well.
For each split of ``settings["splits"]``, ``held.<split>.ids`` (C, M, T), ``.labels`` and ``.candidates``.

Metrics: ``loss`` and ``accuracy`` over all outputs, ``context``: the largest score among the candidates is the
label's; on held-out splits the same, called ``<metric>_<split>``.
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
    """Batches and losses of one run; ``settings`` holds ``splits``, and ``context``: whether there are candidates."""

    l2 = 0.0
    side_by_side = 5

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        self.data = data
        self.splits: list[str] = settings["splits"]
        self.metrics: tuple[str, ...] = ("loss", "accuracy", *(["context"] if settings["context"] else []))
        self.evaluated = tuple(f"{metric}_{split}" for split in self.splits for metric in self.metrics)
        self.sequences = int(data["ids"].shape[1])

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: Sequence[Callable[[], np.random.Generator]]
    ) -> dict[str, np.ndarray]:
        """Return ``ids`` (R, B, T), ``labels`` (R, B) and perhaps ``candidates`` (R, B, K), int64."""
        names = [name for name in ("ids", "labels", "candidates") if name in self.data]
        batch: dict[str, np.ndarray] = {}
        for name in names:
            parts = [
                self.data[name][corpus, chosen % self.data["sizes"][corpus]]
                for corpus, chosen in zip(corpora, selections, strict=True)
            ]
            batch[name] = np.stack(parts).astype(np.int64)
        return batch

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica; ``loss`` is what is minimised."""
        logits_RxBxO, _ = forward(batch["ids"])
        return self._measure(logits_RxBxO, batch["labels"], batch.get("candidates"))

    def evaluate(self, forward: Forward, held: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``evaluated`` per replica, on the held-out sequences of its corpus."""
        corpus = held["corpus"]
        metrics: dict[str, Tensor] = {}
        for split in self.splits:
            ids, labels, *candidates = (
                held[f"{split}.{name}"][corpus].long()
                for name in ("ids", "labels", "candidates")
                if f"{split}.{name}" in held
            )
            logits_RxBxO, _ = forward(ids)
            measured = self._measure(logits_RxBxO, labels, candidates[0] if candidates else None)
            metrics |= {f"{metric}_{split}": value for metric, value in measured.items()}
        return metrics

    def _measure(self, logits_RxBxO: Tensor, labels_RxB: Tensor, candidates_RxBxK: Tensor | None) -> dict[str, Tensor]:
        R, B, outputs = logits_RxBxO.shape
        entropy = F.cross_entropy(logits_RxBxO.reshape(-1, outputs), labels_RxB.reshape(-1), reduction="none").view(
            R, B
        )
        metrics = {"loss": entropy.mean(-1)}
        scores_RxBxO = logits_RxBxO.detach()
        metrics["accuracy"] = (scores_RxBxO.argmax(-1) == labels_RxB).float().mean(-1)
        if candidates_RxBxK is not None:
            best = scores_RxBxO.gather(-1, candidates_RxBxK).argmax(-1, keepdim=True)
            picked = candidates_RxBxK.gather(-1, best)[..., 0]
            metrics["context"] = (picked == labels_RxB).to(torch.float32).mean(-1)
        return metrics
