"""From held-out examples and a teacher's answers to training jobs; examples of training are drawn at every step."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.errors import SandglassError
from pipeline.studies.distillation import costs
from pipeline.training.jobs import Header
from pipeline.training.objectives import distillation as objective
from pipeline.training.objectives import distillation_streamed
from schemas.distillation.datasets import ABOUT
from schemas.distillation.datasets import SCHEMA as DATASET_SCHEMA

if TYPE_CHECKING:
    import polars as pl

    from pipeline.studies.distillation.params import Run

__all__ = ["DATASET_SCHEMA", "prepare"]


def prepare(entry: Run, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return header, data and an empty embedding table of the training job of one member of a run.

    Raises SandglassError if a student's dataset answers other steps, batches or students than the run has, or a model
    cannot read what its dataset holds.
    """
    held, students = frame.filter(part="held"), frame.filter(part="student")
    if (entry.role == "student") != bool(students.height):
        raise SandglassError(
            f"a {entry.role} cannot learn from dataset {entry.dataset}: it has {students.height} students"
        )
    task_fields = held.select(ABOUT).row(0, named=True)
    parity, mlp = task_fields["task"] == "parity", entry.model == "distillation/mlp"
    if mlp and not parity:
        raise SandglassError(f"an MLP cannot read the sentences of dataset {entry.dataset}")
    reads = "signs" if mlp else "ids"
    settings = task_fields | {"language": entry.language, "reads": reads, "side": entry.side, "batch": entry.batch}
    language: Any = importlib.import_module(f"pipeline.languages.{entry.language}")
    data, read = _strings(held, settings) if parity else _sentences(held, settings)
    outputs = language.outputs(task_fields)
    if entry.role == "teacher":
        names = [f"label.{own}" for own in range(entry.side)]
        settings |= {"students": names, "hard": [-1] * entry.side, "soft": [-1] * entry.side}
    elif (asked := frame.filter(part="checkpoint")).height:
        settings |= _streamed(entry, students, asked, data)
    else:
        names, rows = _answers(entry, students, data, outputs)
        settings |= {"students": names, **rows}
    names = settings["students"]
    spec: dict[str, Any] = {"side": len(names), "inputs": read, "width": entry.width, "outputs": outputs}
    if not mlp:
        spec |= {
            "form": entry.form,
            "inputs": 2 if parity else outputs,
            "t_max": read,
            "layers": entry.layers,
            "heads": entry.heads,
            "head_width": entry.head_width,
            "average": entry.average,
            "start": entry.start,
            "last": parity,
            "clip": entry.clip,
        }
    header = Header.grid(entry, seed, spec, settings)
    if "plans" in settings:
        header = replace(header, objective=distillation_streamed.__name__.rsplit(".", 1)[1])
    every = entry.snapshots_every
    kept = list(range(0, entry.steps, every)) if every else []
    # The trainer would clip the gradient of all models side by side together.
    header = replace(header, corpus=list(header.streams or []), snapshots=kept, clip=entry.clip if mlp else 0.0)
    return header, data, np.zeros((1, 1), np.float32)


Data = dict[str, np.ndarray]


def _array(held: pl.DataFrame, name: str) -> np.ndarray:
    return np.array(held[name].to_list(), np.uint16)


def _strings(held: pl.DataFrame, settings: dict[str, Any]) -> tuple[Data, int]:
    """Return the held-out strings as a model reads them, and how long they are."""
    x = objective.encoded(_array(held, "bits").astype(np.uint8), settings)
    return {"held.x": x, "held.labels": held["label"].to_numpy().astype(np.int64)}, x.shape[1]


def _sentences(held: pl.DataFrame, settings: dict[str, Any]) -> tuple[Data, int]:
    """Return the held-out sentences as a model reads them, and how many positions they have."""
    read = objective.sentence_inputs(settings, {name: _array(held, name) for name in ("tokens", "shown", "kind")})
    return {f"held.{name}": array for name, array in read.arrays().items()}, read.x.shape[1]


def _answers(entry: Run, students: pl.DataFrame, data: Data, classes: int) -> tuple[list[str], dict[str, list[int]]]:
    """Put the answers into ``data``; return the students' names and, for each, the row of its answers or -1."""
    first = students.filter(replica=0).sort("row")
    names = first["student"].to_list()
    sizes = _sizes(students, names)
    rows: dict[str, list[int]] = {}
    for kind in ("hard", "soft"):
        listening = [name for name, value in zip(names, first[kind], strict=True) if value is not None]
        rows[kind] = [listening.index(name) if name in listening else -1 for name in names]
        if not listening:
            continue
        values = [
            np.stack([students.filter(replica=r, student=name)[kind][0].to_numpy() for name in listening])
            for r in range(sizes["replicas"])
        ]
        n_answers = int(students["asked"][0])  # of a step
        table = np.stack(values).reshape(  # (R, A, steps * asked), with the classes behind
            sizes["replicas"], len(listening), -1, n_answers, *([classes] if kind == "soft" else [])
        )
        sizes["steps"] = table.shape[2]
        data[kind] = table
    _must_fit(entry, sizes)
    return names, rows


def _streamed(entry: Run, students: pl.DataFrame, asked: pl.DataFrame, data: Data) -> dict[str, Any]:
    """Put the weights of checkpoints into ``data``; return the settings of students that ask them while they train."""
    first = students.filter(replica=0).sort("row")
    names = first["student"].to_list()
    places = {key: place for place, key in enumerate(asked.select("teacher", "row").iter_rows())}
    data["weights"] = np.stack([own.to_numpy() for own in asked["soft"]]).astype(np.float32)
    sizes = _sizes(students, names)
    plans = []
    for replica in range(sizes["replicas"]):
        rows = students.filter(replica=replica).sort("row").select("teacher", "schedule").iter_rows()
        plans.append(
            [
                [[places[number, each["checkpoint"]], each["start"], each["end"]] for each in plan or []]
                for number, plan in rows
            ]
        )
    _must_fit(entry, sizes | {"steps": max(part[2] for of_replica in plans for plan in of_replica for part in plan)})
    teacher = json.loads(asked["student"][0])
    settings = {"students": names, "taus": first["tau"].to_list(), "plans": plans, "teacher": teacher}
    print(f"{entry.dataset}: {costs.of_training(entry, settings, data)}", file=sys.stderr, flush=True)
    return settings


def _sizes(students: pl.DataFrame, names: list[str]) -> dict[str, int]:
    arms = len({name.split(".")[0] for name in names})
    return {"replicas": students["replica"].n_unique(), "batch": int(students["batch"][0]), "side": len(names) // arms}


def _must_fit(entry: Run, sizes: dict[str, int]) -> None:
    expected = {"replicas": entry.replicas, "batch": entry.batch, "side": entry.side, "steps": entry.steps}
    for name, value in sizes.items():
        if expected[name] != value:
            raise SandglassError(f"dataset {entry.dataset} answers {name} {value}; the run has {expected[name]}")
