"""Masked words of documents, as BERT masks them (Devlin et al. 2019, section 3.1; Li 2025, section 2.1.5.4).

Masks are drawn anew at every step: each word is chosen with probability ``p_mask``; a chosen one stays with probability
``p_keep``, becomes a random word with ``p_random``, and the mask otherwise. What stood at the chosen places is asked
for; the loss is the mean cross-entropy in nats over all of them in a batch.

Settings: ``p_mask``, ``p_keep``, ``p_random``; ``symbols``; ``first_word`` (ids below are special, and never masked)
and ``mask``, its id; ``layers`` of the model.

Data of the job: ``tokens`` (N, T), padded behind their ends, and ``lengths`` (N,); of held-out documents, whose masks
are drawn once, ``held.tokens`` as they are shown, ``held.lengths``, ``held.places`` (P,) and ``held.labels`` (P,).

Metrics: ``loss``, ``accuracy``; ``held_loss``, and ``norm_<k, q or v>_<layer>``, the Frobenius norms of W_K, W_Q, W_V.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import NDArray

Forward = Callable[..., tuple[Tensor, dict[str, Tensor]]]


class Objective:
    """Batches and losses of one run."""

    l2 = 0.0
    side_by_side = 1  # nothing is gained: bound by the products
    metrics = ("loss", "accuracy")

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        self.data, self.settings = data, settings
        self.sequences = len(data["lengths"])
        names = [f"norm_{which}_{layer}" for layer in range(settings["layers"]) for which in "kqv"]
        self.evaluated = ("held_loss", *names)

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: Sequence[Callable[[], np.random.Generator]]
    ) -> dict[str, np.ndarray]:
        """Return ``ids`` (R, B, T) as they are shown, ``lengths`` (R, B), ``places`` and ``labels`` (R, P), and
        ``weight`` (R, P), 0 behind the last place of a replica."""
        lengths = np.stack([self.data["lengths"][chosen] for chosen in selections]).astype(np.int64)
        longest = int(lengths.max())
        tokens = np.stack([self.data["tokens"][chosen, :longest] for chosen in selections]).astype(np.int64)
        at, ids = np.zeros(tokens.shape, bool), tokens.copy()
        for r, rng in enumerate(rngs):  # as wide as the replica's own documents, so that no draw depends on the company
            width = int(lengths[r].max())
            at[r, :, :width], ids[r, :, :width] = masks(rng(), tokens[r, :, :width], self.settings)
        places = [np.flatnonzero(chosen) for chosen in at]
        shape = len(places), max(map(len, places))
        where, labels, weight = (np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.float32))
        for r, own in enumerate(places):
            where[r, : len(own)], weight[r, : len(own)] = own, 1
            labels[r, : len(own)] = tokens[r].ravel()[own]
        return {"ids": ids, "lengths": lengths, "places": where, "labels": labels, "weight": weight}

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica."""
        logits, labels = forward(batch["ids"], batch["lengths"], batch["places"])[0], batch["labels"]
        entropy = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)
        weight = batch["weight"] / batch["weight"].sum(-1, keepdim=True)
        right = (logits.detach().argmax(-1) == labels).float()
        return {"loss": (entropy * weight).sum(-1), "accuracy": (right * weight).sum(-1)}

    def evaluate(self, forward: Forward, held: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return the loss on held-out documents and the norms of weights per replica."""
        read = (held[name][None].long() for name in ("tokens", "lengths", "places"))
        logits, recorded = forward(*read, record=["norms"])
        labels = held["labels"].long().expand(len(logits), -1)
        entropy = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)
        norms = recorded["norms"].flatten(1).unbind(1)
        return dict(zip(self.evaluated, (entropy.mean(-1), *norms), strict=True))


def masks(
    rng: np.random.Generator, tokens: NDArray[np.int64], settings: dict[str, Any]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which of the ``tokens`` are chosen, and what all of them show; at least one is chosen.

    It takes from ``rng`` as much for a token that is special as for a word.
    """
    words = tokens >= settings["first_word"]
    at = np.zeros(tokens.shape, bool)
    while not at.any():
        at = (rng.random(tokens.shape) < settings["p_mask"]) & words
    what = rng.random(tokens.shape)
    random = rng.integers(settings["first_word"], settings["symbols"], size=tokens.shape)
    changed = np.where(what < settings["p_keep"] + settings["p_random"], random, settings["mask"])
    changed = np.where(what < settings["p_keep"], tokens, changed)
    return at, np.where(at, changed, tokens)
