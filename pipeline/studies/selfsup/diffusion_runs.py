"""From pairs of a diffusion to training jobs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.errors import SandglassError
from pipeline.training.jobs import Header

if TYPE_CHECKING:
    from pipeline.studies.selfsup.diffusion_params import PairRun


def prepare(entry: PairRun, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return header, data and table of a training job: replica r learns from the first pairs of trajectory r.

    The table is the noise, its shift and deviation. Raises SandglassError if the dataset has fewer trajectories than
    there are replicas, or fewer pairs.
    """
    frame = frame.sort("seed")
    pairs = int(frame["y"].list.len().min()) if frame.height else 0  # type: ignore[arg-type]
    if frame.height < entry.replicas or pairs < entry.pairs:
        raise SandglassError(
            f"dataset {entry.dataset} has {frame.height} trajectories of {pairs} pairs; expected {entry.replicas} of "
            f"{entry.pairs}"
        )
    corpora = frame.head(entry.replicas)
    x, x_prime, y = (
        np.stack([np.asarray(values)[: entry.pairs] for values in corpora[name]]).astype(np.float32)
        for name in ("x", "x_prime", "y")
    )
    data = {"pairs": np.stack([x, x_prime], axis=-1), "labels": y}
    header = Header.grid(entry, seed, {"inputs": 2, "widths": entry.widths}, {})
    noise = corpora.select("mu_q", "sd_q").head(1).to_numpy().astype(np.float32)
    return dataclasses.replace(header, corpus=header.streams or []), data, noise
