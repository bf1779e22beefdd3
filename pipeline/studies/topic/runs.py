"""From masked documents to training jobs (Li 2025, section 2.1.5)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.languages import topic as language
from pipeline.training.core import Header
from schemas.topic import datasets as documents
from schemas.topic.datasets import SCHEMA as DATASET_SCHEMA

if TYPE_CHECKING:
    import polars as pl

    from pipeline.studies.topic.params import Run

__all__ = ["DATASET_SCHEMA", "prepare"]

Data = dict[str, np.ndarray]


def prepare(entry: Run, frame: pl.DataFrame, seed: int) -> tuple[Header, Data, np.ndarray]:
    """Return header, data and what is frozen of the training job of one member of a run.

    Models are ordered by learning rate, cell and seed. Those of one seed share initial weights and the order of data,
    in all cells, rates and runs of one stream.
    """
    topics, words = (int(frame[name][0]) for name in ("topics", "words"))
    symbols = language.vocabulary(topics, words, entry.masking == "released")
    width = symbols if entry.width is None else entry.width
    uniform = entry.attention == "uniform"
    spec = {
        "symbols": symbols, "width": width, "embedding": entry.embedding, "attention": entry.attention,
        "values": entry.values, "bias": entry.bias, "std": entry.std,
        "std_embedding": entry.std if entry.std_embedding is None else entry.std_embedding,
    }  # fmt: skip
    settings = {"cells": [cell.model_dump() for cell in entry.cells.values()], "uniform": uniform}
    many, rates, seeds = len(entry.cells), len(entry.lr), range(entry.replicas)
    header = replace(
        Header.grid(entry, seed, spec, settings),
        lr=[rate for rate in entry.lr for _ in range(many * entry.replicas)],
        corpus=[cell for _ in range(rates) for cell in range(many) for _ in seeds],
        streams=[own for _ in range(rates * many) for own in seeds],
    )
    data = _arrays(frame.filter(split="train"), entry.masking, uniform)
    held = _arrays(frame.filter(split="dev").head(entry.online), entry.masking, uniform)
    data["first"] = np.searchsorted(data.pop("document"), np.arange(len(data["counts"]) + 1))
    del held["first"]
    return header, data | {f"held.{name}": array for name, array in held.items()}, _frozen(entry, frame)


def _arrays(frame: pl.DataFrame, scheme: str, uniform: bool) -> Data:
    found = documents.questions(frame, scheme)
    if uniform:
        found = language.by_document(found)
    return {
        "counts": found.counts.astype(np.uint8),  # of at most 255 tokens
        "document": found.document,
        "first": found.document,
        "shown": found.shown.astype(np.uint8),
        "labels": found.labels.astype(np.uint8),
    }


def _frozen(entry: Any, frame: pl.DataFrame) -> np.ndarray:
    """Return the frozen value matrix or the frozen bias of the head; nothing where neither is frozen."""
    about = (int(frame["topics"][0]), int(frame["words"][0]), documents.masking(frame))
    symbols = language.vocabulary(*about[:2], entry.masking == "released")
    found = np.zeros((1, 1))
    if entry.bias == "frozen":
        found = language.prediction_bias(*about)
    elif entry.frozen_values == "block":
        found = language.block_values(*about)
    elif entry.frozen_values == "diagonal":
        found = language.diagonal_values(*about)
    elif entry.frozen_values is not None:
        found = np.diag([0.0] + [entry.frozen_values] * (about[0] * about[1]))
    if found.shape != (1, 1):
        more = symbols - len(found)  # special ids of the released code
        found = np.pad(found, [(0, more)] * found.ndim)
    return found.astype(np.float32)
