"""Why training has two stages: from weights near zero, gradients of keys and queries are far smaller (section 2.1.6.1).

With W_K, W_Q and W_V of size eps, the gradient of W_V tends to a constant, and those of W_K and W_Q fall as eps
squared: each of them is a product with the other one and with W_V. The key bias shifts all scores of a query alike, so
that its gradient is 0. Here they are computed in float64 from random weights, scaled: on the exact loss of all
documents without end, and on one batch of masked documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pipeline.kit.extremes import largest
from pipeline.kit.streams import one_thread, stream
from pipeline.kit.theory_rows import judged, row
from pipeline.languages import topic as language
from pipeline.models.topic import one_layer
from pipeline.studies.topic.constructions import OWN_CHECK, SOURCE, masking_of, slope
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.topic.params import Gradients

HERE = SOURCE.format(".6.1")
NAMES = {"attn.W_V": "values", "attn.W_K": "keys", "attn.W_Q": "queries"}
TWO_WAYS = "gradients, two ways"
LOSSES = {"ce": "cross-entropy", "sq": "squared loss"}
Batch = tuple[Tensor, Tensor, Tensor, Tensor]  # counts (1, B, V), document and token (1, Q), labels (1, Q, V)
Weights = dict[str, Tensor]


def check(entry: Gradients, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on the size of gradients near zero (TH7)."""
    rng = stream(seed, entry.study, key)
    known = language.Population(entry.topics, entry.words, entry.chosen, masking_of(entry))
    law = endless(known)
    batches = {
        "exact": (law, f"τ = {entry.chosen}, all {len(known.law_DxV)} documents"),
        "batch": (drawn(rng, entry), f"{entry.documents} documents of {entry.shortest} to {entry.longest} words"),
    }
    spec = one_layer.Spec(known.words + 1, known.words + 1, "one_hot", "trained", "trained", "none", 1.0, 1.0)
    starts = [
        {name: torch.from_numpy(value)[None] for name, value in one_layer.initial(spec, rng).items()}
        for _ in range(entry.starts)
    ]
    made: list[dict[str, Any]] = []
    with one_thread():
        for loss in LOSSES:
            for data, (batch, size) in batches.items():
                made += _scaled(
                    entry, spec, starts, batch, loss, data, f"T = {entry.topics}, v = {entry.words}, {size}"
                )
            made += _checked(entry, spec, starts, known, loss, rng)
    return theory.rows(entry.study, key, HERE, judged("27", "gradients near zero", made))


def endless(known: language.Population) -> Batch:
    """Return all documents without end as one batch: shares for counts, and for each document and shown id the joint
    probabilities with the word that stood there."""
    law, masking, V = known.law_DxV, known.masking, known.words + 1
    labels_DxQxV = np.repeat(law[:, None, :], V, axis=1) * (masking.random / known.words)
    labels_DxQxV[:, language.MASK] = law * (1 - masking.keep - masking.random)
    labels_DxQxV += masking.keep * law[:, :, None] * np.eye(V)  # no word of a document is the mask
    document, token = np.divmod(np.arange(len(law) * V), V)
    counts, labels = (torch.from_numpy(part)[None] for part in (known.masked_DxV, labels_DxQxV.reshape(-1, V)))
    return counts, torch.from_numpy(document)[None], torch.from_numpy(token)[None], labels


def drawn(rng: np.random.Generator, entry: Gradients) -> Batch:
    """Return a batch of masked documents of section 2.1.5.1, Dirichlet mixtures of topics."""
    topics, words = entry.topics, entry.words
    made = language.mixed(rng, entry.documents, topics, words, entry.alpha, entry.shortest, entry.longest)
    at, shown = language.masked(rng, made.tokens, made.lengths, masking_of(entry), np.arange(1, topics * words + 1))
    questions = language.questions(made, at, shown, topics, words, released=False)
    counts, labels = (torch.from_numpy(part.astype(float))[None] for part in (questions.counts, questions.labels))
    return counts, torch.from_numpy(questions.document)[None], torch.from_numpy(questions.shown)[None], labels


def _loss(spec: one_layer.Spec, params: Weights, batch: Batch, loss: str) -> Tensor:
    """Return the mean loss over labels: cross-entropy, or the squared distance, summed over outputs."""
    counts, document, token, labels = batch
    table = torch.zeros(1, 1, dtype=torch.float64)
    outputs, _ = one_layer.forward(spec, params, table, counts, document, token)
    label_counts = labels.sum(-1)
    dot_product = (labels * outputs).sum()
    if loss == "ce":
        total = (label_counts * outputs.logsumexp(-1)).sum() - dot_product
    else:
        total = (label_counts * (outputs.square().sum(-1) + 1)).sum() - 2 * dot_product
    return total / label_counts.sum()


