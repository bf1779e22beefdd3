"""Tables 2.3 to 2.5 and Figure 2.3 of one model: words of a corpus, their embeddings and the attention among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pipeline.kit import extremes
from pipeline.kit.inputs import Inputs
from pipeline.studies.topic.measures import contrasts, topic_words, word_pairs

Floats = NDArray[np.float64]
Row = dict[str, Any]
LONGER = ("ratio", "difference", "same", "different")


@dataclass(frozen=True)
class Corpus:
    """Documents as ids, what these are, and topics (K, V) by where they are from; topics give no stop word
    probability."""

    name: str
    documents: list[NDArray[np.int64]]
    words: list[str]
    stop: NDArray[np.bool_]
    topics: dict[str, Floats]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Return (N, V) how often each id is in each document."""
        return np.stack([np.bincount(own, minlength=len(self.words)) for own in self.documents])


@dataclass(frozen=True)
class Reading:
    """What is known of one model: who it is, embeddings (V, D) of the ids of its corpus by name, and attention."""

    model: str
    run: str
    replica: int
    is_standin: bool
    embeddings: dict[str, Tensor]
    attention: word_pairs.Attention

    @property
    def keys(self) -> Row:
        """Return what names it in tables."""
        return {
            "model": self.model, "run": self.run, "replica": self.replica, "is_standin": self.is_standin,
        }  # fmt: skip


def fit(context: Inputs, rng: np.random.Generator, corpus: Corpus) -> tuple[Corpus, Row, list[Row]]:
    """Return the corpus with topics that are fitted to it, and the rows of tables ``lda_fit`` and ``lda_topics``.

    As in the source, topics are fitted to all words; stop words lose their probability afterwards.
    """
    lda = context.entry.lda
    special = np.array([word.startswith("[") for word in corpus.words])
    counts = corpus.counts * ~special
    lda_fit = topic_words.fit(rng, counts, lda.topics, lda.alpha, lda.eta, lda.passes)
    topics = topic_words.without(lda_fit.topics, np.flatnonzero(corpus.stop))
    truth = corpus.topics.get("true")
    row = {
        "corpus": corpus.name, "k_topics": lda.topics, "documents": len(corpus.documents),
        "vocabulary": len(corpus.words), "elbo": lda_fit.elbo, "n_iter": lda_fit.passes,
        "matched_overlap": None if truth is None else topic_words.matched_overlap(topics, truth),
    }  # fmt: skip
    rows = [
        {"corpus": corpus.name, "topic": k, "id": int(w), "word": corpus.words[w], "p": float(topics[k, w])}
        for k in range(lda.topics)
        for w in np.flatnonzero(topics[k])
    ]
    return (
        Corpus(corpus.name, corpus.documents, corpus.words, corpus.stop, corpus.topics | {"lda": topics}),
        row,
        rows,
    )


def kinship(context: Inputs, corpus: Corpus, reading: Reading) -> Iterator[Row]:
    """Yield the rows of table ``kinship`` of one model: all topics, thresholds, assignments and measures."""
    ones = np.ones((len(corpus.words), len(corpus.words)))
    measured: dict[str, tuple[Floats, Floats]] = {}
    for name, vectors in reading.embeddings.items():
        cosines, dots = word_pairs.alike(vectors)
        measured |= {f"cosine, {name}": (cosines, ones), f"dot product, {name}": (dots, ones)}
    seen = reading.attention
    measured |= {
        "attention, raw": (seen.raw, seen.pairs),
        "attention, debiased": (seen.debiased, seen.pairs),
    }
    for phi, topics in corpus.topics.items():
        for threshold in context.entry.thresholds:
            kept = topic_words.kept(threshold, len(corpus.words))
            for assign in ("one", "multi"):
                same, different = topic_words.kin(topic_words.members(topics, kept, assign == "one"))
                for measure, (sums, counts) in measured.items():
                    contrast = word_pairs.contrast(sums, counts, same, different)
                    if not (contrast.n_same and contrast.n_different):
                        continue  # no such pair stands together in any document
                    yield reading.keys | {
                        "corpus": corpus.name, "phi": phi, "threshold": threshold, "kept": kept, "assign": assign,
                        "measure": measure, "same": contrast.same, "different": contrast.different,
                        "difference": contrast.difference, "ratio": contrast.ratio(context.entry.least_denominator),
                        "n_same": contrast.n_same, "n_different": contrast.n_different,
                    }  # fmt: skip


