"""Verifiers trained on the hidden states of language models (Li 2025, sections 3.2.1.2 and 3.2.2.6)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.kit.streams import stream
from pipeline.models.llama.verifiers import Layer, scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.studies.verifier.params import Training


@dataclass(frozen=True)
class Fitted:
    """Verifiers of one model, one for each split: weights with the splits as leading axis, and how right they are."""

    weights: list[Layer]
    validation: NDArray[np.float64]  # (S,) accuracy, at the epoch that is kept
    training: NDArray[np.float64]
    n_train: int
    n_validation: int


def fit(
    settings: Training,
    features_NxD: Tensor,
    right_N: NDArray[np.bool_],
    names: tuple[str | int, ...],
    seed: int,
    depth: int = 1,
) -> Fitted:
    """Train a verifier for each of ``settings.splits`` random splits of the samples, all side by side.

    One of ``depth`` linear layers (`pipeline.models.llama.verifiers.Trained`), by AdamW on the cross-entropy; the
    weights of the epoch with the best validation accuracy are kept, of several the first. ``names`` address the random
    streams.
    """
    S, N = settings.splits, len(right_N)
    n_train = max(1, min(N - 1, round(N * settings.share)))
    orders = np.stack([stream(seed, *names, "split", s).permutation(N) for s in range(S)])
    train, held = torch.from_numpy(orders[:, :n_train]), torch.from_numpy(orders[:, n_train:])
    features, labels = features_NxD.float(), torch.from_numpy(right_N.astype(np.int64))
    widths = [features.shape[1], *[settings.hidden] * (depth - 1), 2]
    rngs = [stream(seed, *names, "start", s) for s in range(S)]
    weights = [_start(rngs, inner, outer) for inner, outer in itertools.pairwise(widths)]
    flat = [part for layer in weights for part in layer]
    optimizer = torch.optim.AdamW(flat, lr=settings.lr, weight_decay=settings.weight_decay)
    best = torch.full((S,), -1.0)
    kept = [part.detach().clone() for part in flat]
    for epoch in range(settings.epochs):
        order = np.stack([stream(seed, *names, "epoch", epoch, s).permutation(n_train) for s in range(S)])
        shuffled = train.gather(1, torch.from_numpy(order))
        for batch in shuffled.split(settings.batch, 1):
            loss = F.cross_entropy(
                scores(weights, features[batch]).flatten(0, 1), labels[batch].flatten(), reduction="sum"
            )
            optimizer.zero_grad(set_to_none=True)
            (loss / batch.shape[1]).backward()
            optimizer.step()
        with torch.no_grad():
            better = (accuracy := _accuracy(weights, features, labels, held)) > best
            best = torch.where(better, accuracy, best)
            for mine, new in zip(kept, flat, strict=True):
                mine[better] = new.detach()[better]
    final = [(kept[n], kept[n + 1]) for n in range(0, len(kept), 2)]
    training = _accuracy(final, features, labels, train)
    return Fitted(final, best.double().numpy(), training.double().numpy(), n_train, N - n_train)


def _start(rngs: list[np.random.Generator], inner: int, outer: int) -> Layer:
    """Return weights and biases uniform in +-1/sqrt(inner), as linear layers of PyTorch start."""
    bound = 1 / math.sqrt(inner)
    drawn = [(rng.uniform(-bound, bound, (inner, outer)), rng.uniform(-bound, bound, outer)) for rng in rngs]
    W, b = (torch.from_numpy(np.stack(part)).float().requires_grad_() for part in zip(*drawn, strict=True))
    return W, b


def _accuracy(weights: list[Layer], features: Tensor, labels: Tensor, chosen_SxN: Tensor) -> Tensor:
    with torch.no_grad():
        return (scores(weights, features[chosen_SxN]).argmax(-1) == labels[chosen_SxN]).float().mean(1)


def accuracy(weights: list[Layer], features_NxD: Tensor, right_N: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return (S,) the share of samples that each verifier judges rightly."""
    count = len(weights[0][0])
    chosen = torch.arange(len(right_N)).expand(count, -1)
    labels = torch.from_numpy(right_N.astype(np.int64))
    return _accuracy(weights, features_NxD.float(), labels, chosen).double().numpy()
