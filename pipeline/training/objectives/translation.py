"""Translation, in parallel with refinement or word by word (Li 2025, Eq. 4.10, sections 4.2.2.1, 4.2.2.2; chapter 3.8).

Data (arrays of the job, c corpora, N sentences): ``source`` (c, N, S) and ``target`` (c, N, T), `PAD` behind the end,
`EOS` last in a target. Settings: ``causal``; of models that decode in parallel ``stages``, ``unmask``, the probability
that a token is kept where the decoder starts, ``start``, what stands for the rest (``random``: ids drawn uniformly from
all that are not special; ``mask``: one id of its own), and ``vocabulary``.

In parallel: the first stage reads the noised target, each further one the likeliest tokens of the one before, through
which there is no gradient. `EOS` and `PAD` stay. The loss is the mean over stages of the cross-entropy of all tokens,
and that of the length. Word by word: the cross-entropy of all tokens, each behind those before it.

Metrics: ``loss``; ``accuracy``, the share of tokens that are the likeliest, of the last stage, `EOS` among them, which
is put where the target ends and so is always right; ``length_loss``, which is 0 word by word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.languages.synmt import BOS, EOS, PAD, PART, SPECIAL

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from pipeline.training.jobs import Forward

RANDOM, MASK = "random", "mask"


class Objective:
    """Batches and losses of one run."""

    l2 = 0.0
    side_by_side = 1  # ragged: batches are filled up to the longest of the company
    metrics = ("loss", "accuracy", "length_loss")
    evaluated: tuple[str, ...] = ()

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        self.data, self.settings = data, settings
        self.sequences = int(data["source"].shape[1])

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: Sequence[Callable[[], np.random.Generator]]
    ) -> dict[str, np.ndarray]:
        """Return ``source``, ``target`` and ``start`` (R, B, ·), int64: what the decoder reads first."""
        batch = {
            name: np.stack([self.data[name][c, own] for c, own in zip(corpora, selections, strict=True)]).astype(
                np.int64
            )
            for name in ("source", "target")
        }
        for name, ids in batch.items():
            batch[name] = ids[..., : int((ids != PAD).sum(-1).max())]
        target = batch["target"]
        if self.settings["causal"]:
            before = np.concatenate([np.full((*target.shape[:2], 1), BOS), target[..., :-1]], -1)
            return batch | {"start": np.where(target != PAD, before, PAD)}
        draws = [rng() for rng in rngs]
        shape = (target.shape[1], self.data["target"].shape[2])  # of whole rows, so that no draw depends on the company
        kept = np.stack([rng.random(shape) for rng in draws])[..., : target.shape[2]] < self.settings["unmask"]
        noise = np.stack([noised(rng, shape, self.settings) for rng in draws])[..., : target.shape[2]]
        return batch | {"start": np.where(kept | (target <= EOS), target, noise)}

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica."""
        target, ids = batch["target"], batch["start"]
        memory: Any = forward(batch["source"])[0]
        flat = target.flatten(1)
        losses, accuracy = [], torch.zeros(len(target), device=target.device)
        stages = 1 if self.settings["causal"] else self.settings["stages"]
        for stage in range(stages):
            (logits, at), _ = forward(ids, memory)
            wanted = flat.gather(1, at)
            counted = (wanted != PAD).to(logits.dtype)
            each = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none").view(wanted.shape)
            losses.append((each * counted).sum(1) / counted.sum(1))
            with torch.no_grad():
                said = likeliest(logits.detach(), at, target)
            accuracy = ((said.flatten(1) == flat) & (flat != PAD)).sum(1) / (flat != PAD).sum(1)
            ids = said if stage < stages - 1 else ids
        loss = torch.stack(losses).mean(0)
        length = torch.zeros_like(loss)
        if memory.lengths is not None:
            true = (target != PAD).sum(-1)
            own = F.cross_entropy(memory.lengths.flatten(0, 1), true.flatten(), reduction="none")
            length = own.view(true.shape).mean(1)
        return {"loss": loss + length, "accuracy": accuracy, "length_loss": length}

    def evaluate(self, forward: Forward, held: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return nothing: what models translate is measured behind training."""
        return {}


def noised(rng: np.random.Generator, shape: tuple[int, ...], settings: dict[str, Any]) -> np.ndarray:
    """Return what stands where a token is hidden: ids that are not special, drawn uniformly, or the one of a mask."""
    if settings["start"] == MASK:
        return np.full(shape, settings["vocabulary"] - 1)
    return rng.integers(SPECIAL, settings["vocabulary"], shape)


def likeliest(logits: Tensor, at: Int[Tensor, "R N"], target: Int[Tensor, "R B T"]) -> Int[Tensor, "R B T"]:
    """Return the likeliest tokens at ``at``; `EOS` and `PAD` stand where they do in ``target``, and nowhere else."""
    tokens = logits[..., PART:].argmax(-1) + PART
    said = torch.zeros_like(target).flatten(1).scatter(1, at, tokens).view(target.shape)
    return torch.where(target <= EOS, target, said)
