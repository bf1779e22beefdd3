"""From sequences to training jobs (Chen and Zou 2024, sections 4 and 9.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import SandglassError
from pipeline.languages import sequence_tasks as tasks
from pipeline.models.attention_only import network as attention_only
from pipeline.training.jobs import Header
from schemas.depth.datasets import SPLITS, Sequences

if TYPE_CHECKING:
    import polars as pl

    from pipeline.studies.depth.params import Run

DATASET_SCHEMA = Sequences


def prepare(entry: Run, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return the header, data and frozen embedding table of the run's training job.

    Where a dataset has several corpora, the models of each learning rate take one after another in turn.

    Raises SandglassError if the dataset has fewer fresh sequences than the run reads, if there are fewer replicas
    than corpora, or if the width does not hold tokens and positions.
    """
    shape = {name: frame[name][0] for name in ("task", "k", "l", "d1", "d2")}
    corpora = frame["corpus"].n_unique()
    needed = entry.steps * entry.batch
    parts = {
        (split, c): part
        for (split, c), part in frame.partition_by("split", "corpus", as_dict=True, maintain_order=True).items()
    }
    present = [split for split in SPLITS if (split, 0) in parts]
    if shape["task"] != "sc" and parts["train", 0].height < needed:
        raise SandglassError(
            f"dataset {entry.dataset} holds {parts['train', 0].height} fresh training sequences, but {entry.steps} "
            f"steps of {entry.batch} read {needed}: raise datasets.{entry.dataset}.train"
        )
    if entry.replicas < corpora:
        raise SandglassError(
            f"dataset {entry.dataset} has {corpora} corpora: it needs as many replicas, not {entry.replicas}"
        )
    data: dict[str, np.ndarray] = {}
    for split in present:
        prefix = "" if split == "train" else f"held.{split}."
        data |= {f"{prefix}{name}": array for name, array in _stacked(parts, split, corpora).items()}
    data["sizes"] = np.array([parts["train", c].height for c in range(corpora)])
    spec = _spec(entry, shape, outputs=int(data["labels"].max()) + 1)
    context = "candidates" in data
    header = Header.grid(entry, seed, _as_json(spec), {"splits": present[1:], "context": context})
    assert header.streams is not None
    header = replace(header, corpus=[replica % corpora for replica in header.streams])
    return header, data | _given(entry, shape, spec), attention_only.embedding(spec)


def _spec(entry: Run, shape: dict[str, Any], outputs: int) -> attention_only.Spec:
    task, k, l = shape["task"], shape["k"], shape["l"]
    d, n = tasks.inputs(task, shape["d1"], shape["d2"]), tasks.length(task, k, l)
    init = "task" if entry.init == "construction" else entry.init
    sizes = {name: value for name in ("later", "readout") if (value := getattr(entry, name)) is not None}
    return attention_only.Spec(
        layers=len(entry.heads),
        heads=tuple(entry.heads),
        attention=entry.attention,
        width=entry.width,
        length=n,
        inputs=d,
        outputs=outputs if task in ("sc", "tm") else d,
        init=init,
        frozen=entry.trained == "classifier",
        **sizes,
    )


def _as_json(spec: attention_only.Spec) -> dict[str, Any]:
    return vars(spec) | {"heads": list(spec.heads)}


def _stacked(
    parts: dict[Any, pl.DataFrame], split: str, corpora: int
) -> dict[str, NDArray[np.int16] | NDArray[np.int32]]:
    """Return ``ids`` (C, N, T), ``labels`` (C, N) and, if there are any, ``candidates`` (C, N, K) of a split.

    Rows that a smaller corpus does not have are 0.
    """
    frames = [parts[split, c] for c in range(corpora)]
    most = max(frame.height for frame in frames)
    stacks: dict[str, list[np.ndarray]] = {"ids": [], "labels": [], "candidates": []}
    for frame in frames:
        columns = {
            "ids": matrix(frame["tokens"]),
            "labels": frame["label"].to_numpy(),
            "candidates": matrix(frame["candidates"]),
        }
        for name, values in columns.items():
            filler = np.zeros((most - frame.height, *values.shape[1:]), values.dtype)
            stacks[name].append(np.concatenate([values, filler]))
    return {name: np.stack(arrays) for name, arrays in stacks.items() if arrays[0][0].size}


def matrix(column: pl.Series) -> NDArray[np.int16]:
    """Return a column of lists of one length as an array."""
    flat = column.to_arrow().flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(column), -1).astype(np.int16)


def _given(entry: Run, shape: dict[str, Any], spec: attention_only.Spec) -> dict[str, np.ndarray]:
    """Return the initial W of the layers that start from a construction, the same for all heads.

    The source is section 9.1: "constructed pattern for different tasks, as illustrated in 13.2, 14.2, and
    15".
    """
    task, k, l = shape["task"], shape["k"], shape["l"]
    weights = {}
    for layer, kind in enumerate(entry.constructed or []):
        W = tasks.start(kind, task, k, l, shape["d1"], shape["d2"], spec.width)
        weights[f"initial.blocks.{layer}.W"] = np.repeat(W[None], spec.heads[layer], 0)
    return weights
