"""From samples to training jobs: a replica for each sample, fitted by gradient descent (Li 2025, section 4.2.1.1)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.errors import SandglassError
from pipeline.languages import ising
from pipeline.studies.parallel import scheme_runs
from pipeline.studies.parallel.datasets import samples
from pipeline.training.jobs import Header
from schemas.parallel.datasets import SCHEMA as DATASET_SCHEMA

if TYPE_CHECKING:
    from pipeline.studies.parallel.params import Fits, Run

__all__ = ["DATASET_SCHEMA", "prepare"]


def prepare(entry: Run, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return header, data and frozen table of a training job: of Ising models (`_fits`), or of masked Transformers."""
    if entry.model == "ising/transformer":
        return scheme_runs.prepare(entry, frame, seed)
    return _fits(entry, frame, seed)


def _fits(entry: Fits, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return header, data and the statistics of all states; replica r has the r-th sample of the dataset.

    Raises SandglassError unless there are as many samples as replicas.
    """
    found, N, _ = samples(frame, entry.k)
    if len(found) != entry.replicas:
        raise SandglassError(
            f"{entry.dataset} has {len(found)} samples: expected one for each of the {entry.replicas} replicas"
        )
    masks = ising.masks(N, entry.k)
    states = np.concatenate([ising.contexts(N, mask) for mask in masks])
    of_mask = np.repeat(np.arange(len(masks)), len(states) // len(masks))
    observed = [counts[of_mask[:, None], states] / counts.sum() for counts in found.values()]
    data = {"states": states.astype(np.int32), "observed": np.stack(observed).astype(np.float32)}
    header = Header.grid(entry, seed, {"spins": N}, {})
    corpus = list(range(entry.replicas))
    return dataclasses.replace(header, corpus=corpus), data, ising.statistics(N).astype(np.float32)
