"""How often a model predicts the next token."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.models.transformer import decoder


def accuracy(model: decoder.Ensemble, tokens_NxT: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return (R,): of each replica, the share of tokens behind the first that it predicts."""
    ids = torch.from_numpy(tokens_NxT.astype(np.int64))[None]
    with torch.no_grad():
        logits, _ = decoder.forward(model.spec, model.params, model.table, ids[:, :, :-1])
    return (logits.argmax(-1) == ids[:, :, 1:]).double().mean((1, 2)).numpy()
