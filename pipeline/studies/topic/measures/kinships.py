"""Tables 2.3 to 2.5 and Figure 2.3 of one model: words of a corpus, their embeddings and the attention among them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.inputs import Inputs
from pipeline.studies.topic import comparisons as declared
from pipeline.studies.topic.measures import models, topic_words, word_pairs
from pipeline.studies.topic.measures.models import Floats, Row


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
        return {"model": self.model, "run": self.run, "replica": self.replica, "is_standin": self.is_standin}


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
        "corpus": corpus.name,
        "k_topics": lda.topics,
        "documents": len(corpus.documents),
        "vocabulary": len(corpus.words),
        "elbo": lda_fit.elbo,
        "n_iter": lda_fit.passes,
        "matched_overlap": None if truth is None else topic_words.matched_overlap(topics, truth),
    }
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


def measured(reading: Reading) -> dict[str, tuple[Floats, Floats]]:
    """Return what is measured of pairs of words, by name: sums and counts (V, V)."""
    ones = np.ones_like(reading.attention.pairs)
    found: dict[str, tuple[Floats, Floats]] = {}
    for name, vectors in reading.embeddings.items():
        cosines, dots = word_pairs.alike(vectors)
        found |= {f"cosine, {name}": (cosines, ones), f"dot product, {name}": (dots, ones)}
    seen = reading.attention
    return found | {"attention, raw": (seen.raw, seen.pairs), "attention, debiased": (seen.debiased, seen.pairs)}


def kinship(context: Inputs, corpus: Corpus, reading: Reading) -> Iterator[Row]:
    """Yield the rows of table ``kinship`` of one model: all topics, thresholds, assignments and measures."""
    by_measure = measured(reading)
    for phi, topics in corpus.topics.items():
        for threshold in context.entry.thresholds:
            kept = topic_words.kept(threshold, len(corpus.words))
            for assign in ("one", "multi"):
                same, different = topic_words.kin(topic_words.members(topics, kept, assign == "one"))
                for measure, (sums, counts) in by_measure.items():
                    contrast = word_pairs.contrast(sums, counts, same, different)
                    if not (contrast.n_same and contrast.n_different):
                        continue  # no such pair stands together in any document
                    yield reading.keys | {
                        "corpus": corpus.name,
                        "phi": phi,
                        "threshold": threshold,
                        "kept": kept,
                        "assign": assign,
                        "measure": measure,
                        "same": contrast.same,
                        "different": contrast.different,
                        "difference": contrast.difference,
                        "ratio": contrast.ratio(context.entry.least_denominator),
                        "n_same": contrast.n_same,
                        "n_different": contrast.n_different,
                    }


class Companions(NamedTuple):
    """Pairs of words (V, V) that are compared at a threshold, and which words belong to which topic (K, V)."""

    belongs: NDArray[np.bool_]
    groups: dict[str, NDArray[np.bool_]]


def companions(corpus: Corpus, topics: Floats, threshold: float, together: NDArray[np.int64]) -> Companions:
    """Return the groups of pairs of Table 2.5; words may belong to several topics.

    There are as many companions as one topic has pairs: C(kept, 2), which are 105, 435 and 1711 in the source.
    """
    kept = topic_words.kept(threshold, len(corpus.words))
    belongs = topic_words.members(topics, kept, one=False)
    same, _ = topic_words.kin(belongs)
    known = ~corpus.stop & np.any([each.any(0) for each in corpus.topics.values()], axis=0)
    most = word_pairs.top_pairs(together, known, math.comb(kept, 2))
    everything = known[:, None] & known & ~np.eye(len(known), dtype=bool)
    groups = {"same_topic": same, "top_cooccur": most, "top_unrelated": most & ~same, "all": everything}
    return Companions(belongs, groups)


def pairs(context: Inputs, corpus: Corpus, reading: Reading) -> Iterator[Row]:
    """Yield the rows of table ``word_pairs`` of one model; words may belong to several topics.

    Companions are counted in documents. Cosines are those of the output of the embedding layer, where there is one.
    """
    together = word_pairs.cooccurrences(corpus.documents, len(corpus.words))
    upper = np.triu(np.ones((len(corpus.words), len(corpus.words)), bool), 1)
    by_measure = measured(reading)
    cosines = by_measure.get(declared.OUTPUT, by_measure.get(declared.TABLE))
    seen = reading.attention
    for phi, topics in corpus.topics.items():
        for threshold in context.entry.thresholds:
            groups = companions(corpus, topics, threshold, together).groups
            for group, which in groups.items():
                if not which.any():
                    continue
                n = seen.pairs[which].sum()
                yield reading.keys | {
                    "corpus": corpus.name,
                    "phi": phi,
                    "threshold": threshold,
                    "kept": topic_words.kept(threshold, len(corpus.words)),
                    "group": group,
                    "n_pairs": int((which & upper).sum()),
                    "kin_share": float(groups["same_topic"][which].mean()),
                    "mean_attention": float(seen.debiased[which].sum() / n) if n else None,
                    "mean_cosine": None if cosines is None else float(cosines[0][which].mean()),
                }


def cells(
    reading: Reading, corpus: str, words: Sequence[str], groups: Sequence[int], embeddings: dict[str, Tensor]
) -> Iterator[Row]:
    """Yield the rows of table ``word_map`` for ``words``, of which those with one number in ``groups`` are kin."""
    for name, vectors in embeddings.items():
        cosines = word_pairs.alike(vectors)[0]
        for row, column in np.ndindex(cosines.shape):
            yield {
                "model": reading.model,
                "run": reading.run,
                "corpus": corpus,
                "is_standin": reading.is_standin,
                "embedding": name,
                "row": row,
                "column": column,
                "row_word": words[row],
                "column_word": words[column],
                "same_topic": groups[row] == groups[column],
                "cosine": float(cosines[row, column]),
            }


def compared(found: Measurements, rows: list[Row], pair_rows: list[Row], learned: dict[tuple[str, int], bool]) -> None:
    """Measure the comparisons of stand-ins, of models that learned where only these count.

    ``learned`` says it of each model, by run and replica.
    """
    for kin, comparison in declared.KINSHIP.items():
        own = {
            row["replica"]: row[kin.what]
            for row in rows
            if row["assign"] == "one"
            and all(row[name] == value for name, value in kin._asdict().items() if name != "what")
        }
        _measure(found, comparison, kin.run, own, learned)
    for pairs, comparison in declared.COMPANIONS.items():
        by_group = [
            {
                row["replica"]: row["mean_cosine"]
                for row in pair_rows
                if row["group"] == group
                and row["model"] == "NLM-3"
                and all(row[name] == getattr(pairs, name) for name in ("run", "corpus", "phi", "threshold"))
            }
            for group in ("same_topic", pairs.group)
        ]
        kin_of, others = by_group
        gaps = {replica: _less(value, others.get(replica)) for replica, value in kin_of.items()}
        _measure(found, comparison, pairs.run, gaps, learned)


def _less(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first - second


def _measure(
    found: Measurements,
    comparison: Comparison,
    run: str,
    values: Mapping[int, float | None],
    learned: dict[tuple[str, int], bool],
) -> None:
    """Measure a comparison on values by replica; one is missing where no such pair of words stands together."""
    every = [(replica, own) for (name, replica), own in learned.items() if name == run]
    if not every:
        return  # not trained at this scale
    counted = [replica for replica, own in every if own or not comparison.learned]
    sample = np.array([values[replica] for replica in counted if values.get(replica) is not None], float)
    without = len(counted) - len(sample)
    reasons = [models.UNLEARNED] * (len(every) > len(counted)) + [models.UNDEFINED] * (without > 0)
    found.add(comparison, sample, excluded=len(every) - len(sample), reason=" or ".join(reasons))


def embeddings(vectors: Tensor, outputs: Callable[[], Tensor] | None) -> dict[str, Tensor]:
    """Return embeddings by name: rows of the word table, and outputs of the embedding layer where there is one."""
    return {"word table": vectors} | ({} if outputs is None else {"layer output": outputs()})
