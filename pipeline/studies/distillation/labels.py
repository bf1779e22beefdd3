"""What a teacher's checkpoints answer to the strings that its students will read (Liu 2024, sections 4.2.1, 4.2.8.1).

A student's strings are a pure function of its stream and step, so they are drawn here as its training draws them, and
answered in large batches: once for each checkpoint of its schedule, not once for each step.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch

from pipeline.errors import SandglassError
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import parity
from pipeline.training.objectives import distillation as objective
from schemas.distillation.datasets import SCHEMA, complete, held

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pipeline.studies.distillation.params import Answers, Arm, Checkpoint

__all__ = ["SCHEMA", "answer"]

BLOCK = 1024  # steps that are answered at once
NUMBERS = 2**25  # hidden values that are held at once

PARTS = ("checkpoint", "start", "end")
Interval = tuple[
    int, int, int
]  # teacher step of a checkpoint, first student step and the one behind the last


def answer(
    entry: Answers, key: str, seed: int, arrays: dict[str, NDArray[Any]], header: dict[str, Any]
) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the held-out strings, and a row of answers for each student; no metadata.

    Raises SandglassError if the teacher has no models, kept no weights on its way, or has another task.
    """
    bits = parity.sample(stream(seed, entry.study, "held-out", entry.d), (entry.strings,), entry.d)
    labels = parity.labels(bits, entry.k, entry.depth)
    frames = [held(bits, labels, entry.k, entry.depth)]
    if entry.replicas:
        with one_thread():
            teachers = Teachers(entry, arrays, header, bits, labels, seed)
            rows = list(_students(entry, seed, teachers))
        frames.append(complete(pl.DataFrame(rows, schema_overrides=_WIDE, infer_schema_length=None)))
    return pl.concat(frames), {}


_WIDE = {"hard": pl.List(pl.UInt8), "soft": pl.List(pl.Float32)}


class Teachers:
    """The models of a teacher's run, by number, after each of its kept steps."""

    def __init__(
        self, entry: Answers, arrays: dict[str, NDArray[Any]], header: dict[str, Any],
        bits: NDArray[np.uint8], labels: NDArray[np.int64], seed: int,
    ) -> None:  # fmt: skip
        if "spec" not in header:
            raise SandglassError(
                f"teacher {entry.teacher} has no models at this scale, and its students have {entry.replicas}"
            )
        if header["spec"]["inputs"] != entry.d and header["entry"]["model"] == "distillation/mlp":
            raise SandglassError(
                f"teacher {entry.teacher} reads {header['spec']['inputs']} signs, its students read {entry.d}"
            )
        self.module = importlib.import_module("pipeline.models." + header["entry"]["model"].replace("/", "."))
        self.spec = self.module.Spec(**header["spec"] | {"side": 1})
        self.side = header["spec"]["side"]
        self.last = header["entry"]["steps"]
        names = self.module.shapes(self.spec)
        kept = sorted({int(name.split(".")[0][4:]) for name in arrays if name.startswith("step")})
        self.kept = [step for step in kept if step < self.last] + [self.last]
        self.weights = {
            step: {n: arrays[n if step == self.last else f"step{step}.{n}"] for n in names}
            for step in self.kept
        }
        self.number = len(header["lr"]) * self.side
        self.entry, self.bits, self.labels = entry, bits, labels
        self.settings = {
            "d": entry.d,
            "batch": entry.batch,
            "reads": "signs" if header["entry"]["model"] == "distillation/mlp" else "ids",
        }
        rng = stream(seed, entry.study, "correlations", entry.d)
        self.sample = parity.sample(rng, (entry.correlated,), entry.d)
        self._accuracies: dict[int, NDArray[np.float64]] = {}
        self._separations: dict[int, NDArray[np.float64]] = {}

    def logits(self, number: int, step: int, bits: NDArray[np.uint8]) -> torch.Tensor:
        """Return logits (n, K) of a model after a kept step, on strings (n, d)."""
        replica, own = divmod(number, self.side)
        params = {
            name: torch.from_numpy(np.ascontiguousarray(array[replica : replica + 1, own : own + 1]))
            for name, array in self.weights[step].items()
        }
        size = max(
            1, NUMBERS // (self.spec.width * (1 if self.settings["reads"] == "signs" else 8 * self.entry.d))
        )
        found = []
        for start in range(0, len(bits), size):
            x = torch.from_numpy(objective.encoded(bits[start : start + size], self.settings))
            found.append(self.module.forward(self.spec, params, torch.zeros(1, 1), x[None, None])[0][0, 0])
        return torch.cat(found)

    def accuracies(self, number: int) -> NDArray[np.float64]:
        """Return the accuracy on the held-out strings after each kept step."""
        if number not in self._accuracies:
            said = [self.logits(number, step, self.bits).argmax(-1).numpy() for step in self.kept]
            self._accuracies[number] = np.array([(own == self.labels).mean() for own in said])
        return self._accuracies[number]

    def separations(self, number: int) -> NDArray[np.float64]:
        """Return SEP_1 of the first class after each kept step (section 4.2.2.1)."""
        if number not in self._separations:
            p = [
                self.logits(number, step, self.sample).softmax(-1)[:, 0].double().numpy()
                for step in self.kept
            ]
            places: list[tuple[int, ...]] = [(place,) for place in range(self.entry.d)]
            found = parity.correlations(np.stack(p), self.sample, places)
            inside = parity.need(self.entry.k, self.entry.depth)
            self._separations[number] = parity.separation(found[:, :inside], found[:, inside:])
        return self._separations[number]

    def step(self, number: int, wanted: Checkpoint) -> int:
        """Return the kept step that a rule chooses, of this model; the last if no step is as the rule wants it."""
        if wanted.rule in ("correlation", "between"):
            found = self.separations(number)
            return self.kept[int(np.argmax(found)) if wanted.rule == "correlation" else between(found)]
        assert wanted.value is not None
        if wanted.rule == "step":
            if wanted.value not in self.kept:
                raise SandglassError(
                    f"teacher {self.entry.teacher} kept no weights after {wanted.value:g} steps"
                )
            return int(wanted.value)
        accuracy = self.accuracies(number)
        if wanted.rule == "reaches":
            return self.kept[first(accuracy >= wanted.value)]
        assert wanted.of is not None and wanted.gap is not None
        place = first(accuracy >= wanted.of)
        early = [i for i in range(max(0, place - wanted.gap) + 1) if accuracy[i] < wanted.value]
        return self.kept[early[-1] if early else 0]


