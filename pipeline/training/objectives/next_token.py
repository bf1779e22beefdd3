"""Next-token cross-entropy, optionally with invariance to an inserted prefix.

Loss of one replica on one batch (Wen et al. 2023, eqs 4 and 18):

    CE  mean over the batch's target positions of -log p(target | what came before)
    R   mean over positions of s and over the outputs of (logits(s | p + s) - logits(s))^2,
        one prefix p per batch and replica, drawn from a bank with given probabilities
    loss = CE + weight * R

The prefix goes behind the start token and the two passes are compared at the |s|+1 aligned
positions: the start token's logits against those after the last token of p. With ``prefix_first``, the
reading of the authors' release, it goes before the start token, which then stands for itself.

Data (tensors of the job): those of `pipeline.training.packing.Batches` and, with a weight, ``prefix.ids``
(bank, P), ``prefix.lengths`` (bank,), ``prefix.probability`` (bank,).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.training.packing import Batches, pack, rows

if TYPE_CHECKING:
    from jaxtyping import Float

    from pipeline.training.jobs import Forward


class Objective(Batches):
    """Batches and losses of one run; ``settings`` holds ``weight`` (lambda of eq. 18) and ``prefix_first``."""

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        super().__init__(data)
        self.weight = float(settings["weight"])
        self.behind = 0 if settings["prefix_first"] else 1  # where the prefix is inserted

    def replica(self, corpus: int, chosen: np.ndarray, rng: Callable[[], np.random.Generator]) -> dict[str, np.ndarray]:
        """Return the batch of one replica; with a weight, also the sequences behind a prefix (``extended.``)."""
        if not self.weight:
            return super().replica(corpus, chosen, rng)
        ids, lengths, targets = self.examples(corpus, chosen)
        used = np.arange(ids.shape[1]) < lengths[:, None]
        packed = pack(lengths, ids.shape[1])
        which = rng().choice(len(self.data["prefix.probability"]), p=self.data["prefix.probability"])
        size = int(self.data["prefix.lengths"][which])
        prefix = np.broadcast_to(self.data["prefix.ids"][which, :size], (len(chosen), size))
        extended = np.concatenate([ids[:, : self.behind], prefix, ids[:, self.behind :]], axis=1)
        wider = np.arange(extended.shape[1]) < lengths[:, None] + size
        apart = pack(lengths + size, ids.shape[1] + self.data["prefix.ids"].shape[1])
        # Token j >= 1 of s stands `size` further in the extended row; the start token's
        # counterpart is the last token of the prefix, or itself, `size` further as well.
        aligned = np.arange(extended.shape[1]) >= size
        batch = rows(packed, ids[used])
        batch |= {f"extended.{name}": value for name, value in rows(apart, extended[wider]).items()}
        batch["extended.select"] = apart.where[np.broadcast_to(aligned, wider.shape)[wider]]
        return batch | {"select": packed.where, "targets": targets}

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica; ``loss`` is what is minimised."""
        logits_RxKxO = self.outputs(forward, batch)
        R, _, outputs = logits_RxKxO.shape
        targets_RxK = batch["targets"]
        n = (targets_RxK >= 0).sum(-1).clamp(min=1)
        entropy = F.cross_entropy(
            logits_RxKxO.reshape(-1, outputs), targets_RxK.reshape(-1), ignore_index=-1, reduction="none"
        ).view(R, -1)
        metrics = {"loss": entropy.sum(-1) / n}
        metrics["accuracy"] = (logits_RxKxO.detach().argmax(-1) == targets_RxK).sum(-1) / n
        metrics["regulariser"] = torch.zeros_like(metrics["loss"])
        if self.weight:
            moved_RxKxO = self.outputs(forward, batch, "extended.")
            used = (batch["select"] >= 0).to(moved_RxKxO.dtype)
            squared = ((moved_RxKxO - logits_RxKxO) ** 2).mean(-1) * used
            metrics["regulariser"] = squared.sum(-1) / used.sum(-1)
            metrics["loss"] = metrics["loss"] + self.weight * metrics["regulariser"]
        return metrics
