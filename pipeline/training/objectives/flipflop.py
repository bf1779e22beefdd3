"""Flip-flop language modelling and simulation, on fresh sequences at every step (Liu 2024, section 3.5).

Settings: ``task``, ``strings`` (FFL, five tokens) or ``automaton`` (symbols to states); ``length``; ``shares``, a list
of (p_write, p_read) of which each sequence draws one (of the automaton (p_noop,)); ``symbols``, data symbols; ``loss``,
``clean`` (the token behind each r) or ``generative`` (every next token); ``sequences``, 0, or how many of the fresh
sequences of another job are used again in every epoch; ``pool``, the (seed, study, stream, batch) of that job, or null;
``dropout``, rates by place; ``sharpen``, null or ``kind`` (entropy, l2, linf), ``weight``, ``schedule``
(constant, linear, oscillating), ``start`` (a step) and ``layers`` (how many, from the first); ``steps`` of the
training; ``held``, the names of the held-out sets.

Data of the job: ``held.<set>`` (N, T), on which the share of wrong reads (of the automaton: wrong states) is evaluated.

Metrics: ``loss``, with the penalty; ``cross_entropy`` without it; ``accuracy`` on the batch; ``error_<set>``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.kit.streams import stream
from pipeline.languages import flipflop as language
from pipeline.training.fresh import Fresh

if TYPE_CHECKING:
    from jaxtyping import Float

Forward = Callable[..., tuple[Tensor, dict[str, Tensor]]]

PERIOD = 2000  # steps of an oscillation of the penalty's weight
TINY = 1e-9  # inside the logarithm of the entropy
HELD = 256  # held-out sequences that are evaluated at once


class Objective:
    """Batches and losses of one run."""

    l2 = 0.0
    side_by_side = 5
    metrics = ("loss", "accuracy", "cross_entropy")

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        self.settings = settings
        self.sequences = int(settings["sequences"])
        self.evaluated = tuple(f"error_{name}" for name in settings["held"])
        self._pools: dict[int, np.ndarray] = {}

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: Sequence[Callable[[], np.random.Generator]]
    ) -> dict[str, np.ndarray]:
        """Return ``tokens`` (R, B, T), uint8, and where training drops ``dropout`` (R,), seeds."""
        if self.sequences:
            selections = [self._pool(c)[chosen] for c, chosen in zip(corpora, selections, strict=True)]
        batch = {"tokens": np.stack(selections)}
        if any(self.settings["dropout"].values()):
            batch["dropout"] = np.array([rng().integers(2**62) for rng in rngs])
        return batch

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Return (n, T) new sequences."""
        settings = self.settings
        shares = np.array(settings["shares"])
        if len(shares) > 1:
            shares = shares[rng.integers(len(shares), size=n)]
        if settings["task"] == "automaton":
            return language.sample_symbols(rng, n, settings["length"], shares[:, 0])
        return language.sample(rng, n, settings["length"], shares[:, 0], shares[:, 1], settings["symbols"])

    def _pool(self, corpus: int) -> np.ndarray:
        """Return (N, T) the sequences that the job of ``pool`` reads in its first N/B steps as replica ``corpus``."""
        if corpus not in self._pools:
            seed, study, name, batch = self.settings["pool"]
            rng = functools.partial(stream, seed, study, name, "replica", corpus, "fresh")
            read = Fresh(self.sample, rng, batch)
            self._pools[corpus] = np.concatenate([read.at(n) for n in range(self.sequences // batch)])
        return self._pools[corpus]

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica: the mean over what is to be predicted, plus the penalty."""
        tokens = batch["tokens"].long()
        more: dict[str, Any] = {}
        if "dropout" in batch:
            device = tokens.device
            seeds = [torch.Generator(device).manual_seed(seed) for seed in batch["dropout"].tolist()]
            more["dropout"] = (self.settings["dropout"], seeds)
        weight = penalty_weight(self.settings["sharpen"], int(batch["step"]), self.settings["steps"])
        names: list[str] = []
        if weight:
            names = [f"blocks.{n}.attn.pattern" for n in range(self.settings["sharpen"]["layers"])]
            more["record"] = names
        inputs, labels = targets(self.settings["task"], self.settings["loss"], tokens)
        logits, recorded = forward(inputs, **more)
        flat = F.cross_entropy(logits.flatten(0, 2), labels.flatten(), ignore_index=-1, reduction="none")
        counts = (labels >= 0).sum((1, 2)).clamp(min=1)
        plain = flat.view(labels.shape).sum((1, 2)) / counts
        total = plain
        if weight:
            kind = self.settings["sharpen"]["kind"]
            values = torch.stack([penalty(kind, recorded[name]) for name in names])
            total = plain + weight * values.mean(0)
        right = (logits.detach().argmax(-1) == labels).sum((1, 2))
        return {"loss": total, "accuracy": right / counts, "cross_entropy": plain}

    def evaluate(self, forward: Forward, held: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return the share of wrong answers on each held-out set per replica."""
        errors = {}
        for name in self.settings["held"]:
            wrong, count = torch.zeros(1), 0
            for part in held[name].split(HELD):
                inputs, labels = targets(self.settings["task"], "clean", part[None].long())
                answers = forward(inputs)[0].argmax(-1)
                wrong = wrong.to(answers.device) + ((answers != labels) & (labels >= 0)).sum((1, 2))
                count += int((labels >= 0).sum())
            errors[f"error_{name}"] = wrong.float() / count
        return errors


def targets(task: str, loss: str, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Return inputs and labels (R, B, T'), -1 where nothing is asked.

    Of strings the input lacks the last token, and the label is the next one; of the automaton the label is the state.
    """
    if task == "automaton":
        at = torch.arange(tokens.shape[-1], device=tokens.device)
        last = torch.where(tokens != language.NOOP, at, 0).cummax(-1).values
        return tokens, tokens.gather(-1, last) - 1
    inputs, labels = tokens[..., :-1], tokens[..., 1:]
    if loss == "clean":
        labels = labels.masked_fill(inputs != language.READ, -1)
    return inputs, labels


def penalty(kind: str, pattern: Tensor) -> Float[Tensor, " R"]:
    """Return the penalty on attention rows (R, B, H, T, T), averaged over sequences, heads and queries (3.5.6.4)."""
    if kind == "entropy":
        rows = -(pattern * (pattern + TINY).log()).sum(-1)
    elif kind == "l2":
        rows = -pattern.norm(dim=-1)
    else:
        rows = -pattern.amax(-1)
    return rows.mean((1, 2, 3))


def penalty_weight(sharpen: dict[str, Any] | None, step: int, steps: int) -> float:
    """Return the penalty's weight at a 0-based step: 0 before its start; then constant, rising linearly to the last
    step, or oscillating (our reading of the source's names)."""
    if sharpen is None or step < sharpen["start"]:
        return 0.0
    since = step - sharpen["start"]
    if sharpen["schedule"] == "linear":
        return float(sharpen["weight"] * since / (steps - sharpen["start"]))
    if sharpen["schedule"] == "oscillating":
        return float(sharpen["weight"] * (1 - math.cos(2 * math.pi * since / PERIOD)) / 2)
    return float(sharpen["weight"])
