"""Trained language models as this study reads them: with the moving average of their weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.models.llama import decoder
from pipeline.training.jobs import SCHEDULED
from pipeline.training.objectives.dyck_strings import closers

STRINGS = 250  # that are evaluated at once


def averaged(spec: decoder.Spec, arrays: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the moving averages among the arrays of a checkpoint, by the names of the weights (R, ...)."""
    return {name: torch.as_tensor(arrays[f"{SCHEDULED}.{name}"]) for name in decoder.shapes(spec)}


def accuracy_on_closers(
    spec: decoder.Spec, params: dict[str, Tensor], tokens_NxT: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return (R,) of the closers of whole strings, the share that is the likeliest sign of the whole vocabulary."""
    right = torch.zeros(params["head.W"].shape[0])
    strings = torch.from_numpy(np.asarray(tokens_NxT, np.int64))[None]
    count = int(((strings == 2) | (strings == 3)).sum())
    with torch.no_grad():
        for part in strings.split(STRINGS, dim=1):
            right += closers(decoder.forward(spec, params, right, part[..., :-1])[0], part[..., 1:], False)
    return (right.double() / count).numpy()
