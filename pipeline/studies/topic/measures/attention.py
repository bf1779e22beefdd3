"""MT2: average attention between equal words, different words of one topic, and words of different topics.

(Tables 2.1 and 2.2.) Attention is measured on documents without masks, over all ordered pairs of positions, keys i
and queries j, i = j among the equal words; pairs of different tokens of which one has no label are counted apart.
Without positions a model gives all tokens of a word the same, so pairs of words are enumerated.

The released code looks labels up by token id, where words begin at 4 behind special tokens: ``offset`` 4 gives the
zero-based word w the label (w + 4) // v, none to words whose label is no topic, and start and end the label 0.
``offset`` 0 is right.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.languages import topic as language
from pipeline.models.topic import one_layer
from schemas.topic import datasets

Ints = NDArray[np.int64]
CATEGORIES = ("same_word", "same_topic_diff_word", "diff_topic", "unlabelled")
OFFSETS = (0, 4)
NORMS = ("raw", "norm100")


def labels(symbols: int, topics: int, words: int, offset: int) -> Ints:
    """Return (V,) the topic that each id is taken to have; ``language.NO_TOPIC`` for none."""
    ids = np.arange(symbols)
    topic = language.topics_of(ids, topics, words)
    if offset:
        is_word = topic != language.NO_TOPIC
        shifted = (ids - 1 + offset) // words
        topic = np.where(is_word & (shifted < topics), shifted, language.NO_TOPIC)
        if symbols > topics * words + 1:
            topic[[language.start(topics, words), language.end(topics, words)]] = 0
    return topic


def categories(topic: Ints) -> NDArray[np.int8]:
    """Return (V, V) the number in `CATEGORIES` of each pair of ids.

    Equal ids are the same word, whether or not they have a label: only then there are as many such pairs with shifted
    labels as with right ones, as in the released counts.
    """
    same_topic = topic[:, None] == topic
    known = topic != language.NO_TOPIC
    category = np.where(known[:, None] & known, np.where(same_topic, 1, 2), 3)
    np.fill_diagonal(category, 0)
    return category.astype(np.int8)


def plain_counts(frame: pl.DataFrame, scheme: str, documents: int) -> Ints:
    """Return (N, V) how often each id occurs in the first held-out documents, without masks."""
    held = frame.filter(split="dev").head(documents)
    read = datasets.documents(held)
    topics, words = (int(held[name][0]) for name in ("topics", "words"))
    return language.keys(read.tokens, read.lengths, topics, words, scheme == "released")


def averages(
    spec: one_layer.Spec, params: dict[str, Tensor], table: Tensor, counts: Ints, topics: int, words: int
) -> list[dict[str, object]]:
    """Return the averages of one model (leading axis of ``params`` 1): a row for each offset, norm and category."""
    by_pair_norm = {norm: np.zeros((spec.symbols, spec.symbols)) for norm in NORMS}
    ids = torch.arange(spec.symbols)
    with torch.no_grad():
        for part in np.array_split(counts, max(1, len(counts) // 50)):
            read = torch.from_numpy(part.astype(np.float32))[None]
            document = torch.arange(len(part)).repeat_interleave(spec.symbols)[None]
            token = ids.repeat(len(part))[None]
            _, recorded = one_layer.forward(spec, params, table, read, document, token, record=["attention"])
            given = recorded["attention"][0].view(len(part), spec.symbols, spec.symbols).double().numpy()
            size = part.sum(1)
            for norm in NORMS:
                weight = part * (size[:, None] / 100 if norm == "norm100" else 1.0)  # of each query
                by_pair_norm[norm] += np.einsum("nb,nbc->bc", weight, given)
    pairs = counts.T.astype(float) @ counts
    rows: list[dict[str, object]] = []
    for offset in OFFSETS:
        kind = categories(labels(spec.symbols, topics, words, offset))
        for norm, total in by_pair_norm.items():
            for number, category in enumerate(CATEGORIES):
                n = float(pairs[kind == number].sum())
                rows.append(
                    {
                        "label_offset": offset,
                        "norm": norm,
                        "category": category,
                        "mean_attn": float(total[kind == number].sum()) / n if n else None,
                        "n_pairs": round(n),
                        "pair_share": n / pairs.sum(),
                    }
                )
    return rows


def expected(counts: Ints, norm: str) -> float:
    """Return what the mean over all pairs has to be: every query's attention sums to 1."""
    size = counts.sum(1).astype(float)
    return float(size.sum() / (size**2).sum()) if norm == "raw" else 0.01
