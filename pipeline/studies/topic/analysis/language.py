"""E8 and E9 on stand-ins for natural language: what models store of topics, and when (Li 2025, section 2.1.5.4).

NLM-1 and NLM-2 are models of one layer, NLM-3 is a small encoder of BERT's form, NLM-0 the same before training, and
NLM-4 one of four layers. None is one of the published models, and no corpus is the published one: rows say so
(``is_standin``).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from torch import Tensor

from pipeline.kit import comparisons, extremes
from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import topic_corpora as language
from pipeline.models.topic import encoder
from pipeline.studies.topic import comparisons as declared
from pipeline.studies.topic.measures import kinships, models, published_kinship, topic_words, word_pairs
from pipeline.studies.topic.measures.kinships import Corpus, Reading, Row
from pipeline.studies.topic.names import CORPORA, LAYERS, LAYERS_FAST, READER_EMBEDDED, READER_ONE_HOT
from schemas.topic import datasets

READERS = {READER_ONE_HOT: "NLM-1", READER_EMBEDDED: "NLM-2"}
LAG = 10  # steps over which a matrix turns
ONSET = 0.1  # share of its growth at which the norm of keys has begun to grow
EARLY, LATE = 40, 200
SHOWN = 3  # topics, and words of each, in Figure 2.3


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of the experiment."""
    tables: dict[str, list[Row]] = {
        name: [] for name in ("lda_fit", "lda_topics", "kinship", "word_pairs", "word_map", "layer_norms", "turns")
    }
    with one_thread():
        for name in CORPORA:
            corpus = _corpus(context, name)
            rng = stream(context.seed, context.study, "lda", name)
            corpus, fit, topics = kinships.fit(context, rng, corpus)
            tables["lda_fit"].append(fit)
            tables["lda_topics"] += topics
            held = _documents(context.dataset(name).filter(split="dev").head(context.entry.documents))
            for reading in _readings(context, name, held, corpus):
                tables["kinship"] += kinships.kinship(context, corpus, reading)
                tables["word_pairs"] += kinships.pairs(context, corpus, reading)
                if reading.replica == 0 and reading.embeddings:
                    tables["word_map"] += _map(context, corpus, reading)
        found = comparisons.Measurements(context)
        kinships.compared(found, tables["kinship"], tables["word_pairs"], _learned(context))
        for run in (LAYERS, LAYERS_FAST):
            if run in context.runs():
                norms, turns = list(_norms(context, run)), list(_turns(context, run))
                tables["layer_norms"] += norms
                tables["turns"] += turns
                _stages(context, found, run, norms, turns)
    tables["published_kinship"] = list(published_kinship.rows())
    return {name: [pl.DataFrame(own, infer_schema_length=None)] if own else [] for name, own in tables.items()} | {
        "comparisons": [found.table()]
    }


def _learned(context: Inputs) -> dict[tuple[str, int], bool]:
    """Return of each model whether it learned its task, by run and replica; one that diverged did not.

    An answer that reads nothing gives each word its share of the documents to train on.
    """
    made: dict[tuple[str, int], bool] = {}
    for run in context.runs():
        header = context.run_header(run)
        entry, frame = header["entry"], context.dataset(header["entry"]["dataset"])
        tokens = datasets.texts(frame.filter(split="train"))[0]
        held = frame.filter(split="dev").head(entry["online"])
        asked = datasets.texts(held)[0][datasets.text_masks(held)[0]]
        share = np.bincount(tokens[tokens >= language.SPECIALS], minlength=int(frame["symbols"][0])) + 1.0
        ignorant = -float(np.log(share[asked] / share[language.SPECIALS :].sum()).mean())
        last = models.last_points(context, run, list(range(entry["replicas"])))["held_loss"]
        own = models.learned(last.to_numpy().astype(float), ignorant, context.settings.learned)
        made |= {(run, r): bool(own[r]) and str(r) not in header["diverged"] for r in range(entry["replicas"])}
    return made


def _documents(frame: pl.DataFrame) -> list[np.ndarray]:
    return [np.array(own, np.int64) for own in frame["tokens"].to_list()]


def _corpus(context: Inputs, name: str) -> Corpus:
    """Return the documents to train on of a corpus, and its topics where they are known."""
    words = context.dataset(CORPORA[name]).sort("id")
    laws = np.array(words["law"].to_list(), float).T
    stop = words["stop"].to_numpy()
    truth = {"true": laws} if len(laws) else {}
    return Corpus(name, _documents(context.dataset(name).filter(split="train")), words["word"].to_list(), stop, truth)


def _readings(context: Inputs, corpus: str, held: list[np.ndarray], training: Corpus) -> Iterator[Reading]:
    """Yield every model that was trained on the corpus, and encoders before training as well."""
    symbols = len(training.words)
    names = np.arange(symbols)
    names[: language.SPECIALS] = -1  # not words
    for run in context.runs():
        header = context.run_header(run)
        if header["entry"]["dataset"] != corpus or run in (LAYERS, LAYERS_FAST):
            continue
        ensemble = context.model(run)
        alive = [r for r in range(header["entry"]["replicas"]) if str(r) not in header["diverged"]]
        if run in READERS:
            attention = word_pairs.attention_of_reader(ensemble, held, symbols)
            for r in alive:
                table = ensemble.params.get("embed.W")
                vectors = {} if table is None else kinships.embeddings(table[r].mT, None)
                yield Reading(READERS[run], run, r, True, vectors, attention[r])
            continue
        for model, prefix in (("NLM-0", "step0."), ("NLM-3", "")):
            spec = ensemble.spec
            params = {name: ensemble.params[prefix + name] for name in encoder.shapes(spec)}
            own = encoder.Ensemble(spec, params, ensemble.table, ensemble.header)
            attention = word_pairs.attention_of_encoder(own, held, symbols, [names[each] for each in held])
            outputs = word_pairs.layer_outputs(spec, params, np.arange(symbols))
            for r in alive:
                vectors = {"word table": params["embed.W"][r], "layer output": outputs[r]}
                yield Reading(model, run, r, True, vectors, attention[r])


