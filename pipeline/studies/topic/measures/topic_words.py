"""Words of topics: topics fitted by variational Bayes, and the words that are least ambiguous (Li 2025, section
2.1.5.4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import LatentDirichletAllocation

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Fit(NamedTuple):
    """Topics (K, V) as they were fitted, each a law of words; the bound on the log-likelihood of all documents; and how
    many passes were made."""

    topics: Floats
    elbo: float
    passes: int


def fit(rng: np.random.Generator, counts: NDArray[np.int64], many: int, alpha: float, eta: float, passes: int) -> Fit:
    """Return ``many`` topics of the documents ``counts`` (N, V), by batch variational Bayes (Hoffman et al. 2010).

    ``alpha`` and ``eta`` are the parameters of the Dirichlet priors of shares of topics and of words.
    """
    model = LatentDirichletAllocation(
        many,
        doc_topic_prior=alpha,
        topic_word_prior=eta,
        learning_method="batch",
        max_iter=passes,
        random_state=int(rng.integers(2**31)),
    )
    model.fit(counts)
    topics = model.components_ / model.components_.sum(1, keepdims=True)
    return Fit(topics, float(model.score(counts)), int(model.n_iter_))


def without(topics: Floats, words: NDArray[np.integer]) -> Floats:
    """Return the laws (K, V) given that no word is among ``words``: stop words and special ids.

    >>> without(np.array([[0.5, 0.25, 0.25]]), np.array([0])).tolist()
    [[0.0, 0.5, 0.5]]
    """
    laws = topics.copy()
    laws[:, words] = 0
    return laws / laws.sum(1, keepdims=True)


def matched_overlap(topics: Floats, truth: Floats) -> float:
    """Return the mean over topics of sum_w min(p(w), q(w)), topics matched one to one so that it is largest.

    >>> matched_overlap(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.5, 0.5], [0.75, 0.25]]))
    0.875
    """
    shared = np.minimum(topics[:, None], truth[None]).sum(-1)
    rows, columns = linear_sum_assignment(-shared)
    return float(shared[rows, columns].mean())


def kept(threshold: float, vocabulary: int) -> int:
    """Return how many words are kept of each topic: int(theta n) + 1, as in the released code.

    Table 2.5 has 105, 435 and 1711 pairs: those of 15, 30 and 59 words, which fits no other rule.

    >>> [kept(theta, 29200) for theta in (0.0005, 0.001, 0.002)]
    [15, 30, 59]
    """
    return int(threshold * vocabulary) + 1


def members(topics: Floats, many: int, one: bool) -> Bools:
    """Return (K, V): which words are among the ``many`` most likely ones of a topic; words without probability never
    are.

    Of words with the same probability the first is more likely. With ``one``, a word belongs to one topic alone: of
    those that keep it, to the one in which it is most likely.
    """
    membership = np.zeros(topics.shape, bool)
    best = np.argsort(-topics, axis=1, kind="stable")[:, :many]
    np.put_along_axis(membership, best, True, axis=1)
    membership &= topics > 0
    if one:
        membership &= np.where(membership, topics, -1.0).argmax(0) == np.arange(len(topics))[:, None]
    return membership


def kin(belongs: Bools) -> tuple[Bools, Bools]:
    """Return (V, V) twice: which different words share a topic, and which have topics and share none."""
    shared: Bools = belongs.T.astype(int) @ belongs.astype(int) > 0
    any_topic: Bools = np.any(belongs, axis=0)
    different = any_topic[:, None] & any_topic & ~shared
    return shared & ~np.eye(len(shared), dtype=bool), different


def least_ambiguous(topics: Floats, belongs: Bools, many: int) -> NDArray[np.int64]:
    """Return (K, ``many``): of the words of each topic those with the largest p(topic | word), topics alike likely."""
    share = topics / np.maximum(topics.sum(0), np.finfo(float).tiny)
    return np.argsort(-np.where(belongs, share, -1.0), axis=1, kind="stable")[:, :many]
