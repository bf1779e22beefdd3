"""From sequences to training jobs (Liu 2024, section 3.4.5.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.errors import SandglassError
from pipeline.languages import automata
from pipeline.training.jobs import Header
from schemas.automata.datasets import SCHEMA as DATASET_SCHEMA
from schemas.automata.datasets import matrix

if TYPE_CHECKING:
    import polars as pl

    from pipeline.studies.automata.params import Run

__all__ = ["DATASET_SCHEMA", "prepare"]

SCRATCHPAD = ("scratchpad", "recency")
POSITIONS = {"gpt": "sin", "shift": "sin", "scratchpad": "sin"}  # of the others, the name of the arm


def prepare(entry: Run, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return header, data and an empty embedding table of the training job of one member of a run.

    Raises SandglassError if the dataset lacks the run's task, or has fewer training sequences than the run reads:
    all are to be fresh.
    """
    task = automata.task(entry.task)
    if entry.task not in (tasks := frame["task"].unique().sort().to_list()):
        raise SandglassError(f"dataset {entry.dataset} has no task {entry.task}; it has: {', '.join(tasks)}")
    parts = {split: frame.filter(task=entry.task, split=split) for split in ("train", "validation")}
    needed = entry.steps * entry.batch
    if parts["train"].height < needed:
        raise SandglassError(
            f"dataset {entry.dataset} holds {parts['train'].height} training sequences, but {entry.steps} steps of "
            f"{entry.batch} read {needed}: raise datasets.{entry.dataset}.train"
        )
    data = {}
    for prefix, split in (("", "train"), ("held.", "validation")):
        rows = parts[split].head(needed)
        data[f"{prefix}tokens"] = matrix(rows["tokens"])
        data[f"{prefix}labels"] = task.observe[matrix(rows["states"])].astype(np.int16)
    symbols = task.automaton.next.shape[1]
    written = symbols if entry.arm in SCRATCHPAD else 0
    settings = {
        "revealed": entry.revealed,
        "shift": entry.shift,
        "dropout": entry.dropout,
        "scratchpad": written,
        "held": True,
    }
    inputs = symbols + (task.labels if written else 0)
    return (Header.grid(entry, seed, _spec(entry, inputs, task.labels), settings), data, np.zeros((1, 1), np.float32))


def _spec(entry: Run, inputs: int, outputs: int) -> dict[str, Any]:
    if entry.arm == "lstm":
        return {"embed": entry.embed, "width": entry.width, "inputs": inputs, "outputs": outputs}
    return {
        "layers": entry.layers,
        "heads": entry.heads,
        "width": entry.width,
        "ffn": entry.ffn,
        "position": POSITIONS.get(entry.arm, entry.arm),
        "scale": entry.scale or 0.0,
        "inputs": inputs,
        "outputs": outputs,
    }