def _map(context: Inputs, corpus: Corpus, reading: Reading) -> Iterator[Row]:
    """Yield cosines between the three least ambiguous words of the first three topics (Figure 2.3).

    They are chosen among the words that the largest threshold keeps of a topic alone.
    """
    topics = corpus.topics.get("true", corpus.topics["lda"])
    kept = topic_words.kept(max(context.entry.thresholds), len(corpus.words))
    belongs = topic_words.members(topics, kept, one=True)
    chosen = [k for k in range(len(topics)) if belongs[k].sum() >= SHOWN][:SHOWN]
    best = topic_words.least_ambiguous(topics, belongs, SHOWN)[chosen]
    ids = best.ravel()
    groups = np.repeat(np.arange(len(chosen)), SHOWN).tolist()
    vectors: dict[str, Tensor] = {name: own[ids] for name, own in reading.embeddings.items()}
    yield from kinships.cells(reading, corpus.name, [corpus.words[n] for n in ids], groups, vectors)


# --- E9: stages ------------------------------------------------------------------------------------------


def _alive(context: Inputs, run: str) -> list[int]:
    header = context.run_header(run)
    return [r for r in range(header["entry"]["replicas"]) if str(r) not in header["diverged"]]


def _norms(context: Inputs, run: str) -> Iterator[Row]:
    """Yield the norms of every layer before training and at every point of the curves."""
    ensemble, curves = context.model(run), context.curves(run)
    params = {name: ensemble.params[f"step0.{name}"] for name in encoder.shapes(ensemble.spec)}
    start = encoder.norms(ensemble.spec, params).double().numpy()
    for r in _alive(context, run):
        own = curves.filter(replica=r).sort("step")
        for layer in range(ensemble.spec.layers):
            same = {"run": run, "replica": r, "layer": layer + 1}
            yield (
                same | {"step": 0} | dict(zip(("norm_k", "norm_q", "norm_v"), start[r, layer].tolist(), strict=True))
            )
            columns = [f"norm_{which}_{layer}" for which in "kqv"]
            for step, *values in own.select("step", *columns).iter_rows():
                yield same | {"step": step} | dict(zip(("norm_k", "norm_q", "norm_v"), values, strict=True))


def _turns(context: Inputs, run: str) -> Iterator[Row]:
    """Yield how far W_V of each layer turned over `LAG` steps, wherever weights were kept before and after."""
    ensemble = context.model(run)
    kept = {int(name.removeprefix("step").split(".")[0]) for name in ensemble.params if name.startswith("step")}
    for step in sorted(kept):
        if step - LAG not in kept:
            continue
        for layer in range(ensemble.spec.layers):
            name = f"blocks.{layer}.attn.W_V"
            now, before = (ensemble.params[f"step{n}.{name}"].double().flatten(1) for n in (step, step - LAG))
            cosine = (now * before).sum(1) / (now.norm(dim=1) * before.norm(dim=1))
            for r in _alive(context, run):
                distance = float(((1 - cosine[r]) / 2).clamp(0, 1))
                yield {"run": run, "replica": r, "layer": layer + 1, "step": step, "distance": distance}


def _stages(context: Inputs, found: Measurements, run: str, norms: list[Row], turns: list[Row]) -> None:
    """Measure both stages: how far values have grown when keys begin to, and how much more they turn early.

    Growth is that of the norm over its largest, from that before training (chapter, MT4). Layers of one model are no
    models: the layer counts in which the difference is smallest.
    """
    grown: dict[int, list[float]] = {}
    for (replica, _), own in pl.DataFrame(norms).sort("step").group_by("replica", "layer", maintain_order=True):
        keys, values = (_growth(own[f"norm_{which}"].to_numpy()) for which in "kv")
        grown.setdefault(replica, []).append(float(values[np.argmax(keys >= ONSET)]))
    gone = context.run_header(run)["entry"]["replicas"] - len(grown)
    found.add(
        declared.ONSET[run], [extremes.smallest(own) for own in grown.values()], excluded=gone, reason=models.DIVERGED
    )
    if run != LAYERS:
        return
    moved = {(row["replica"], row["layer"], row["step"]): row["distance"] for row in turns}
    slower: dict[int, list[float]] = {}
    for (replica, layer, step), distance in moved.items():
        if step == EARLY and (replica, layer, LATE) in moved:
            slower.setdefault(replica, []).append(distance - moved[replica, layer, LATE])
    found.add(
        declared.TURNING, [extremes.smallest(own) for own in slower.values()], excluded=gone, reason=models.DIVERGED
    )


def _growth(norms: np.ndarray) -> np.ndarray:
    """Return how much of its growth a norm has behind it at each point, from the first one."""
    growth: np.ndarray = (norms - norms[0]) / (norms.max() - norms[0])
    return growth
