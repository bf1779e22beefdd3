"""E-D1 and Figure 3.1: verifiers of hidden states, and how the states of mistakes lie (Li 2025, 3.2.1.2, 3.2.1.6)."""

from __future__ import annotations

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
from pipeline.kit.streams import one_thread
from pipeline.languages import dyck_strings as language
from pipeline.studies.verifier.comparisons import EXCESS, NEAREST, TIGHTER, VALIDATION, VALIDATION_HELD
from pipeline.studies.verifier.measures import classifiers, material
from pipeline.studies.verifier.measures.generation import Models, states
from pipeline.studies.verifier.names import HELD_CORRECT, HELD_ERROR, MISTAKES

LINEAR, LAST_TOKEN = "linear", "last token"


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return how right verifiers are, how their states cluster, and an embedding of those of the first model."""
    models, found = material.language_models(context), Measurements(context)
    rows, clusters = [], []
    with one_thread():
        for replica in range(models.count):
            rows += _verifiers(context, models, replica)
            clusters += _clusters(context, models, replica)
        embedded = _embedding(context, models)
    table, shape = pl.DataFrame(rows), pl.DataFrame(clusters)
    means = table.group_by("replica", "kind", maintain_order=True).agg(pl.mean("validation", "held"))
    linear, last = (means.filter(kind=kind) for kind in (LINEAR, LAST_TOKEN))
    found.add(VALIDATION, linear["validation"])
    found.add(VALIDATION_HELD, linear["held"])
    found.add(EXCESS, linear["held"], last["held"])
    found.add(NEAREST, shape.filter(metric="nearest neighbour", label="all")["value"])
    two = shape.filter(metric="explained variance", k=min(context.entry.clusters))
    found.add(TIGHTER, two.filter(label="error")["value"], two.filter(label="correct")["value"])
    return {"verifier_eval": table, "clusters": shape, "tsne": embedded, "comparisons": found.table()}


def _verifiers(context: Inputs, models: Models, replica: int) -> list[dict[str, object]]:
    """Return a row for each kind of verifier and split. The control sees nothing but the last token: mistakes are
    written by a model, strings beside them are of the grammar, and kinds of brackets are not as frequent in both."""
    tokens, lengths, right = material.samples(context, models, replica)
    held = material.samples(context, models, replica, (HELD_ERROR, HELD_CORRECT))
    linear, _ = material.fitted(context, models, replica)
    read = states(models.one(replica), models.spec.layers, held[0], held[1])[0]
    names = (context.study, "last token", MISTAKES, replica)
    signs, further = (_last_tokens(t, n) for t, n in ((tokens, lengths), held[:2]))
    control = classifiers.fit(context.settings.verifier, signs, right, names, context.seed)
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
        for kind, fit, features in ((LINEAR, linear, read), (LAST_TOKEN, control, further))
        for judged in [classifiers.accuracy(fit.weights, features, held[2])]
        for s in range(len(fit.validation))
    ]


def _last_tokens(tokens: NDArray[np.int64], lengths: NDArray[np.int64]) -> torch.Tensor:
    last = torch.from_numpy(tokens[np.arange(len(tokens)), lengths - 1])
    return F.one_hot(last, language.VOCABULARY).float()


def _clusters(context: Inputs, models: Models, replica: int) -> list[dict[str, object]]:
    """Return how often the nearest state has the same label, and the variance that k clusters explain."""
    tokens, lengths, right = material.samples(context, models, replica)
    features = states(models.one(replica), models.spec.layers, tokens, lengths)[0].double().numpy()
    near = NearestNeighbors(n_neighbors=2).fit(features).kneighbors(features, return_distance=False)[:, 1]
    rows: list[dict[str, object]] = [
        {
            "replica": replica,
            "metric": "nearest neighbour",
            "label": "all",
            "k": 1,
            "value": float((right[near] == right).mean()),
        }
    ]
    for label, chosen in (("error", ~right), ("correct", right)):
        own = features[chosen]
        total = float(((own - own.mean(0)) ** 2).sum())
        for k in context.entry.clusters:
            if k < len(own):
                inertia = KMeans(k, n_init=10, random_state=0).fit(own).inertia_
                value = 1 - inertia / total
                rows.append(
                    {"replica": replica, "metric": "explained variance", "label": label, "k": k, "value": value}
                )
    return rows


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