def norms(spec: one_layer.Spec, start: Weights, eps: float, batch: Batch, loss: str) -> dict[str, float]:
    """Return the norm of the gradient of every parameter, at the weights ``start`` times ``eps``."""
    params = {name: (value * eps).requires_grad_() for name, value in start.items()}
    gradients = torch.autograd.grad(_loss(spec, params, batch, loss), list(params.values()))
    return {name: float(gradient.norm()) for name, gradient in zip(params, gradients, strict=True)}


def _scaled(
    entry: Gradients, spec: one_layer.Spec, starts: list[Weights], batch: Batch, loss: str, data: str, size: str
) -> Iterator[dict[str, Any]]:
    """Yield slopes of norms in eps on log scales, the gradient of the key bias, and which gradient is the largest."""
    all_norms = [[norms(spec, start, eps, batch, loss) for eps in entry.sizes] for start in starts]
    at = f"{size}; {len(starts)} starts; eps {', '.join(f'{e:g}' for e in entry.sizes)}"
    loss_name = LOSSES[loss]
    for name, what in NAMES.items():
        power = 0 if what == "values" else 2
        slopes = [slope(entry.sizes, [each[name] for each in one]) for one in all_norms]
        yield row(
            f"{loss}-{data}.{what}",
            f"With {loss_name} the norm of the gradient of {what} goes as the power {power} "
            "of eps: largest distance of the slope",
            at,
            largest(np.abs(np.array(slopes) - power)),
            "<=",
            0.1 if power else 0.05,
            detail="norms " + ", ".join(f"{each[name]:.3g}" for each in all_norms[0]),
        )
    yield row(
        f"{loss}-{data}.key-bias",
        f"With {loss_name} the key bias has no gradient: its norm over that of values, at most",
        at,
        largest(each["attn.b_K"] / each["attn.W_V"] for one in all_norms for each in one),
        "<=",
        1e-8,
        source=OWN_CHECK,
        part=TWO_WAYS,
    )
    yield row(
        f"{loss}-{data}.order",
        f"With {loss_name} the gradient of values is larger than those of keys and queries: "
        "largest ratio of theirs to it",
        at,
        largest(
            each[other] / each["attn.W_V"] for one in all_norms for each in one for other in ("attn.W_K", "attn.W_Q")
        ),
        "<=",
        0.01,
    )


def _checked(
    entry: Gradients,
    spec: one_layer.Spec,
    starts: list[Weights],
    known: language.Population,
    loss: str,
    rng: np.random.Generator,
) -> Iterator[dict[str, Any]]:
    """Yield the exact gradients by other ways: a closed form at zero, and differences of the loss."""
    batch, loss_name = endless(known), LOSSES[loss]
    x, p = known.masked_DxV, known.law_DxV
    # With all matrices 0 every query sees x, and the output is 0.
    missed = 1 / x.shape[1] - p if loss == "ce" else -2 * p
    limit = float(np.linalg.norm(missed.T @ x / len(x)))
    eps = min(entry.sizes)
    bare = [norms(spec, start, eps, batch, loss)["attn.W_V"] for start in starts]
    yield row(
        f"{loss}-exact.limit",
        f"With {loss_name} the gradient of values at the smallest eps is that at zero in closed "
        "form: largest relative distance",
        f"eps {eps:g}, {len(starts)} starts",
        largest(np.abs(np.array(bare) / limit - 1)),
        "<=",
        0.01,
        source=OWN_CHECK,
        detail=f"{limit:.5g}",
        part=TWO_WAYS,
    )
    start = {name: value * 0.3 for name, value in starts[0].items()}
    off = []
    for name in ("attn.W_K", "attn.W_Q", "attn.W_V", "attn.b_Q", "attn.b_V"):
        way = torch.from_numpy(rng.normal(size=tuple(start[name].shape)))
        values = [float(_loss(spec, start | {name: start[name] + step * way}, batch, loss)) for step in (1e-5, -1e-5)]
        leaf = start[name].clone().requires_grad_()
        (gradient,) = torch.autograd.grad(_loss(spec, start | {name: leaf}, batch, loss), leaf)
        exact = float((gradient * way).sum())
        off.append(abs((values[0] - values[1]) / 2e-5 - exact) / (abs(exact) + 1e-6))
    yield row(
        f"{loss}-exact.differences",
        f"With {loss_name} gradients are those of differences of the loss along random "
        "directions: largest relative distance",
        "eps 0.3",
        largest(off),
        "<=",
        1e-3,
        source=OWN_CHECK,
        part=TWO_WAYS,
    )
