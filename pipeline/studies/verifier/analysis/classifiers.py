"""E-D1 and Figure 3.1: verifiers of hidden states, and how the states of mistakes lie (Li 2025, 3.2.1.2, 3.2.1.6).

Two controls that the source does not have. A verifier that sees the last token alone: mistakes are written by a model,
strings beside them are of the grammar, and kinds of brackets are not as frequent in both. And the states of models of
the same shape and law of initial weights that were never trained: what is read from these, or clusters in them, is of
the strings.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import dyck_strings as language
from pipeline.models.llama import decoder
from pipeline.studies.verifier import comparisons as declared
from pipeline.studies.verifier.measures import classifiers, material
from pipeline.studies.verifier.measures.generation import Models, states
from pipeline.studies.verifier.names import HELD_CORRECT, HELD_ERROR, MISTAKES
from schemas.verifier.dyck import ALL, LAST_TOKEN, LINEAR, MATCHED, OWN, UNTRAINED

NEIGHBOUR, EXPLAINED = "nearest neighbour", "explained variance"


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return how right verifiers are, how their states cluster, and an embedding of those of the first model."""
    models, found = material.language_models(context), Measurements(context)
    rows, clusters = [], []
    with one_thread():
        for replica in range(models.count):
            arms = {OWN: models.one(replica), UNTRAINED: _never_trained(context, models, replica)}
            rows += _verifiers(context, models, arms[UNTRAINED], replica)
            clusters += _clusters(context, arms, replica)
        embedded = _embedding(context, models)
    table, shape = pl.DataFrame(rows), pl.DataFrame(clusters)
    means = table.group_by("replica", "kind", maintain_order=True).agg(pl.mean("validation", "held"))
    linear, untrained, last = (means.filter(kind=kind) for kind in (LINEAR, UNTRAINED, LAST_TOKEN))
    found.add(declared.VALIDATION, linear["validation"])
    found.add(declared.VALIDATION_HELD, linear["held"])
    found.add(declared.EXCESS, linear["held"], last["held"])
    found.add(declared.EXCESS_UNTRAINED, linear["held"], untrained["held"])
    near = [shape.filter(metric=NEIGHBOUR, model=model)["value"] for model in (OWN, UNTRAINED)]
    found.add(declared.NEAREST, near[0])
    found.add(declared.NEAREST_UNTRAINED, *near)
    two = shape.filter(metric=EXPLAINED, k=min(context.entry.clusters)).pivot(
        "label", index=["replica", "model", "strings"], values="value"
    )
    both = [two.filter(model=model, strings=ALL) for model in (OWN, UNTRAINED)]
    matched = two.filter(model=OWN, strings=MATCHED).drop_nulls()
    found.add(declared.TIGHTER, both[0]["error"], both[0]["correct"])
    found.add(declared.TIGHTER_UNTRAINED, *(of["error"] - of["correct"] for of in both))
    found.add(
        declared.TIGHTER_MATCHED,
        matched["error"],
        matched["correct"],
        excluded=models.count - matched.height,
        reason="too few of its mistakes and right strings end alike",
    )
    return {"verifier_eval": table, "clusters": shape, "tsne": embedded, "comparisons": found.table()}


def _never_trained(context: Inputs, models: Models, replica: int) -> Models:
    """Return a model of the same shape with initial weights."""
    rng = stream(context.seed, context.study, "never trained", str(replica))
    initial = decoder.initial(models.spec, rng)
    params = {name: torch.from_numpy(value.astype(np.float32))[None] for name, value in initial.items()}
    return Models(models.spec, params, models.brackets)


