"""From sequences to training jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeline.errors import SandglassError
from pipeline.training.core import Header
from schemas.selfsup.datasets import SCHEMA as DATASET_SCHEMA

if TYPE_CHECKING:
    import polars as pl

    from pipeline.studies.selfsup.params import Run

__all__ = ["DATASET_SCHEMA", "prepare"]


def prepare(entry: Run, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return header, data and frozen embedding table of the training job of one member of a run.

    Raises SandglassError if the width does not hold one-hot symbols.
    """
    symbols = int(frame["symbols"][0])
    if entry.width < symbols:
        raise SandglassError(f"width {entry.width} is less than the {symbols} symbols of {entry.dataset}")
    tokens = np.array(frame["tokens"].to_list(), np.int16)[None]  # of one corpus
    data = {
        "ids": tokens[..., :-1],
        "targets": tokens[..., 1:],
        "lengths": np.full(tokens.shape[:2], tokens.shape[2] - 1, np.int16),
    }
    spec = {
        "block": "gpt", "layers": entry.layers, "heads": 1, "width": entry.width, "ffn": entry.width,
        "attention": "learned", "position": "none", "t_max": tokens.shape[2], "inputs": symbols,
        "outputs": symbols,
    }  # fmt: skip
    header = Header(
        model=entry.model, spec=spec, objective=entry.objective,
        settings={"weight": 0.0, "prefix_first": False}, seed=seed, study=entry.study, stream=entry.stream,
        corpus=[0] * entry.replicas, lr=[entry.lr] * entry.replicas, steps=entry.steps, batch=entry.batch,
        schedule=entry.schedule, betas=list(entry.betas), eps=entry.eps, clip=entry.clip,
        precision=entry.precision, log_every=entry.log_every,
    )  # fmt: skip
    return header, data, np.eye(symbols, entry.width, dtype=np.float32)
