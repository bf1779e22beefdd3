"""Why training has two stages: from weights near zero, gradients of keys and queries are far smaller (section 2.1.6.1).

With W_K, W_Q and W_V of size eps, the gradient of W_V tends to a constant, and those of W_K and W_Q fall as eps
squared: each of them is a product with the other one and with W_V. The key bias shifts all scores of a query alike,
so that its gradient is 0. Here they are computed in float64 on one batch of masked documents, for one draw of the
weights, scaled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import torch

from pipeline.kit.streams import one_thread, stream
from pipeline.languages import topic as language
from pipeline.models.topic import one_layer
from pipeline.studies.topic import constructions
from schemas.theory import rows

if TYPE_CHECKING:
    from pipeline.studies.topic.params import Theory

SOURCE = "Li 2025, section 2.1.6.1"
NAMES = {"attn.W_V": "values", "attn.W_K": "keys", "attn.W_Q": "queries"}
LOSSES = {"ce": "cross-entropy", "sq": "squared loss"}


def check(entry: Theory, key: str, seed: int) -> pl.DataFrame:
    """Return one row for each loss and matrix: the slope of its gradient's norm in eps, on log scales."""
    masking = language.Masking(entry.p_mask, entry.p_keep, entry.p_random)
    rng = stream(seed, entry.study, key)
    batch = constructions.batch(rng, entry.documents, entry.topics, entry.words, masking)
    spec = constructions.one_hot(entry.topics * entry.words + 1, 1.0)
    start = {name: torch.from_numpy(value)[None] for name, value in one_layer.initial(spec, rng).items()}
    sizes = ", ".join(f"{eps:g}" for eps in entry.sizes)
    size = f"T = {entry.topics}, v = {entry.words}, {entry.documents} documents; eps {sizes}"
    found = []
    with one_thread():
        for loss, said in LOSSES.items():
            norms = [_norms(spec, start, eps, batch, loss) for eps in entry.sizes]
            for name, what in NAMES.items():
                values = [each[name] for each in norms]
                slope = float(np.polyfit(np.log(entry.sizes), np.log(values), 1)[0])
                found.append(
                    {
                        "check": f"{loss}-{what}",
                        "statement": f"With {said} the norm of the gradient of {what} goes as this power of eps",
                        "size": size, "measured": slope, "comparison": "within",
                        "bound": 0.0 if what == "values" else 2.0, "tolerance": 0.05 if what == "values" else 0.1,
                        "detail": "norms " + ", ".join(f"{value:.3g}" for value in values),
                    }
                )  # fmt: skip
            shares = [each["attn.b_K"] / each["attn.W_V"] for each in norms]
            found.append(
                {
                    "check": f"{loss}-key-bias",
                    "statement": f"With {said} the key bias has no gradient: its norm over that of values, at most",
                    "size": size, "measured": float(np.max(shares)), "comparison": "<=", "bound": 1e-8,
                }
            )  # fmt: skip
    return rows(entry.study, key, SOURCE, found)


def _norms(
    spec: one_layer.Spec, start: dict[str, torch.Tensor], eps: float, batch: tuple[torch.Tensor, ...], loss: str
) -> dict[str, float]:  # fmt: skip
    """Return the norm of the gradient of every parameter, at the weights ``start`` times ``eps``."""
    counts, document, token, labels = batch
    params = {name: (value * eps).requires_grad_() for name, value in start.items()}
    table = torch.zeros(1, 1, dtype=torch.float64)
    outputs, _ = one_layer.forward(spec, params, table, counts, document, token)
    asked = labels.sum(-1)
    told = (labels * outputs).sum()
    if loss == "ce":
        total = (asked * outputs.logsumexp(-1)).sum() - told
    else:
        total = (asked * (outputs.square().sum(-1) + 1)).sum() - 2 * told
    gradients = torch.autograd.grad(total / asked.sum(), list(params.values()))
    return {name: float(gradient.norm()) for name, gradient in zip(params, gradients, strict=True)}
