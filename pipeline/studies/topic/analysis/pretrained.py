"""E8 on encoders that were trained elsewhere, and real English: Tables 2.3 to 2.5 and Figure 2.3 (Li 2025, section
2.1.5.4).

They are measured where the parameters say so; else the tables have no rows. None of them is one of the five published
models, and the text is not the published one: rows name both. The same encoder with random weights is beside each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import torch

from pipeline.errors import SandglassError
from pipeline.kit import intervals
from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.models.topic import encoder
from pipeline.studies.topic import comparisons as declared
from pipeline.studies.topic.measures import bert_checkpoint, kinships, topic_words, word_pairs
from pipeline.studies.topic.measures.bert_checkpoint import Pretrained
from pipeline.studies.topic.measures.kinships import Corpus, Floats, Reading, Row
from pipeline.studies.topic.names import REFERENCE

TRAINED, UNTRAINED = declared.ELSEWHERE, declared.RANDOM
WORD = re.compile("[a-z]+")


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of the experiment; they are empty where no encoder is measured."""
    tables: dict[str, list[Row]] = {name: [] for name in ("lda_fit", "lda_topics", "kinship", "word_pairs", "word_map")}
    texts = context.dataset(REFERENCE)["text"].to_list()
    found = Measurements(context)
    with one_thread():
        for name in context.entry.measured:
            where = f"params/{context.study}/experiments.yaml: {context.experiment}.encoders.{name}"
            own = bert_checkpoint.read(context.entry.encoders[name], where)
            documents = [own.ids(text, context.entry.longest) for text in texts]
            whole = [own.whole(document) for document in documents]
            corpus, ids = _corpus(context, own, f"{REFERENCE}, tokens of {name}", documents, whole)
            rng = stream(context.seed, context.study, "lda", name)
            corpus, fit, topics = kinships.fit(context, rng, corpus)
            tables["lda_fit"].append(fit)
            tables["lda_topics"] += topics
            readings = list(_readings(context, name, own, documents, whole, ids))
            _compared(context, found, corpus, readings)
            for reading in readings:
                tables["kinship"] += kinships.kinship(context, corpus, reading)
                tables["word_pairs"] += kinships.pairs(context, corpus, reading)
                if reading.model == TRAINED:
                    tables["word_map"] += _map(context, own, corpus.name, reading, where)
    return {name: [pl.DataFrame(rows, infer_schema_length=None)] if rows else [] for name, rows in tables.items()} | {
        "comparisons": [found.table()]
    }


def _compared(context: Inputs, found: Measurements, corpus: Corpus, readings: list[Reading]) -> None:
    """Measure the comparisons of an encoder: how far a value would move with other topics, by the jackknife.

    Of encoders for which none are declared (`pipeline.studies.topic.names.ENCODERS`) there are the other tables.
    """
    topics, all_topics = corpus.topics["lda"], np.arange(len(corpus.topics["lda"]))
    together = word_pairs.cooccurrences(corpus.documents, len(corpus.words))
    by_model = {reading.model: (reading.run, kinships.measured(reading)) for reading in readings}
    run, own = by_model[TRAINED]

    def put(comparison: Comparison, statistic: Callable[[Floats], float], log: bool = False) -> None:
        confidence = context.settings.confidence
        found.put(comparison, intervals.jackknife(statistic, all_topics, confidence=confidence, log=log))

    def ratio(of: tuple[Floats, Floats], threshold: float, assign: str, kept: Floats) -> float:
        many = topic_words.kept(threshold, len(corpus.words))
        belongs = topic_words.members(topics, many, assign == "one")[kept.astype(int)]
        return word_pairs.contrast(*of, *topic_words.kin(belongs)).ratio(context.entry.least_denominator)

    def fall(low: float, high: float, assign: str, kept: Floats) -> float:
        after, before = (ratio(own[declared.DEBIASED], each, assign, kept) for each in (high, low))
        return after - before

    def gap(what: str, threshold: float, kept: Floats) -> float:
        made = kinships.companions(corpus, topics, threshold, together)
        same, _ = topic_words.kin(made.belongs[kept.astype(int)])
        sums, counts = own[declared.OUTPUT if what == "cosine" else declared.DEBIASED]
        most = made.groups["top_cooccur"]
        return float(sums[same].sum() / counts[same].sum() - sums[most].sum() / counts[most].sum())

    for key, comparison in declared.QUOTIENTS.items():
        if key.encoder == run:
            of = by_model[key.model][1][key.measure]
            put(comparison, partial(ratio, of, key.threshold, key.assign), log=True)
    for (name, assign, low, high), comparison in declared.FALLS.items():
        if name == run:
            put(comparison, partial(fall, low, high, assign))
    for (name, what, threshold), comparison in declared.OVER_COMPANIONS.items():
        if name == run:
            put(comparison, partial(gap, what, threshold))


