"""Masked words of documents, with masks that are drawn once (Li 2025, section 2.1.1, equations 2.1 to 2.4).

Settings: ``cells``, one for each corpus number: ``loss`` (ce, sq_sum or sq_mean) and ``l2``, the weight of the sum of
squares of all trained numbers; ``uniform``, whether attention is uniform, so that a document is one question.

Data of the job (`pipeline.languages.topic.Questions`): ``counts`` (N, V), ``first`` (N + 1,), where the questions of
each document begin; ``shown`` (P,) and ``labels`` (P, V); and ``held.counts``, ``held.document``, ``held.shown`` and
``held.labels`` of held-out documents.

A loss is the mean over all masked positions of the batch: cross-entropy in nats, or the squared distance from the
one-hot word, summed over outputs (``sq_sum``) or averaged (``sq_mean``, as in the released code).

Metrics: ``loss``, with the penalty; ``accuracy`` and ``held_loss`` on the held-out documents, the latter without the
penalty and summed over outputs with either squared loss; ``norm_k``, ``norm_q``, ``norm_v``, Frobenius norms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float

Forward = Callable[..., tuple[Tensor, dict[str, Tensor]]]


class Objective:
    """Batches and losses of one run."""

    l2 = 0.0  # that of each cell is its own
    side_by_side = 5  # equal to rounding: batches are filled up to the longest of the company
    metrics = ("loss",)
    evaluated = ("accuracy", "held_loss", "norm_k", "norm_q", "norm_v")

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        self.data = data
        self.cells: list[dict[str, Any]] = settings["cells"]
        self.uniform = bool(settings["uniform"])
        self.sequences = len(data["counts"])

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: Sequence[Callable[[], np.random.Generator]]
    ) -> dict[str, np.ndarray]:
        """Return ``counts`` (R, B, V), ``document`` and ``shown`` (R, Q), ``labels`` (R, Q, V) and ``cell`` (R,).

        A replica with fewer questions than another has some of its first document that ask for nothing.
        """
        data, first = self.data, self.data["first"]
        sizes = [first[chosen + 1] - first[chosen] for chosen in selections]
        most = max(int(size.sum()) for size in sizes)
        document = np.zeros((len(selections), most), np.int64)
        shown = np.zeros((len(selections), most), np.int64)
        labels = np.zeros((len(selections), most, data["labels"].shape[1]), np.uint8)
        for r, (chosen, size) in enumerate(zip(selections, sizes, strict=True)):
            n = int(size.sum())
            before = np.repeat(size.cumsum() - size, size)
            rows = np.repeat(first[chosen], size) + np.arange(n) - before
            document[r, :n] = np.repeat(np.arange(len(chosen)), size)
            shown[r, :n], labels[r, :n] = data["shown"][rows], data["labels"][rows]
        counts = np.stack([data["counts"][chosen] for chosen in selections])
        return {"counts": counts, "document": document, "shown": shown, "labels": labels, "cell": np.array(corpora)}

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica."""
        penalties = [float(self.cells[c]["l2"]) for c in batch["cell"].tolist()]
        outputs, recorded = self._answers(forward, batch, ["squares"] if any(penalties) else [])
        losses = self._mean(outputs, batch["labels"].to(outputs.dtype), batch["cell"], reduced=True)
        if any(penalties):
            losses = losses + outputs.new_tensor(penalties) * recorded["squares"]
        return {"loss": losses}

    def evaluate(self, forward: Forward, held: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return what is measured on held-out documents, and the norms of weights, per replica."""
        arrays = {name: value[None] for name, value in held.items() if name != "corpus"}
        outputs, recorded = self._answers(forward, arrays, ["norms"])
        labels = arrays["labels"].to(outputs.dtype)
        right = labels.expand_as(outputs).gather(-1, outputs.argmax(-1, keepdim=True)).sum((1, 2))
        metrics = {
            "accuracy": right / labels.sum((1, 2)),
            "held_loss": self._mean(outputs, labels, held["corpus"], reduced=False),
        }
        return metrics | dict(zip(("norm_k", "norm_q", "norm_v"), recorded["norms"].unbind(1), strict=True))

    def _answers(
        self, forward: Forward, batch: dict[str, Tensor], record: list[str]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        queries = (None, None) if self.uniform else (batch["document"].long(), batch["shown"].long())
        return forward(batch["counts"].float(), *queries, record=record)

    def _mean(self, outputs: Tensor, labels: Tensor, cell: Tensor, reduced: bool) -> Tensor:
        """Return (R,) the mean loss of a masked position; averaged over outputs only if it is to be ``reduced``."""
        kinds = [self.cells[c]["loss"] for c in cell.tolist()]
        counts = labels.sum(-1)
        scores = (labels * outputs).sum(-1)
        total = counts.sum(-1)
        parts = []
        if "ce" in kinds:
            parts.append((counts * outputs.logsumexp(-1) - scores).sum(-1) / total)
        if {*kinds} != {"ce"}:
            squared = (counts * (outputs.square().sum(-1) + 1) - 2 * scores).sum(-1) / total
            shares = [1 / outputs.shape[-1] if reduced and kind == "sq_mean" else 1.0 for kind in kinds]
            parts.append(squared * outputs.new_tensor(shares))
        if len(parts) == 1:
            return parts[0]
        entropies = torch.tensor([kind == "ce" for kind in kinds], device=outputs.device)
        return torch.where(entropies, parts[0], parts[1])
