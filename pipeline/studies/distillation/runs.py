"""From held-out strings and a teacher's answers to training jobs; strings of training are drawn at every step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.errors import SandglassError
from pipeline.languages import parity
from pipeline.training.core import Header
from schemas.distillation.datasets import SCHEMA as DATASET_SCHEMA

if TYPE_CHECKING:
    import polars as pl

    from pipeline.studies.distillation.params import Run

__all__ = ["DATASET_SCHEMA", "prepare"]


def prepare(entry: Run, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return header, data and an empty embedding table of the training job of one member of a run.

    Raises SandglassError if a student's dataset answers other steps, batches or students than the run has.
    """
    held, told = frame.filter(part="held"), frame.filter(part="student")
    d, k, depth = (int(held[name][0]) for name in ("d", "k", "depth"))
    data: dict[str, Any] = {
        "held.bits": np.array(held["bits"].to_list(), np.uint8),
        "held.labels": held["label"].to_numpy().astype(np.int64),
    }
    if (entry.role == "student") != bool(told.height):
        raise SandglassError(
            f"a {entry.role} cannot learn from dataset {entry.dataset}: it has {told.height} students"
        )
    if entry.role == "teacher":
        names, rows = (
            [f"label.{own}" for own in range(entry.side)],
            {"hard": [-1] * entry.side, "soft": [-1] * entry.side},
        )
    else:
        names, rows = _answers(entry, told, data)
    mlp = entry.model == "distillation/mlp"
    settings = {
        "d": d, "k": k, "depth": depth, "reads": "signs" if mlp else "ids", "students": names,
        "batch": entry.batch, **rows,
    }  # fmt: skip
    spec: dict[str, Any] = {
        "side": len(names),
        "inputs": d,
        "width": entry.width,
        "outputs": parity.classes(depth),
    }
    if not mlp:
        spec = {
            "side": len(names), "inputs": 2, "outputs": parity.classes(depth), "t_max": d, "width": entry.width,
            "layers": entry.layers, "heads": entry.heads, "head_width": entry.head_width, "average": entry.average,
            "last": True,
        }  # fmt: skip
    header = Header.grid(entry, seed, spec, settings)
    every = entry.snapshots_every
    kept = list(range(0, entry.steps, every)) if every else []
    return (
        replace(header, corpus=list(header.streams or []), snapshots=kept),
        data,
        np.zeros((1, 1), np.float32),
    )


def _answers(entry: Run, told: pl.DataFrame, data: dict[str, Any]) -> tuple[list[str], dict[str, list[int]]]:
    """Put the answers into ``data``; return the students' names and, for each, the row of its answers or -1."""
    first = told.filter(replica=0).sort("row")
    names = first["student"].to_list()
    expected = {"replicas": entry.replicas, "batch": entry.batch, "side": entry.side}
    arms = len({name.split(".")[0] for name in names})
    there = {
        "replicas": told["replica"].n_unique(),
        "batch": int(told["batch"][0]),
        "side": len(names) // arms,
    }
    rows: dict[str, list[int]] = {}
    for kind in ("hard", "soft"):
        listening = [name for name, value in zip(names, first[kind], strict=True) if value is not None]
        rows[kind] = [listening.index(name) if name in listening else -1 for name in names]
        if not listening:
            continue
        values = [
            np.stack([told.filter(replica=r, student=name)[kind][0].to_numpy() for name in listening])
            for r in range(there["replicas"])
        ]
        table = np.stack(values)  # (R, A, steps * B * classes)
        outputs = 1 if kind == "hard" else parity.classes(int(told["depth"][0]))
        there["steps"] = table.shape[-1] // (there["batch"] * outputs)
        shape = (*table.shape[:2], there["steps"], there["batch"], *([outputs] if kind == "soft" else []))
        data[kind] = table.reshape(shape)
    expected["steps"] = entry.steps
    for name, value in there.items():
        if expected[name] != value:
            raise SandglassError(
                f"dataset {entry.dataset} answers {name} {value}; the run has {expected[name]}"
            )
    return names, rows