def _corpus(
    context: Inputs, own: Pretrained, name: str, documents: list[np.ndarray], whole: list[np.ndarray]
) -> tuple[Corpus, np.ndarray]:
    """Return the words of documents as a corpus of its own, and the id in the encoder's vocabulary of each.

    Words are tokens of the letters a to z that are ``whole`` words often enough; the most frequent ones are stop words.
    """
    documents = [document[alone] for document, alone in zip(documents, whole, strict=True)]
    frequency = Counter(int(n) for document in documents for n in document)
    token = {n: own.tokenizer.id_to_token(n) for n in frequency}
    ordered = sorted(
        (n for n, times in frequency.items() if times >= context.entry.fewest and WORD.fullmatch(token[n])),
        key=lambda n: (-frequency[n], token[n]),
    )
    number = {n: place for place, n in enumerate(ordered)}
    own_ids = [np.array([number[int(n)] for n in document if int(n) in number], np.int64) for document in documents]
    stop = np.arange(len(ordered)) < context.entry.stop_words
    corpus = Corpus(name, [each for each in own_ids if len(each)], [token[n] for n in ordered], stop, {})
    return corpus, np.array(ordered)


def _readings(
    context: Inputs, name: str, own: Pretrained, documents: list[np.ndarray], whole: list[np.ndarray], ids: np.ndarray
) -> Iterator[Reading]:
    """Yield the encoder, and one of its shape with random weights: attention on the first paragraphs."""
    read = documents[: context.entry.documents]
    spec = own.model.spec
    drawn = encoder.initial(spec, stream(context.seed, context.study, "random weights", name))
    random = {key: torch.from_numpy(drawn[key].astype(np.float32))[None] for key in encoder.trunk(spec)}
    names = np.full(spec.symbols, -1)
    names[ids] = np.arange(len(ids))
    words = [np.where(alone, names[document], -1) for document, alone in zip(read, whole, strict=False)]
    for model, params in ((TRAINED, own.model.params), (UNTRAINED, random)):
        ensemble = encoder.Ensemble(spec, params, own.model.table, own.model.header)
        attention = word_pairs.attention_of_encoder(ensemble, read, len(ids), words)[0]
        outputs = word_pairs.layer_outputs(spec, params, ids)[0]
        vectors = {"word table": params["embed.W"][0][torch.from_numpy(ids)], "layer output": outputs}
        yield Reading(model, name, 0, model != TRAINED, vectors, attention)


def _map(context: Inputs, own: Pretrained, corpus: str, reading: Reading, where: str) -> Iterator[Row]:
    """Yield cosines between the words of Figure 2.3.

    Raises SandglassError if the tokenizer cuts one of them.
    """
    words = [word for group in context.entry.triples for word in group]
    groups = [place for place, group in enumerate(context.entry.triples) for _ in group]
    tokens: list[Any] = [own.tokenizer.token_to_id(word) for word in words]
    if None in tokens:
        cut = ", ".join(word for word, n in zip(words, tokens, strict=True) if n is None)
        raise SandglassError(f"{where}: its tokenizer has no token for {cut}: name other words in triples")
    ids = np.array(tokens)
    params = own.model.params
    vectors = {
        "word table": params["embed.W"][0][torch.from_numpy(ids)],
        "layer output": word_pairs.layer_outputs(own.model.spec, params, ids)[0],
    }
    yield from kinships.cells(reading, corpus, words, groups, vectors)
