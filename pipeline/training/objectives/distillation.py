"""Parities and sentences, learned from labels or from what a teacher answers, on fresh inputs (Liu 2024, 4.2.1).

A model of the run is several side by side, here called students: ``arms`` x ``side`` of them, those of an arm behind
each other. Students of one number read the same inputs, whatever their arm. Either their targets are the labels, or a
teacher's most likely classes (tau to 0), or a teacher's probabilities at a temperature: never a mixture (equations
4.90, 4.91; the divergence from soft targets is minimised as a cross-entropy). Losses are means over all that is asked
of the inputs of a step: a string's class, or the chosen tokens of all sentences (equations 4.92, 4.98).

Settings: ``language``, a module of `pipeline.languages`, and ``task``; of ``parity``, ``d``, ``k``, ``depth`` and
``reads``, ``signs`` or ``ids`` (bits); of ``masked`` and ``next``, what the language's ``examples`` takes, and
``hide_masked``. ``side``, ``batch``; ``students``, their names; ``hard`` and ``soft``, for each student its row in the
answers, or -1.

Data of the job: ``hard`` (C, A, steps, P) uint16, classes that a teacher gives at each step for what is asked, in its
order; ``soft`` (C, A, steps, P, K) float32, its probabilities; ``held.x`` (N, d) or (N, T), ``held.labels`` (N,) or
(N, T), and of sentences ``held.chosen`` and ``held.visible`` (N, T).

Metrics: ``loss``, the sum of the students' cross-entropies, so that each has the gradient that it would have alone;
``accuracy`` against labels, their mean; ``loss_<student>`` and ``accuracy_<student>`` on held-out inputs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import NDArray

Forward = Callable[..., tuple[Tensor, dict[str, Tensor]]]

EPOCH = 4096  # steps; an order of examples is drawn once for so many, though fresh inputs have none
# Numbers of held-out inputs that are evaluated at once, over all students: so few that what a small model makes of them
# stays in the processor's cache. All at once took a third to a half more.
HELD = 2**15


@dataclass(frozen=True)
class Inputs:
    """What is read, and what is asked: ``x`` (N, d) or (N, T); ``labels`` (N,), or (N, T) where ``chosen`` (N, T) says
    which are asked for; ``visible`` (N, T), which tokens may be attended to, where not all may."""

    x: NDArray[Any]
    labels: NDArray[Any]
    chosen: NDArray[np.bool_] | None = None
    visible: NDArray[np.bool_] | None = None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that are there, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    @classmethod
    def joined(cls, parts: Sequence[Inputs]) -> Inputs:
        """Return several, one behind the other."""
        both = [part.arrays() for part in parts]
        return cls(**{name: np.concatenate([part[name] for part in both]) for name in both[0]})


class Objective:
    """Batches and losses of one run."""

    l2 = 0.0
    side_by_side = 1  # students of a model are side by side already
    metrics = ("loss", "accuracy")

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        self.settings = settings
        self.draw = DRAWN[settings["task"]]
        self.names: list[str] = settings["students"]
        arms = len(self.names) // settings["side"]
        self.own = torch.arange(len(self.names)) % settings["side"] if arms > 1 else slice(None)
        self.sequences = int(settings["batch"]) * EPOCH
        self.answers = {name: torch.from_numpy(data[name]) for name in ("hard", "soft") if name in data}
        if "hard" in self.answers:  # torch has no index of uint16 on a GPU; classes are few, so the bits are the same
            self.answers["hard"] = self.answers["hard"].view(torch.int16)
        # Students with answers of a kind, and their rows in these.
        self.listening: dict[str, tuple[Tensor, Tensor]] = {}
        for name in self.answers:
            rows = torch.tensor(settings[name])
            self.listening[name] = torch.nonzero(rows >= 0)[:, 0], rows[rows >= 0]
        self.evaluated = tuple(f"{what}_{name}" for what in ("loss", "accuracy") for name in self.names)

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: Sequence[Callable[[], np.random.Generator]]
    ) -> dict[str, np.ndarray]:
        """Return ``x`` (R, side, B, …), ``labels`` (R, side, P), ``corpus`` (R,), and of sentences ``visible`` (R,
        side, B, T), ``places`` of what is asked (R, side, P) and ``weight`` (R, side, P), 0 behind the last place."""
        drawn = [draw(self.settings, rng()) for rng in rngs]
        batch = {"corpus": np.array(corpora), "x": np.array([[own.x for own in row] for row in drawn])}
        if self.settings["task"] == "parity":
            return batch | {"labels": np.array([[own.labels for own in row] for row in drawn])}
        flat = [[np.flatnonzero(_mask(own.chosen)) for own in row] for row in drawn]
        longest = max(len(places) for row in flat for places in row)
        shape = (len(drawn), self.settings["side"], longest)
        places, labels, weight = (np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.float32))
        for r, row in enumerate(flat):
            for own, some in enumerate(row):
                places[r, own, : len(some)] = some
                labels[r, own, : len(some)] = drawn[r][own].labels.ravel()[some]
                weight[r, own, : len(some)] = 1
        batch |= {"labels": labels, "places": places, "weight": weight}
        if drawn[0][0].visible is not None:
            batch["visible"] = np.stack([np.stack([_mask(own.visible) for own in row]) for row in drawn])
        return batch

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica."""
        own = self.own
        extra = {name: batch[name][:, own] for name in ("visible", "places") if name in batch}
        logits, labels = forward(batch["x"][:, own], **extra)[0], batch["labels"][:, own]
        targets, step, corpus = labels, int(batch["step"]), batch["corpus"]
        count = labels.shape[-1]
        for name in self.answers:
            self.answers[name] = self.answers[name].to(labels.device)
        if "hard" in self.answers:
            students, rows = self.listening["hard"]
            targets = labels.clone()
            targets[:, students] = self.answers["hard"][corpus, :, step, :count][:, rows].long()
        losses = F.cross_entropy(logits.flatten(0, 2), targets.flatten(), reduction="none").view(labels.shape)
        if "soft" in self.answers:
            students, rows = self.listening["soft"]
            probabilities = self.answers["soft"][corpus, :, step, :count][:, rows]
            losses = losses.clone()
            losses[:, students] = -(probabilities * logits[:, students].log_softmax(-1)).sum(-1)
        right = (logits.detach().argmax(-1) == labels).float()
        if "weight" not in batch:
            return {"loss": losses.mean(-1).sum(-1), "accuracy": right.mean((1, 2))}
        weight = batch["weight"][:, own]
        weight = weight / weight.sum(-1, keepdim=True).clamp(min=1)
        return {"loss": (losses * weight).sum((1, 2)), "accuracy": (right * weight).sum(-1).mean(-1)}

    def evaluate(self, forward: Forward, held: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return each student's loss and accuracy on the held-out inputs."""
        size = max(1, HELD // (held["x"].shape[1] * len(self.names)))
        total: Tensor | float = 0.0
        count = 0
        for start in range(0, len(held["x"]), size):
            part = {name: held[name][start : start + size] for name in held if name != "corpus"}
            labels, extra = part["labels"], {}
            if "chosen" in part:
                places = part["chosen"].flatten().nonzero()[:, 0]
                labels, extra = labels.flatten()[places], {"places": places[None, None]}
                if "visible" in part:
                    extra["visible"] = part["visible"][None, None]
            logits = forward(part["x"][None, None], **extra)[0]
            R, S, P, _ = logits.shape
            entropy = F.cross_entropy(logits.flatten(0, 2), labels.expand(R, S, P).reshape(-1), reduction="none").view(
                R, S, P
            )
            total = total + torch.stack([entropy.sum(-1), (logits.argmax(-1) == labels).float().sum(-1)])
            count += P
        assert isinstance(total, Tensor)
        losses, right = total / count
        metrics = {f"loss_{name}": losses[:, s] for s, name in enumerate(self.names)}
        return metrics | {f"accuracy_{name}": right[:, s] for s, name in enumerate(self.names)}


def _mask(array: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    assert array is not None
    return array


def draw(settings: dict[str, Any], rng: np.random.Generator) -> list[Inputs]:
    """Return the inputs of a step for each number below ``side``; the first do not depend on how many follow."""
    return DRAWN[settings["task"]](settings, rng)


def _parity(settings: dict[str, Any], rng: np.random.Generator) -> list[Inputs]:
    parity = _language(settings)
    bits = parity.sample(rng, (settings["side"], settings["batch"]), settings["d"])
    labels = parity.labels(bits, settings["k"], settings["depth"])
    x = encoded(bits, settings)
    return [Inputs(x[own], labels[own]) for own in range(settings["side"])]


def _sentences(settings: dict[str, Any], rng: np.random.Generator) -> list[Inputs]:
    language = _language(settings)
    return [
        sentence_inputs(settings, language.examples(rng, settings["batch"], settings, held=False))
        for _ in range(settings["side"])
    ]


DRAWN = {"parity": _parity, "masked": _sentences, "next": _sentences}


def _language(settings: dict[str, Any]) -> Any:
    return importlib.import_module(f"pipeline.languages.{settings['language']}")


def encoded(bits: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
    """Return what a model reads for bits: signs, or the bits as token ids."""
    inputs: np.ndarray = _language(settings).signs(bits) if settings["reads"] == "signs" else bits.astype(np.int64)
    return inputs


def sentence_inputs(settings: dict[str, Any], columns: dict[str, NDArray[Any]]) -> Inputs:
    """Return sentences (N, 1 + T) that begin with BOS as a model reads them, and which of their tokens are asked for:
    those that were selected for masking, or the last ones of spans of a level, each before it is read.

    ``columns``: ``tokens`` as they are, ``shown`` as they are seen, ``kind`` what became of each, or which are asked
    for.
    """
    words, shown, kind = (columns[name] for name in ("tokens", "shown", "kind"))
    if settings["task"] == "masked":
        language = _language(settings)
        visible = language.visible(shown, kind, settings["hide_masked"])
        return Inputs(shown.astype(np.int64), words.astype(np.int64), kind != language.NONE, visible)
    return Inputs(words[:, :-1].astype(np.int64), words[:, 1:].astype(np.int64), kind[:, 1:] > 0)
