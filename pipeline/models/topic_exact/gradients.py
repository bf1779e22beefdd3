"""First gradients of the one-layer transformer near zero, on the loss of all documents (Li 2025, section 2.1.6.1).

The model is that of equation 2.7 with the biases of section 2.1.5.1 (one-hot embeddings, d = V): a query word b sees
the shares of words x̄ under weights proportional to x̄ exp S[., b], with S = (W^K + b^K 1')' (W^Q + b^Q 1') / sqrt(d),
and the output is W^V y_b + b^V. The loss is the mean over documents and masked positions, those that show [MASK] among
them, in float64.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from pipeline.languages.topic_population import Floats, Population

LOSSES = ("ce", "sq_sum")
MATRICES, BIASES = ("W_k", "W_q", "W_v"), ("b_k", "b_q", "b_v")


def start(population: Population, rng: np.random.Generator) -> dict[str, Floats]:
    """Return standard normal matrices (V, V) and biases (V,) that are 0: the directions of a start near zero."""
    size = population.words + 1
    matrices = {name: rng.normal(size=(size, size)) for name in MATRICES}
    return matrices | {name: np.zeros(size) for name in BIASES}


def loss(population: Population, parameters: dict[str, Tensor], kind: str) -> Tensor:
    """Return the loss (scalar, float64) of equation 2.1: squared (2.3) for ``sq_sum``, cross-entropy (2.4) for ``ce``.

    Labels of a document are its words before masking; the query of a masked position is [MASK], the label itself, or a
    random word.
    """
    masking = population.masking
    x_DxV, p_DxV = torch.from_numpy(population.masked_DxV), torch.from_numpy(population.original_DxV)
    keys = parameters["W_k"] + parameters["b_k"][:, None]
    queries = parameters["W_q"] + parameters["b_q"][:, None]
    scores_VxQ = keys.T @ queries / math.sqrt(len(keys))
    attended_DxVxQ = torch.softmax(x_DxV.log()[:, :, None] + scores_VxQ, 1)
    output_DxVxQ = torch.einsum("wv,dvq->dwq", parameters["W_v"], attended_DxVxQ)
    output_DxVxQ = output_DxVxQ + parameters["b_v"][:, None]
    # Of a label w: the squared loss is |f|² + 1 - 2 f_w, cross-entropy is logsumexp f - f_w.
    if kind == "ce":
        common_DxQ, slope = torch.logsumexp(output_DxVxQ, 1), -1.0
    else:
        common_DxQ, slope = (output_DxVxQ**2).sum(1) + 1, -2.0
    mean_DxQ = common_DxQ + slope * torch.einsum("dw,dwq->dq", p_DxV, output_DxVxQ)
    same_DxQ = common_DxQ + slope * torch.diagonal(output_DxVxQ, dim1=1, dim2=2)
    blank = (1 - masking.keep - masking.random) * mean_DxQ[:, 0]
    kept = masking.keep * (p_DxV * same_DxQ).sum(1)
    changed = masking.random * mean_DxQ[:, 1:].mean(1)
    return (blank + kept + changed).mean()


def norms(population: Population, directions: dict[str, Floats], scale: float, kind: str) -> dict[str, float]:
    """Return the norm of the gradient with respect to each matrix and bias, where matrices are ``scale`` times their
    directions."""
    parameters = {
        name: torch.from_numpy(direction * scale).requires_grad_() for name, direction in directions.items()
    }
    gradients = torch.autograd.grad(loss(population, parameters, kind), list(parameters.values()))
    return {
        name: float(torch.linalg.norm(gradient)) for name, gradient in zip(parameters, gradients, strict=True)
    }


def limit(population: Population, kind: str) -> float:
    """Return the norm of the gradient with respect to W^V where all matrices are 0, in closed form.

    All queries then see x̄ and the output is 0: the gradient is the mean of (1 / V - p) x̄' under cross-entropy, and of
    -2 p x̄' under the squared loss.
    """
    x, p = population.masked_DxV, population.original_DxV
    missed = 1 / x.shape[1] - p if kind == "ce" else -2 * p
    return float(np.linalg.norm(missed.T @ x / len(x)))