def _verifiers(context: Inputs, models: Models, untrained: Models, replica: int) -> list[dict[str, object]]:
    """Return a row for each kind of verifier and split."""
    tokens, lengths, right = material.samples(context, models, replica)
    held = material.samples(context, models, replica, (HELD_ERROR, HELD_CORRECT))

    def read(model: Models, ids: NDArray[np.int64], ends: NDArray[np.int64]) -> torch.Tensor:
        return states(model, model.spec.layers, ids, ends)[0]

    signs = _last_tokens(tokens, lengths)
    initial = read(untrained, tokens, lengths)
    settings, seed = context.settings.verifier, context.seed
    fitted = {
        LINEAR: material.fitted(context, models, replica)[0],
        UNTRAINED: classifiers.fit(settings, initial, right, (context.study, UNTRAINED, MISTAKES, replica), seed),
        LAST_TOKEN: classifiers.fit(settings, signs, right, (context.study, LAST_TOKEN, MISTAKES, replica), seed),
    }
    further = {
        LINEAR: read(models.one(replica), held[0], held[1]),
        UNTRAINED: read(untrained, held[0], held[1]),
        LAST_TOKEN: _last_tokens(held[0], held[1]),
    }
    return [
        {
            "replica": replica,
            "kind": kind,
            "split": s,
            "n_train": fit.n_train,
            "n_validation": fit.n_validation,
            "n_held": len(held[2]),
            "training": fit.training[s],
            "validation": fit.validation[s],
            "held": judged[s],
        }
        for kind, fit in fitted.items()
        for judged in [classifiers.accuracy(fit.weights, further[kind], held[2])]
        for s in range(len(fit.validation))
    ]


def _last_tokens(tokens: NDArray[np.int64], lengths: NDArray[np.int64]) -> torch.Tensor:
    last = torch.from_numpy(tokens[np.arange(len(tokens)), lengths - 1])
    return F.one_hot(last, language.VOCABULARY).float()


def _clusters(context: Inputs, arms: dict[str, Models], replica: int) -> list[dict[str, object]]:
    """Return how often the nearest state has the same label, and the variance that k clusters explain.

    The latter also of as many mistakes as right strings with each last sign: which sign is last a state tells by
    itself, and mistakes end in fewer of them.
    """
    tokens, lengths, right = material.samples(context, arms[OWN], replica)
    alike = _matched(stream(context.seed, context.study, MATCHED, str(replica)), tokens, lengths, right)
    rows: list[dict[str, object]] = []
    for name, model in arms.items():
        features = states(model, model.spec.layers, tokens, lengths)[0].double().numpy()
        near = NearestNeighbors(n_neighbors=2).fit(features).kneighbors(features, return_distance=False)[:, 1]
        key = {"replica": replica, "model": name}
        same = float((right[near] == right).mean())
        rows.append(key | {"strings": ALL, "metric": NEIGHBOUR, "label": "all", "k": 1, "value": same})
        for strings, taken in ((ALL, np.ones(len(right), bool)), (MATCHED, alike)):
            for label, chosen in (("error", ~right & taken), ("correct", right & taken)):
                rows += [
                    key | {"strings": strings, "metric": EXPLAINED, "label": label, "k": k, "value": value}
                    for k, value in _explained(features[chosen], context.entry.clusters)
                ]
    return rows


def _explained(states_NxD: NDArray[np.float64], clusters: list[int]) -> Iterator[tuple[int, float]]:
    """Yield each k and the variance that k clusters explain, for those of which there are enough states."""
    total = float(((states_NxD - states_NxD.mean(0)) ** 2).sum()) if len(states_NxD) else 0.0
    for k in clusters:
        if k < len(states_NxD) and total > 0:
            yield k, 1 - KMeans(k, n_init=10, random_state=0).fit(states_NxD).inertia_ / total


def _matched(
    rng: np.random.Generator, tokens: NDArray[np.int64], lengths: NDArray[np.int64], right: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return (N,) a choice of strings with as many mistakes as right ones of each last sign."""
    last, chosen = tokens[np.arange(len(tokens)), lengths - 1], np.zeros(len(right), bool)
    for sign in np.unique(last):
        mistakes, others = (np.flatnonzero((last == sign) & (right == whether)) for whether in (False, True))
        n = min(len(mistakes), len(others))
        for places in (mistakes, others):
            chosen[rng.permutation(places)[:n]] = True
    return chosen


def _embedding(context: Inputs, models: Models) -> pl.DataFrame:
    """Return t-SNE of the states of the first model, from each random state."""
    tokens, lengths, right = material.samples(context, models, 0)
    features = states(models.one(0), models.spec.layers, tokens, lengths)[0].numpy()
    frames = []
    for start in context.entry.embeddings:
        places = TSNE(perplexity=context.entry.perplexity, random_state=start, init="random").fit_transform(features)
        frames.append(
            pl.DataFrame(
                {
                    "random_state": [start] * len(right),
                    "string_id": np.arange(len(right)),
                    "label": np.where(right, "correct", "error"),
                    "x": places[:, 0].astype(np.float64),
                    "y": places[:, 1].astype(np.float64),
                }
            )
        )
    return pl.concat(frames)
