"""Parities, learned from labels or from what a teacher answers, on fresh strings at every step (Liu 2024, 4.2.1).

A model of the run is several side by side, here called students: student s of replica r reads strings of its own.
Either its targets are the labels, or a teacher's most likely classes (tau to 0), or a teacher's probabilities at a
temperature: never a mixture (equations 4.90, 4.91; the divergence from soft targets is minimised as a cross-entropy).

Settings: ``d``, ``k``, ``depth`` of the task (`pipeline.languages.parity`); ``reads``, ``signs`` or ``ids`` (bits);
``students``, their names; ``hard`` and ``soft``, for each student its row in the answers, or -1.

Data of the job: ``hard`` (C, A, steps, B) uint8, classes that a teacher gives for the strings of each step; ``soft``
(C, A, steps, B, K) float32, its probabilities; ``held.bits`` (N, d) and ``held.labels`` (N,).

Metrics: ``loss``, the sum of the students' cross-entropies, so that each has the gradient that it would have alone;
``accuracy`` against labels, their mean; ``loss_<student>`` and ``accuracy_<student>`` on held-out strings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.languages import parity

if TYPE_CHECKING:
    from jaxtyping import Float

Forward = Callable[..., tuple[Tensor, dict[str, Tensor]]]

EPOCH = 4096  # steps; an order of examples is drawn once for so many, though fresh strings have none
HELD = 2**22  # signs of held-out strings that are evaluated at once, over all students


class Objective:
    """Batches and losses of one run."""

    l2 = 0.0
    metrics = ("loss", "accuracy")

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        self.settings = settings
        self.names: list[str] = settings["students"]
        self.sequences = int(settings["batch"]) * EPOCH
        self.answers = {name: torch.from_numpy(data[name]) for name in ("hard", "soft") if name in data}
        self.listening = {
            name: (
                [s for s, row in enumerate(settings[name]) if row >= 0],
                [row for row in settings[name] if row >= 0],
            )
            for name in ("hard", "soft")
        }
        self.evaluated = tuple(f"{what}_{name}" for what in ("loss", "accuracy") for name in self.names)

    def collate(
        self,
        corpora: list[int],
        selections: list[np.ndarray],
        rngs: Sequence[Callable[[], np.random.Generator]],
    ) -> dict[str, np.ndarray]:
        """Return ``x`` (R, S, B, d), signs or bits, ``labels`` (R, S, B) and ``corpus`` (R,)."""
        parts = [strings(rng(), self.settings, len(self.names)) for rng in rngs]
        bits = np.stack(parts)
        return {
            "x": encoded(bits, self.settings),
            "labels": parity.labels(bits, self.settings["k"], self.settings["depth"]),
            "corpus": np.array(corpora),
        }

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica."""
        logits, labels = forward(batch["x"])[0], batch["labels"]
        targets, step, corpus = labels, int(batch["step"]), batch["corpus"]
        for name in self.answers:
            self.answers[name] = self.answers[name].to(labels.device)
        students, rows = self.listening["hard"]
        if students:
            targets = labels.clone()
            targets[:, students] = self.answers["hard"][corpus, :, step][:, rows].long()
        losses = F.cross_entropy(logits.flatten(0, 2), targets.flatten(), reduction="none").view(labels.shape)
        students, rows = self.listening["soft"]
        if students:
            told = self.answers["soft"][corpus, :, step][:, rows]
            losses = losses.clone()
            losses[:, students] = -(told * logits[:, students].log_softmax(-1)).sum(-1)
        right = (logits.detach().argmax(-1) == labels).float()
        return {"loss": losses.mean(-1).sum(-1), "accuracy": right.mean((1, 2))}

    def evaluate(self, forward: Forward, held: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return each student's loss and accuracy on the held-out strings."""
        labels = held["labels"]
        size = max(1, HELD // (held["bits"].shape[1] * len(self.names)))
        parts = []
        for some, own in zip(held["bits"].split(size), labels.split(size), strict=True):
            logits = forward(encoded_tensor(some[None, None], self.settings))[0]
            R, S, B, _ = logits.shape
            entropy = F.cross_entropy(
                logits.flatten(0, 2), own.expand(R, S, B).reshape(-1), reduction="none"
            ).view(R, S, B)
            parts.append(torch.stack([entropy.sum(-1), (logits.argmax(-1) == own).float().sum(-1)]))
        losses, right = torch.stack(parts).sum(0) / len(labels)
        found = {f"loss_{name}": losses[:, s] for s, name in enumerate(self.names)}
        return found | {f"accuracy_{name}": right[:, s] for s, name in enumerate(self.names)}


def strings(rng: np.random.Generator, settings: dict[str, Any], students: int) -> np.ndarray:
    """Return the bits (S, B, d) of a step; those of the first students do not depend on how many follow."""
    return parity.sample(rng, (students, settings["batch"]), settings["d"])


def encoded(bits: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
    """Return what a model reads for bits: signs, or the bits as token ids."""
    return parity.signs(bits) if settings["reads"] == "signs" else bits.astype(np.int64)


def encoded_tensor(bits: Tensor, settings: dict[str, Any]) -> Tensor:
    """Return the same of a tensor."""
    return 1 - 2 * bits.float() if settings["reads"] == "signs" else bits.long()
