"""Next-token cross-entropy, optionally with invariance to an inserted prefix.

Loss of one replica on one batch (Wen et al. 2023, eqs 4 and 18):

    CE  mean over the batch's target positions of -log p(target | what came before)
    R   mean over positions of s and over the outputs of (logits(s | p + s) - logits(s))^2,
        one prefix p per batch and replica, drawn from a bank with given probabilities
    loss = CE + weight * R

The prefix goes behind the start token and the two passes are compared at the |s|+1 aligned
positions: the start token's logits against those after the last token of p.

Data (tensors of the job): ``ids`` (corpora, n, T) inputs, start token first; ``lengths``
(corpora, n) inputs in use; ``targets`` (corpora, n, T) the output to predict at each input, -1 for
none. With a weight: ``prefix.ids`` (bank, P), ``prefix.lengths`` (bank,), ``prefix.probability`` (bank,).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.training.packing import Packed, pack

if TYPE_CHECKING:
    from jaxtyping import Float

Forward = Callable[..., tuple[Tensor, dict[str, Tensor]]]
METRICS = ("loss", "accuracy", "regulariser")


class Objective:
    """Batches and losses of one run; ``settings`` holds ``weight`` (lambda of eq. 18)."""

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        self.data = data
        self.weight = float(settings["weight"])
        self.sequences = data["ids"].shape[1]

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: list[np.random.Generator]
    ) -> dict[str, np.ndarray]:
        """The batch of a step: for each replica its corpus, the sequences chosen from it, and its stream."""
        parts = [self._replica(*chosen) for chosen in zip(corpora, selections, rngs, strict=True)]
        return {name: _stack([part[name] for part in parts]) for name in parts[0]}

    def _replica(self, corpus: int, chosen: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        ids = self.data["ids"][corpus, chosen]
        lengths = self.data["lengths"][corpus, chosen].astype(np.int64)
        targets = self.data["targets"][corpus, chosen]
        used = np.arange(ids.shape[1]) < lengths[:, None]
        packed = pack(lengths, ids.shape[1])
        batch = _rows(packed, ids[used]) | {"targets": _fill(packed, targets[used], -1)}
        if self.weight:
            which = rng.choice(len(self.data["prefix.probability"]), p=self.data["prefix.probability"])
            size = int(self.data["prefix.lengths"][which])
            prefix = np.broadcast_to(self.data["prefix.ids"][which, :size], (len(chosen), size))
            longest = ids.shape[1] + self.data["prefix.ids"].shape[1]
            extended = np.concatenate([ids[:, :1], prefix, ids[:, 1:]], axis=1)
            wider = np.arange(extended.shape[1]) < lengths[:, None] + size
            apart = pack(lengths + size, longest)
            # Token j >= 1 of s stands `size` further in the extended row; the start token's
            # counterpart is the last token of the prefix, `size` further as well.
            aligned = (np.arange(extended.shape[1]) >= size) & wider
            batch |= {f"extended.{name}": value for name, value in _rows(apart, extended[wider]).items()}
            batch |= {"plain_index": packed.where, "extended_index": apart.where[aligned[wider]]}
        return batch

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """METRICS per replica; ``loss`` is what is minimised."""
        logits_RxBxTxO, _ = forward(batch["ids"], batch["positions"], batch["segments"])
        outputs = logits_RxBxTxO.shape[-1]
        R = logits_RxBxTxO.shape[0]
        flat_RxNxO = logits_RxBxTxO.reshape(R, -1, outputs)
        targets_RxN = batch["targets"].reshape(R, -1)
        counted = targets_RxN >= 0
        n = counted.sum(-1).clamp(min=1)
        entropy = F.cross_entropy(
            flat_RxNxO.reshape(-1, outputs), targets_RxN.reshape(-1), ignore_index=-1, reduction="none"
        ).view(R, -1)
        found = {"loss": entropy.sum(-1) / n}
        hits = (flat_RxNxO.detach().argmax(-1) == targets_RxN) & counted
        found["accuracy"] = hits.sum(-1) / n
        found["regulariser"] = torch.zeros_like(found["loss"])
        if self.weight:
            names = ("ids", "positions", "segments")
            extended_RxBxTxO, _ = forward(*(batch[f"extended.{name}"] for name in names))
            plain = _take(flat_RxNxO, batch["plain_index"])
            moved = _take(extended_RxBxTxO.reshape(R, -1, outputs), batch["extended_index"])
            used = (batch["plain_index"] >= 0).to(plain.dtype)
            squared = ((moved - plain) ** 2).mean(-1) * used
            found["regulariser"] = squared.sum(-1) / used.sum(-1)
            found["loss"] = found["loss"] + self.weight * found["regulariser"]
        return found


def _rows(packed: Packed, tokens: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "ids": _fill(packed, tokens, 0),
        "positions": packed.positions,
        "segments": packed.segments,
    }


def _fill(packed: Packed, values: np.ndarray, empty: int) -> np.ndarray:
    rows = np.full(packed.segments.size, empty, dtype=np.int64)
    rows[packed.where] = values
    return rows.reshape(packed.segments.shape)


def _stack(arrays: list[np.ndarray]) -> np.ndarray:
    """Replicas side by side; whoever has fewer rows (or tokens) is filled up with what counts for nothing."""
    size = max(len(array) for array in arrays)
    # -1 is "no target", "no sequence", "no token"; ids must stay valid and are never counted.
    filled = [np.pad(a, [(0, size - len(a))] + [(0, 0)] * (a.ndim - 1), constant_values=-1) for a in arrays]
    return np.stack(filled)


def _take(flat_RxNxO: Tensor, index_RxK: Tensor) -> Tensor:
    wide = index_RxK.clamp(min=0)[..., None].expand(-1, -1, flat_RxNxO.shape[-1])
    return flat_RxNxO.gather(1, wide)
