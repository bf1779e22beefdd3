"""Documents and models that theory checks execute."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pipeline.languages import topic as language
from pipeline.models.topic import one_layer


def batch(
    rng: np.random.Generator, documents: int, topics: int, words: int, masking: language.Masking
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return counts (1, B, V), document and token (1, Q) and labels (1, Q, V) of masked documents, float64.

    The documents are those of section 2.1.5.1: Dirichlet(0.1) mixtures of 100 to 150 tokens.
    """
    made = language.mixed(rng, documents, topics, words, 0.1, 100, 150)
    at, shown = language.masked(rng, made.tokens, made.lengths, masking, np.arange(1, topics * words + 1))
    asked = language.questions(made, at, shown, topics, words, released=False)
    counts, labels = (torch.from_numpy(part.astype(float))[None] for part in (asked.counts, asked.labels))
    return counts, torch.from_numpy(asked.document)[None], torch.from_numpy(asked.shown)[None], labels


def one_hot(symbols: int, std: float) -> one_layer.Spec:
    """Return the shape of a model with one-hot embeddings, attention and values trained (equation 2.7)."""
    return one_layer.Spec(symbols, symbols, "one_hot", "trained", "trained", "none", std, std)
