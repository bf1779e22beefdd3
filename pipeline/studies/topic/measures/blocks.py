"""MT1: what is in the blocks of a word by word matrix, and what outside (captions of figures 2.1 to 2.6)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
SUBSET = 1000  # entries of the random subset in the captions of figures 2.5 and 2.6


def same_topic(topics: int, words: int) -> NDArray[np.bool_]:
    """Return (T v, T v): whether two words share their topic."""
    own = np.repeat(np.arange(topics), words)
    return own[:, None] == own


def block_stats(matrix: Floats, topics: int, words: int) -> dict[str, float]:
    """Return what figures and gates read off a matrix (T v, T v) of words.

    ``block_mean`` is over all same-topic entries with the diagonal; ``auc`` is the probability that a same-topic
    entry off the diagonal is above a different-topic one; block sums are means over rows, those of ``block_sum_diff``
    per topic. ``top_share`` is the share of a row's largest entry, by size, among those of its topic, mean over rows
    (1 / v in an even block, 1 in a matching of words); ``top_is_self`` says in what share of rows that entry is on the
    diagonal (1 / v by chance), and ``top_distinct`` how many columns have such an entry, over rows (1 in a matching).
    ``nonblock_sub_std`` is the standard deviation of the mean of 1000 different-topic entries drawn
    without replacement: that of the entries, over sqrt(1000), times sqrt((n - 1000) / (n - 1)); nothing is drawn.
    """
    same = same_topic(topics, words)
    diagonal = np.eye(len(matrix), dtype=bool)
    inside, outside = matrix[same & ~diagonal], matrix[~same]
    ranks = stats.rankdata(np.concatenate([inside, outside]))[: len(inside)]
    above = (ranks.sum() - len(inside) * (len(inside) + 1) / 2) / (len(inside) * len(outside))
    n, spread = len(outside), float(outside.std())
    own = np.where(same, matrix, 0.0).sum(1)
    rows = np.abs(matrix[same].reshape(len(matrix), words))  # of its topic alone
    best = rows.argmax(1)
    weight = rows.sum(1)
    top = np.divide(rows.max(1), weight, out=np.full(len(rows), math.nan), where=weight > 0)
    return {
        "block_mean": float(matrix[same].mean()),
        "diag_mean": float(matrix[diagonal].mean()),
        "same_offdiag_mean": float(inside.mean()),
        "diff_mean": float(outside.mean()),
        "diff_std": spread,
        "auc": float(above) if np.isfinite(matrix).all() else math.nan,
        "block_sum_same": float(own.mean()),
        "block_sum_diff": float((matrix.sum(1) - own).mean() / (topics - 1)),
        "top_share": float(top.mean()),
        "top_is_self": float((best == np.arange(len(matrix)) % words).mean()),
        "top_distinct": len({*zip(np.arange(len(matrix)) // words, best, strict=True)}) / len(matrix),
        "nonblock_sub_std": spread * math.sqrt((n - SUBSET) / (n - 1) / SUBSET) if n > SUBSET else math.nan,
    }


def products(columns: Floats, topics: int, words: int) -> dict[str, float]:
    """Return means of the inner products of columns (d, T v) of words: of each with itself (``square``), of two of one
    topic (``same``) and of two topics (``other``).

    >>> products(np.eye(4), 2, 2)
    {'square': 1.0, 'same': 0.0, 'other': 0.0}
    """
    same, itself = same_topic(topics, words), np.eye(topics * words, dtype=bool)
    gram = columns.T @ columns
    kinds = {"square": itself, "same": same & ~itself, "other": ~same}
    return {name: float(gram[which].mean()) for name, which in kinds.items()}


def cosines(embedding: Floats) -> Floats:
    """Return (N, N) the cosines of the columns of ``embedding`` (d, N)."""
    unit = embedding / np.linalg.norm(embedding, axis=0)
    return unit.T @ unit
