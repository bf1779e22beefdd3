"""Next words of flip-flop stories that are told afresh at every step (chapter of Liu 2024, section 3.5: E16).

Settings: ``lengths`` (shortest, longest string) and ``p_ignore`` (least, most) that stories are drawn between. Data of
the job: ``held.ids`` (N, T), stories filled up with -1, whose last state is to be said.

Metrics: ``loss``, the mean over all next words; ``accuracy``, the share of states behind "is turned" that are right;
on held-out stories ``accuracy_held``, of the last state alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.languages import flipflop as language

if TYPE_CHECKING:
    from jaxtyping import Float

Forward = Callable[..., tuple[Tensor, dict[str, Tensor]]]
PARTICIPLES = [language.NUMBERS[participle] for _, participle in language.VERBS]


class Objective:
    """Batches and losses of one run."""

    l2 = 0.0
    sequences = 0  # every step tells new stories
    side_by_side = 1  # ragged: batches are filled up to the longest of the company
    metrics = ("loss", "accuracy")
    evaluated = ("accuracy_held",)

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        self.settings = settings

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Return (n, T) stories, filled up with -1."""
        return language.sample_stories(rng, n, self.settings["lengths"], self.settings["p_ignore"])

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: Sequence[Callable[[], np.random.Generator]]
    ) -> dict[str, np.ndarray]:
        """Return ``ids`` (R, B, T), int64, filled up with -1 behind the end of a story; T is that of the longest."""
        filled = [int((stories >= 0).sum(1).max()) for stories in selections]
        ids = np.full((len(selections), len(selections[0]), max(filled)), -1, np.int64)
        for own, stories, longest in zip(ids, selections, filled, strict=True):
            own[:, :longest] = stories[:, :longest]
        return {"ids": ids}

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica."""
        ids = batch["ids"]
        inputs, labels = ids[..., :-1].clamp(min=0), ids[..., 1:]
        logits, _ = forward(inputs)
        entropy = F.cross_entropy(logits.flatten(0, 2), labels.flatten(), ignore_index=-1, reduction="none")
        mask = torch.isin(inputs, torch.tensor(PARTICIPLES, device=ids.device)) & (labels >= 0)
        right = (logits.detach().argmax(-1) == labels) & mask
        total = (labels >= 0).sum((1, 2))
        return {
            "loss": entropy.view(labels.shape).sum((1, 2)) / total,
            "accuracy": right.sum((1, 2)) / mask.sum((1, 2)),
        }

    def evaluate(self, forward: Forward, held: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``accuracy_held`` per replica."""
        ids = held["ids"].long()
        mask = torch.isin(ids, torch.tensor(PARTICIPLES, device=ids.device)).long()
        last = ids.shape[1] - 1 - mask.flip(1).argmax(1)  # the place of the last participle
        logits, _ = forward(ids[None].clamp(min=0))
        rows = torch.arange(len(ids), device=ids.device)
        return {"accuracy_held": (logits[:, rows, last].argmax(-1) == ids[rows, last + 1]).float().mean(-1)}