def pairs(context: Inputs, corpus: Corpus, reading: Reading) -> Iterator[Row]:
    """Yield the rows of table ``word_pairs`` of one model; words may belong to several topics.

    Companions are counted in documents; the groups of same-topic pairs and of companions are equally large. Cosines are
    those of the output of the embedding layer, where there is one.
    """
    together = word_pairs.cooccurrences(corpus.documents, len(corpus.words))
    upper = np.triu(np.ones((len(corpus.words), len(corpus.words)), bool), 1)
    known = ~corpus.stop & np.any([topics.any(0) for topics in corpus.topics.values()], axis=0)
    everything = known[:, None] & known & ~np.eye(len(known), dtype=bool)
    cosines = None
    for name in ("word table", "layer output"):
        if name in reading.embeddings:
            cosines = word_pairs.alike(reading.embeddings[name])[0]
    seen = reading.attention
    for phi, topics in corpus.topics.items():
        for threshold in context.entry.thresholds:
            kept = topic_words.kept(threshold, len(corpus.words))
            same, _ = topic_words.kin(topic_words.members(topics, kept, one=False))
            many = int((same & upper).sum())
            if not many:
                continue
            companions = word_pairs.top_pairs(together, known, many)
            for group, which in (("same_topic", same), ("top_cooccur", companions), ("all", everything)):
                n = seen.pairs[which].sum()
                yield reading.keys | {
                    "corpus": corpus.name, "phi": phi, "threshold": threshold, "kept": kept, "group": group,
                    "n_pairs": int((which & upper).sum()), "kin_share": float(same[which].mean()),
                    "mean_attention": float(seen.debiased[which].sum() / n) if n else None,
                    "mean_cosine": None if cosines is None else float(cosines[which].mean()),
                }  # fmt: skip


def cells(
    reading: Reading, corpus: str, words: Sequence[str], groups: Sequence[int], embeddings: dict[str, Tensor]
) -> Iterator[Row]:
    """Yield the rows of table ``word_map`` for ``words``, of which those with one number in ``groups`` are kin."""
    for name, vectors in embeddings.items():
        cosines = word_pairs.alike(vectors)[0]
        for row, column in np.ndindex(cosines.shape):
            yield {
                "model": reading.model, "run": reading.run, "corpus": corpus, "is_standin": reading.is_standin,
                "embedding": name, "row": row, "column": column, "row_word": words[row],
                "column_word": words[column], "same_topic": groups[row] == groups[column],
                "cosine": float(cosines[row, column]),
            }  # fmt: skip


def compared(context: Inputs, rows: list[Row], pair_rows: list[Row]) -> list[Row]:
    """Return comparisons over seeds: medians of every measure, and the least over all choices of words.

    Names are ``<run> <model> <corpus> <phi> <assign> <threshold> <measure> <what>``, or ``… least <measure> <what>``
    for the smallest median over thresholds, whatever the topics and the assignment.
    """
    comparisons: list[Row] = []
    keys = ("run", "model", "corpus", "phi", "assign", "threshold", "measure")
    least: dict[tuple[Any, ...], list[tuple[float, int]]] = {}
    for key, own in _grouped(rows, keys):
        for what in LONGER[:2]:
            values = [np.nan if row[what] is None else row[what] for row in own]
            name = " ".join([*map(_key_text, key), what])
            made = contrasts.median(context, name, values)
            comparisons += made
            least.setdefault((*key[:5], key[6], what), []).append((made[0]["value"], len(values)))
    for (*who, measure, what), medians in least.items():
        smallest = extremes.smallest(np.array([value for value, _ in medians]))
        name = " ".join([*map(_key_text, who), "least", measure, what])
        comparisons += contrasts.single(name, smallest, min(n for _, n in medians))
    pair_keys = ("run", "model", "corpus", "phi", "threshold")
    for key, own in _grouped(pair_rows, pair_keys):
        for what in ("mean_cosine", "mean_attention"):
            for other in ("top_cooccur", "all"):
                first, second = (
                    np.array(
                        [np.nan if row[what] is None else row[what] for row in own if row["group"] == group],
                        float,
                    )
                    for group in ("same_topic", other)
                )
                name = " ".join([*map(_key_text, key), f"same_topic - {other}", what])
                if not np.isnan(first - second).all():
                    comparisons += contrasts.median(context, name, first - second)
    return comparisons


def _key_text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _grouped(rows: list[Row], keys: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    yield from groups.items()


def embeddings(vectors: Tensor, outputs: Callable[[], Tensor] | None) -> dict[str, Tensor]:
    """Return embeddings by name: rows of the word table, and outputs of the embedding layer where there is one."""
    return {"word table": vectors} | ({} if outputs is None else {"layer output": outputs()})
