"""Sentences that are learned from what a teacher answers while its students train (Liu 2024, sections 4.2.1, 4.2.8).

As `pipeline.training.objectives.distillation`, but for the answers: they are not stored before the training, the
teacher's kept weights come with the job, and each step asks them. What a step asks of them is a pass forward through
the teacher for each checkpoint and each number of students; what it saves are the answers to all steps, which for the
published grammars, batches and horizons are hundreds of GiB, against some hundred MiB of weights.

Settings: as there, without ``hard`` and ``soft``; ``teacher``, its ``model`` and ``spec``; ``plans``, for each replica
and student the ``[place, start, end]`` of the checkpoints in turn, where ``place`` is that of the weights, or nothing
of a student of labels; ``taus``, the temperature of each student.

Data of the job: ``weights`` (C, P) float32, the kept weights that are asked, in the order of the model's shapes.
"""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.training.objectives import distillation

if TYPE_CHECKING:
    from jaxtyping import Float

Forward = distillation.Forward


class Objective(distillation.Objective):
    """Batches and losses of one run."""

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        super().__init__({}, settings | {"hard": [], "soft": []})
        teacher = settings["teacher"]
        self.model = importlib.import_module("pipeline.models." + teacher["model"].replace("/", "."))
        self.spec = self.model.Spec(**teacher["spec"])
        self.weights = torch.from_numpy(data["weights"])

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica."""
        own = self.own
        extra = {name: batch[name][:, own] for name in ("visible", "places") if name in batch}
        logits, labels = forward(batch["x"][:, own], **extra)[0], batch["labels"][:, own]
        losses = F.cross_entropy(logits.flatten(0, 2), labels.flatten(), reduction="none").view(labels.shape)
        losses = losses.clone()
        logp = logits.log_softmax(-1)
        for (r, number, place), students in self._asked(batch).items():
            answers = self._answers(batch, r, number, place)
            for student in students:
                tau = self.settings["taus"][student]
                if tau:
                    losses[r, student] = -((answers / tau).softmax(-1) * logp[r, student]).sum(-1)
                else:
                    losses[r, student] = -logp[r, student].gather(-1, answers.argmax(-1, keepdim=True))[:, 0]
        right = (logits.detach().argmax(-1) == labels).float()
        weight = batch["weight"][:, own]
        weight = weight / weight.sum(-1, keepdim=True).clamp(min=1)
        return {"loss": (losses * weight).sum((1, 2)), "accuracy": (right * weight).sum(-1).mean(-1)}

    def _asked(self, batch: dict[str, Tensor]) -> dict[tuple[int, int, int], list[int]]:
        """Return the students that want the same answers at this step, by the row of the batch, their number and the
        place of the weights."""
        step, side = int(batch["step"]), self.settings["side"]
        asked: dict[tuple[int, int, int], list[int]] = {}
        for r, corpus in enumerate(batch["corpus"].tolist()):
            for student, plan in enumerate(self.settings["plans"][corpus]):
                for place, start, end in plan:
                    if start <= step < end:
                        asked.setdefault((r, student % side, place), []).append(student)
        return asked

    def _answers(self, batch: dict[str, Tensor], r: int, number: int, place: int) -> Tensor:
        """Return a checkpoint's logits (P, O) for what is asked of the inputs of the students of one number."""
        self.weights = self.weights.to(batch["x"].device)
        shapes = self.model.shapes(self.spec)
        parts = self.weights[place].split([math.prod(shape) for shape in shapes.values()])
        params = {name: part.view(1, *shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
        inputs = {name: batch[name][r : r + 1, number : number + 1] for name in ("visible", "places") if name in batch}
        with torch.no_grad():
            x = batch["x"][r : r + 1, number : number + 1]
            logits: Tensor = self.model.forward(self.spec, params, torch.zeros(1, 1, device=x.device), x, **inputs)[0]
        return logits[0, 0]
