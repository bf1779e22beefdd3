"""Pairs of words: how alike their embeddings are, and how much attention they pay each other (Li 2025, section
2.1.5.4).

Attention is averaged over layers and heads, and over ordered pairs of positions of all documents whose words differ.
Debiased, each weight is multiplied by the document's length / 100: the longer a document, the more topics it has, and
the less each weight is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.models.topic import encoder, one_layer

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

TOKENS_AT_ONCE = 4000


class Attention(NamedTuple):
    """Sums over ordered pairs of positions, (V, V) each, rows are words that ask: of weights, of debiased weights, and
    how many pairs there are."""

    raw: Floats
    debiased: Floats
    pairs: Floats


class Contrast(NamedTuple):
    """Means over pairs that share a topic and over those of different topics, and how many pairs each is of."""

    same: float
    different: float
    n_same: int
    n_different: int

    def ratio(self, least: float) -> float:
        """Return same / different; NaN where the size of ``different`` is below ``least``."""
        return self.same / self.different if abs(self.different) >= least else float("nan")

    @property
    def difference(self) -> float:
        """Return same - different."""
        return self.same - self.different


def attention_of_encoder(
    model: encoder.Ensemble,
    documents: Sequence[NDArray[np.integer]],
    symbols: int,
    words: Sequence[NDArray[np.integer]],
) -> list[Attention]:
    """Return the attention of each replica; ``words`` numbers the word at each position of each of the ``documents``,
    below ``symbols``, -1 where there is none."""
    replicas = model.params["embed.W"].shape[0]
    layers = [f"blocks.{layer}.attn.pattern" for layer in range(model.spec.layers)]
    totals = np.zeros((replicas, 2, symbols * symbols))
    count = np.zeros(symbols * symbols)
    order = sorted(range(len(documents)), key=lambda place: len(documents[place]))
    ordered = iter(order)
    for part in _parts([documents[place] for place in order]):
        lengths = torch.tensor([len(own) for own in part])
        ids = torch.zeros(len(part), int(lengths.max()), dtype=torch.long)
        for row, own in enumerate(part):
            ids[row, : len(own)] = torch.from_numpy(own.astype(np.int64))
        with torch.no_grad():
            recorded = encoder.encode(model.spec, model.params, ids[None], lengths[None], layers)[1]
        mean = torch.stack([recorded[layer].mean(2) for layer in layers]).mean(0).double().numpy()
        for row, own in enumerate(part):
            number = words[next(ordered)]
            known = np.flatnonzero(number >= 0)
            cell = (number[known][:, None] * symbols + number[known]).ravel()
            count += np.bincount(cell, minlength=symbols * symbols)
            for replica in range(replicas):
                weight = mean[replica, row][np.ix_(known, known)].ravel()
                sums = np.bincount(cell, weight, symbols * symbols)
                totals[replica] += sums, sums * len(own) / 100
    shape = symbols, symbols
    return [Attention(raw.reshape(shape), fair.reshape(shape), count.reshape(shape)) for raw, fair in totals]


def _parts(documents: Sequence[NDArray[np.integer]]) -> list[Sequence[NDArray[np.integer]]]:
    """Return documents of rising length in parts that hold some thousand tokens, padding included."""
    parts, first = [], 0
    for place in range(1, len(documents) + 1):
        if place == len(documents) or (place + 1 - first) * len(documents[place]) > TOKENS_AT_ONCE:
            parts.append(documents[first:place])
            first = place
    return parts


def attention_of_reader(
    model: one_layer.Ensemble, documents: Sequence[NDArray[np.integer]], symbols: int
) -> list[Attention]:
    """Return the attention of each replica of a model of one layer that reads documents without positions.

    All tokens of a word are alike: a query b gives each of the n_c tokens of c the same weight.
    """
    attentions = []
    with torch.no_grad():
        rows = one_layer.scores(model.spec, model.params).double()
    for own in rows:
        raw, fair, count = (np.zeros((symbols, symbols)) for _ in range(3))
        for document in documents:
            words, n = np.unique(document, return_counts=True)
            score = own[torch.from_numpy(words)][:, torch.from_numpy(words)]
            given = (score + torch.from_numpy(np.log(n))).softmax(-1).numpy()
            at = np.ix_(words, words)
            raw[at] += n[:, None] * given
            fair[at] += n[:, None] * given * len(document) / 100
            count[at] += n[:, None] * n
        attentions.append(Attention(raw, fair, count))
    return attentions


def contrast(sums: Floats, counts: Floats, same: Bools, different: Bools) -> Contrast:
    """Return means of ``sums`` over ``counts`` (V, V) within ``same`` and ``different``; NaN where no pair occurs."""
    n_same, n_different = counts[same].sum(), counts[different].sum()
    return Contrast(
        float(sums[same].sum() / n_same) if n_same else float("nan"),
        float(sums[different].sum() / n_different) if n_different else float("nan"),
        int(n_same),
        int(n_different),
    )


def alike(vectors: Tensor) -> tuple[Floats, Floats]:
    """Return cosines and dot products (V, V) of ``vectors`` (V, D)."""
    dots = (vectors.double() @ vectors.double().T).numpy()
    length = np.sqrt(np.diag(dots))
    return dots / np.maximum(length[:, None] * length, np.finfo(float).tiny), dots


def layer_outputs(spec: encoder.Spec, params: dict[str, Tensor], ids: NDArray[np.integer]) -> Tensor:
    """Return (R, V, D): what the embedding layer gives to each id at position 0."""
    with torch.no_grad():
        return encoder.embedded(spec, params, torch.from_numpy(ids.astype(np.int64))[None, :, None])[:, :, 0]


def cooccurrences(documents: Sequence[NDArray[np.integer]], symbols: int) -> NDArray[np.int64]:
    """Return (V, V) in how many documents two ids stand together."""
    present = np.zeros((len(documents), symbols), np.int64)
    for row, own in enumerate(documents):
        present[row, own] = 1
    return present.T @ present


def top_pairs(together: NDArray[np.int64], allowed: Bools, many: int) -> Bools:
    """Return (V, V), symmetric: the ``many`` pairs of different ids with the most documents in common.

    ``allowed`` (V,) says which ids may be in a pair; of pairs with as many documents the first ids win.
    """
    first, second = np.triu_indices(len(together), 1)
    fit = allowed[first] & allowed[second]
    first, second = first[fit], second[fit]
    best = np.argsort(-together[first, second], kind="stable")[:many]
    pairs = np.zeros(together.shape, bool)
    pairs[first[best], second[best]] = pairs[second[best], first[best]] = True
    return pairs
