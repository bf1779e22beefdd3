"""Proposition 4 on trained models: how far the weights of attention stay below what their norms allow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.studies.flipflop.exact import recognisers as exact
from pipeline.studies.flipflop.measures.reading import Config
from pipeline.studies.flipflop.names import PLAIN

Floats = NDArray[np.float64]


def slack(config: Config, patterns: Floats, inputs: Floats) -> list[dict[str, Any]]:
    """Return ``sigma``, ``bound`` and ``slack`` of each model (chapter 5.5).

    Of a head, r is the largest norm of its ``inputs`` (R, L, N, T, d), and ``sigma`` r^2 |W_K' W_Q| / sqrt(d_h). Then
    no weight of query i is above 1 / (1 + (i - 1) e^(-2 sigma)). ``sigma`` and ``bound``, at the last query, are
    medians over heads; ``slack`` is the least distance of a weight of ``patterns`` (R, L, N, H, T, T) from its bound,
    over heads and queries but the first, which sees one key. None where scores have another form.
    """
    if config.entry["position"] not in PLAIN:
        return [{"sigma": None, "bound": None, "slack": None} for _ in config.replicas]
    R, L, _, H, T, _ = patterns.shape
    d = inputs.shape[-1]
    norms = np.linalg.norm(inputs, axis=-1).max((2, 3))  # (R, L)
    sigma = np.empty((R, L, H))
    for layer in range(L):
        W = config.ensemble.params[f"blocks.{layer}.attn.W_QKV"][config.replicas].double().numpy()
        W_Q, W_K, _ = W.reshape(R, d, 3, H, d // H).transpose(2, 0, 3, 1, 4)  # (R, H, d, d/H) each
        products = np.linalg.norm(W_Q @ W_K.swapaxes(-1, -2), 2, axis=(-2, -1))
        sigma[:, layer] = norms[:, layer, None] ** 2 * products / np.sqrt(d // H)
    largest = patterns.max(-1).max(2)[..., 1:]  # (R, L, H, T - 1)
    bound = exact.most_weight(sigma[..., None], np.arange(2, T + 1))
    least = (bound - largest).min((1, 2, 3))
    at_end = np.median(bound[..., -1], (1, 2))
    return [
        {"sigma": float(s), "bound": float(b), "slack": float(x)}
        for s, b, x in zip(np.median(sigma, (1, 2)), at_end, least, strict=True)
    ]
