"""From datasets to training jobs: Ising models fitted by gradient descent, a replica for each sample (Li 2025, section
4.2.1.1), and translators (section 4.2.3)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.errors import SandglassError
from pipeline.languages import ising, synmt
from pipeline.studies.parallel import scheme_runs
from pipeline.studies.parallel.datasets import longest, samples
from pipeline.training.jobs import Header
from pipeline.training.objectives.translation import MASK
from schemas.parallel.datasets import SCHEMA as DATASET_SCHEMA
from schemas.parallel.datasets import TRAIN, padded

if TYPE_CHECKING:
    from pipeline.studies.parallel.params import Fits, Run, Translation

__all__ = ["DATASET_SCHEMA", "prepare"]


def prepare(entry: Run, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return header, data and frozen table of a training job: of Ising models (`_fits`), of masked Transformers, or of
    translators."""
    if entry.model == "parallel/translator":
        return _translation(entry, frame, seed)
    if entry.model == "ising/transformer":
        return scheme_runs.prepare(entry, frame, seed)
    return _fits(entry, frame, seed)


def _translation(
    entry: Translation, frame: pl.DataFrame, seed: int
) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return header, the sentences of the training split and no table.

    Replica r learns from what model r translated, if models did. Raises SandglassError if there are too few of these.
    """
    rows = frame.filter(split=TRAIN)
    lexicon = synmt.Lexicon(int(rows["blocks"][0]))
    taught = rows["replica"].unique().sort().to_list()
    if taught != [-1] and len(taught) < entry.replicas:
        raise SandglassError(f"{entry.dataset} has answers of {len(taught)} models, {entry.replicas} are to learn")
    corpora = [rows.filter(replica=number) for number in taught[: entry.replicas]]
    words = [padded(own["src"], synmt.NONE, int(np.max(rows["n_words"].to_numpy()))) for own in corpora]
    size = longest(int(np.max(rows["n_words"].to_numpy())))
    data = {
        "source": np.stack([lexicon.source(own) for own in words]).astype(np.int16),
        "target": np.stack([padded(own["tgt"], synmt.PAD, size) for own in corpora]).astype(np.int16),
    }
    vocabulary = lexicon.vocabulary + (entry.start == MASK)  # a mask is an id of its own, the last
    spec = entry.shape.model_dump() | {
        "vocabulary": vocabulary,
        "positions": size,
        "causal": entry.causal,
        "positional": entry.positional,
    }
    settings = {name: getattr(entry, name) for name in ("causal", "stages", "unmask", "start")}
    header = Header.grid(entry, seed, spec, settings | {"vocabulary": vocabulary})
    which = [0] * entry.replicas if taught == [-1] else list(range(entry.replicas))
    return dataclasses.replace(header, corpus=which), data, np.zeros((0, 0), np.float32)


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