def first(reached: NDArray[np.bool_]) -> int:
    """Return the place of the first true value, or of the last value if none is."""
    return int(np.argmax(reached)) if reached.any() else len(reached) - 1


def between(separation: NDArray[np.float64]) -> int:
    """Return the place of the smallest value between the largest value and the largest one apart from it.

    Two peaks are apart if a value between them is below half of the smaller one; without a second peak it is the place
    behind the only one at which the value has first fallen below half of it, or the last.
    """
    top = int(np.argmax(separation))
    best, chosen = 0.0, None
    for other in range(len(separation)):
        low, high = sorted((top, other))
        if high - low < 2:
            continue
        valley = low + 1 + int(np.argmin(separation[low + 1 : high]))
        if separation[valley] < separation[other] / 2 and separation[other] > best:
            best, chosen = float(separation[other]), valley
    if chosen is not None:
        return chosen
    return top + first(separation[top:] < separation[top] / 2)


def intervals(arm: Arm, kept: list[int], chosen: list[int], steps: int) -> list[Interval]:
    """Return the checkpoints that a student of ``steps`` steps learns from, in turn, contiguous from 0 to its end.

    ``kept`` are the teacher's kept steps without the untrained one, the last of them its end (definitions 21 and 22,
    section 4.2.8.1.1): the i-th is used from the elapsed time at which the (i-1)-th would be reached, so that a
    student is never taught by the untrained teacher.
    """
    if arm.schedule == "one_shot":
        ends = [(kept[-1], steps)]
    elif arm.schedule == "equal_split":
        ends = [(step, -(-(i + 1) * steps // len(kept))) for i, step in enumerate(kept)]
    elif arm.kappa is not None:
        part = arm.kappa * kept[-1] / len(kept)
        ends = [(step, int(np.ceil(round((i + 1) * part, 9)))) for i, step in enumerate(kept)]
    else:
        assert arm.each is not None
        ends = [(step, (i + 1) * arm.each) for i, step in enumerate(chosen or kept)]
        ends += [(kept[-1], steps)] if chosen else []
    found, start = [], 0
    for place, (step, end) in enumerate(ends):
        end = steps if place == len(ends) - 1 else min(end, steps)
        if end > start:
            found.append((step, start, end))
            start = end
    return found


def _students(entry: Answers, seed: int, teachers: Teachers) -> Iterator[dict[str, Any]]:
    """Yield a row for each student of each replica."""
    kept = [step for step in teachers.kept if step > 0]
    count = len(entry.arms) * entry.side
    for replica in range(entry.replicas):
        plans: list[list[Interval]] = []
        rows: list[dict[str, Any]] = []
        for name, arm in entry.arms.items():
            for own in range(entry.side):
                number = (replica * entry.side + own) % teachers.number
                labels = arm.schedule == "labels"
                chosen = [] if labels else [teachers.step(number, wanted) for wanted in arm.checkpoints or []]
                plans.append([] if labels else intervals(arm, kept, chosen, entry.steps))
                rows.append(
                    {
                        "part": "student", "d": entry.d, "k": entry.k, "depth": entry.depth, "row": len(rows),
                        "replica": replica, "student": f"{name}.{own}", "batch": entry.batch,
                        "tau": None if labels else arm.tau, "teacher": None if labels else number,
                        "schedule": None if labels else [dict(zip(PARTS, part, strict=True)) for part in plans[-1]],
                        "hard": [], "soft": [],
                    }
                )  # fmt: skip
        for start in range(0, entry.steps, BLOCK):
            block = range(start, min(start + BLOCK, entry.steps))
            path = (seed, entry.study, entry.stream, "replica", replica, "objective")
            drawn = [objective.strings(stream(*path, step), teachers.settings, count) for step in block]
            bits = np.stack(drawn, 1)  # (S, steps, B, d)
            for row, plan, own_bits in zip(rows, plans, bits, strict=True):
                for step, low, high in plan:
                    inside = own_bits[max(low - start, 0) : max(high - start, 0)]
                    if not len(inside):
                        continue
                    logits = teachers.logits(row["teacher"], step, inside.reshape(-1, entry.d))
                    if row["tau"]:
                        row["soft"].append((logits / row["tau"]).softmax(-1).numpy().ravel())
                    else:
                        row["hard"].append(logits.argmax(-1).numpy().astype(np.uint8))
        for row in rows:
            for name in ("hard", "soft"):
                row[name] = np.concatenate(row[name]) if row[name] else None
            yield row
