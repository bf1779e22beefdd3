"""From datasets to training jobs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from pipeline.languages import hmm
from pipeline.studies.selfsup import diffusion_runs as diffusions
from pipeline.studies.selfsup.measures import models
from pipeline.training.jobs import Header
from schemas.selfsup.datasets import SCHEMA as DATASET_SCHEMA

if TYPE_CHECKING:
    from pipeline.studies.selfsup.params import Run, TableRun

__all__ = ["DATASET_SCHEMA", "prepare"]


def prepare(entry: Run, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return header, data and frozen table of a training job, of tables (`_tables`) or of classifiers of pairs."""
    if entry.objective == "labelled_pairs":
        return diffusions.prepare(entry, frame, seed)
    return _tables(entry, frame, seed)


def _tables(entry: TableRun, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return header, data and an empty table: replica r learns from triples of the r-th model of the dataset.

    Which token is shown is the entry's case. Raises SandglassError if the dataset has fewer models than replicas, or
    models of several shapes.
    """
    drawn = models.read(frame)
    shapes = {emission.shape for emission, _ in drawn.values()}
    if len(drawn) < entry.replicas or len(shapes) > 1:
        raise SandglassError(
            f"{entry.dataset} has {len(drawn)} models of {len(shapes)} shapes: expected one shape, and a model for "
            f"each of the {entry.replicas} replicas"
        )
    d = next(iter(shapes))[0]
    corpora = [
        samples(entry.study, entry.dataset, entry.case, entry.samples, name, *model, seed)
        for name, model in list(drawn.items())[: entry.replicas]
    ]
    data = {name: np.stack([corpus[name] for corpus in corpora]) for name in corpora[0]}
    header = Header.grid(entry, seed, {"symbols": d}, {})
    return dataclasses.replace(header, corpus=header.streams or []), data, np.zeros((0, 0), np.float32)


def samples(
    study: str, dataset: str, case: int, n: int, name: str, emission: np.ndarray, transition: np.ndarray, seed: int
) -> dict[str, np.ndarray]:
    """Return ``n`` triples of the model ``name``, as `pipeline.training.objectives.masked_tokens` names them.

    All three cases have the same triples.
    """
    d = len(emission)
    rng = stream(seed, study, dataset, "triples", name)
    counts = hmm.counts(rng, hmm.joint(emission, transition), n)[0]
    places = np.repeat(np.arange(d**3), counts.astype(int).ravel())
    tokens = np.stack(np.unravel_index(rng.permutation(places), (d, d, d)))
    shown, one, two = {1: (0, 1, 2), 2: (1, 0, 2), 3: (2, 0, 1)}[case]
    conditional = np.nan_to_num(hmm.given(counts, case))
    return {
        "read": tokens[shown].astype(np.uint8),
        "pair": (tokens[one] * d + tokens[two]).astype(np.int32),
        "held.conditional": conditional.reshape(d, d * d).astype(np.float32),
    }
