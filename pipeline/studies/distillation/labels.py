"""What a teacher's checkpoints answer to the inputs that its students will read (Liu 2024, sections 4.2.1, 4.2.8.1).

A student's inputs are a pure function of its stream and step, so they are drawn here as its training draws them, and
answered in large batches: once for each checkpoint of a schedule, not once for each step, and once for all students of
one number, whose inputs are the same.

Of an entry with ``streamed`` nothing is answered here: the dataset holds what each student asks, and the weights
that it asks, and answers are given while the students train. Of the published grammars, batches and horizons they would
be hundreds of GiB (`pipeline.studies.distillation.costs`).
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch

from pipeline.errors import SandglassError
from pipeline.kit.streams import one_thread, stream
from pipeline.studies.distillation import costs, datasets
from pipeline.training.objectives import distillation as objective
from schemas.distillation.datasets import SCHEMA, complete, held

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pipeline.studies.distillation.params import Arm, Checkpoint, Taught

__all__ = ["SCHEMA", "answers"]

INPUTS = 2**18  # numbers of inputs that are answered at once
NUMBERS = 2**20  # hidden values that are held at once: 4 MiB, most of which stays in a cache

PARTS = ("checkpoint", "start", "end")
Interval = tuple[int, int, int]  # teacher step of a checkpoint, first student step and the one behind the last


def answers(
    entries: dict[str, Taught], seed: int, arrays: dict[str, NDArray[Any]], header: dict[str, Any]
) -> dict[str, pl.DataFrame]:
    """Return for each of some datasets with one teacher its held-out strings or sentences, and a row of answers for
    each student. Datasets that differ in their steps and arms alone have students who read the same: what several of
    them ask is answered once.

    Raises SandglassError if the teacher has no models, kept no weights on its way, or has another task.
    """
    for key, entry in entries.items():
        if entry.replicas and (said := costs.of_answers(entry)):
            print(f"{key}: {said}", file=sys.stderr, flush=True)
    alike: dict[str, dict[str, Taught]] = {}
    for key, entry in entries.items():
        alike.setdefault(entry.model_dump_json(exclude={"steps", "arms"}), {})[key] = entry
    tables = {}
    for group in alike.values():
        entry = next(iter(group.values()))
        task_fields, columns = datasets.drawn(entry, seed)
        rows: list[list[dict[str, Any]]] = [[] for _ in group]
        if entry.replicas:
            with one_thread():
                teachers = Teachers(entry, arrays, header, task_fields, columns, seed)
                if entry.answered_during_training:
                    rows = [_streamed(each, teachers) for each in group.values()]
                else:
                    rows = _students(list(group.values()), seed, teachers)
        common = {name: value for name, value in task_fields.items() if value is not None}
        for key, own in zip(group, rows, strict=True):
            frames = [held(task_fields, **columns)]
            if own:
                listed = [common | row for row in own]
                frames.append(complete(pl.DataFrame(listed, schema_overrides=_WIDE, infer_schema_length=None)))
            tables[key] = pl.concat(frames)
    return {key: tables[key] for key in entries}


_WIDE = {"hard": pl.List(pl.UInt16), "soft": pl.List(pl.Float32)}


class Teachers:
    """The models of a teacher's run, by number, after each of its kept steps."""

    def __init__(
        self,
        entry: Taught,
        arrays: dict[str, NDArray[Any]],
        header: dict[str, Any],
        task_fields: dict[str, Any],
        columns: dict[str, NDArray[Any]],
        seed: int,
    ) -> None:
        if "spec" not in header:
            raise SandglassError(
                f"teacher {entry.teacher} has no models at this scale, and its students have {entry.replicas}"
            )
        mlp = header["entry"]["model"] == "distillation/mlp"
        self.language: Any = importlib.import_module(f"pipeline.languages.{entry.language}")
        self.settings = task_fields | {
            "language": entry.language,
            "side": entry.side,
            "batch": entry.batch,
            "reads": "signs" if mlp else "ids",
        }
        if "bits" in columns:
            self.held = objective.Inputs(objective.encoded(columns["bits"], self.settings), columns["label"])
        else:
            self.held = objective.sentence_inputs(self.settings, columns)
        reads = header["spec"]["inputs" if mlp else "t_max"]
        if reads != self.held.x.shape[1]:
            raise SandglassError(
                f"teacher {entry.teacher} reads {reads} {'signs' if mlp else 'tokens'}, its students read "
                f"{self.held.x.shape[1]}"
            )
        self.model = header["entry"]["model"]
        self.module = importlib.import_module("pipeline.models." + self.model.replace("/", "."))
        self.spec = self.module.Spec(**header["spec"] | {"side": 1})
        self.side = header["spec"]["side"]
        self.last = header["entry"]["steps"]
        names = self.module.shapes(self.spec)
        kept = sorted({int(name.split(".")[0][4:]) for name in arrays if name.startswith("step")})
        self.kept = [step for step in kept if step < self.last] + [self.last]
        self.weights = {
            step: {n: arrays[n if step == self.last else f"step{step}.{n}"] for n in names} for step in self.kept
        }
        self.number = len(header["lr"]) * self.side
        self.entry, self.seed = entry, seed
        self.reads_signs = mlp
        self._curves: dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
        self._separations: dict[int, NDArray[np.float64]] = {}

    def own(self, number: int, step: int) -> dict[str, NDArray[Any]]:
        """Return the weights (1, 1, …) of a model after a kept step."""
        replica, place = divmod(number, self.side)
        return {
            name: np.ascontiguousarray(array[replica : replica + 1, place : place + 1])
            for name, array in self.weights[step].items()
        }

    def logits(self, number: int, step: int, inputs: objective.Inputs) -> torch.Tensor:
        """Return the logits (n, K) of a model after a kept step for all that is asked of the inputs, in order."""
        params = {name: torch.from_numpy(array) for name, array in self.own(number, step).items()}
        if inputs.chosen is not None:
            token_logits: torch.Tensor = self.module.answers(
                self.spec, params, inputs.x, inputs.chosen, inputs.visible, NUMBERS
            )
            return token_logits[0]
        if not self.reads_signs:
            strings: torch.Tensor = self.module.behind(self.spec, params, inputs.x, NUMBERS)
            return strings[0]
        size = max(1, NUMBERS // self.spec.width)
        parts = [torch.from_numpy(inputs.x[start : start + size]) for start in range(0, len(inputs.x), size)]
        outputs = [self.module.forward(self.spec, params, torch.zeros(1, 1), x[None, None])[0][0, 0] for x in parts]
        return torch.cat(outputs)

    def curves(self, number: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the accuracy and the loss on the held-out inputs after each kept step."""
        if number not in self._curves:
            labels = self.held.labels if self.held.chosen is None else self.held.labels[self.held.chosen]
            targets = torch.from_numpy(labels.astype(np.int64))
            logits = [self.logits(number, step, self.held) for step in self.kept]
            self._curves[number] = (
                np.array([float((own.argmax(-1) == targets).double().mean()) for own in logits]),
                np.array([float(torch.nn.functional.cross_entropy(own, targets)) for own in logits]),
            )
        return self._curves[number]

    def separations(self, number: int) -> NDArray[np.float64]:
        """Return SEP_1 of the first class after each kept step (section 4.2.2.1)."""
        if number not in self._separations:
            assert self.entry.kind == "taught_strings"
            d, count = self.entry.d, self.entry.correlated
            sample = self.language.sample(stream(self.seed, self.entry.study, "correlations", d), (count,), d)
            read = objective.Inputs(objective.encoded(sample, self.settings), np.zeros(count))
            p = [self.logits(number, step, read).softmax(-1)[:, 0].double().numpy() for step in self.kept]
            chi = self.language.characters(sample, [(place,) for place in range(d)])
            correlations = self.language.correlations(np.stack(p), chi)
            inside = self.language.need(self.entry.k, self.entry.depth)
            self._separations[number] = self.language.separation(correlations[:, :inside], correlations[:, inside:])
        return self._separations[number]

    def step(self, number: int, checkpoint: Checkpoint) -> int:
        """Return the kept step that a rule chooses, of this model; the last if no step is as the rule wants it."""
        if checkpoint.rule in ("correlation", "between"):
            separations = self.separations(number)
            return self.kept[int(np.argmax(separations)) if checkpoint.rule == "correlation" else between(separations)]
        accuracy, loss = self.curves(number)
        if checkpoint.rule == "inflection":
            return self.kept[inflection(np.array(self.kept), loss)]
        assert checkpoint.value is not None
        if checkpoint.rule == "step":
            if checkpoint.value not in self.kept:
                raise SandglassError(f"teacher {self.entry.teacher} kept no weights after {checkpoint.value:g} steps")
            return int(checkpoint.value)
        if checkpoint.rule == "reaches":
            return self.kept[first(accuracy >= checkpoint.value)]
        assert checkpoint.of is not None and checkpoint.gap is not None
        place = first(accuracy >= checkpoint.of)
        early = [i for i in range(max(0, place - checkpoint.gap) + 1) if accuracy[i] < checkpoint.value]
        return self.kept[early[-1] if early else 0]

    def spaced(self, number: int, spacing: str | None) -> list[int]:
        """Return the kept steps that a schedule goes through, without the untrained one: all, or multiples of that of
        the inflection, and the last."""
        kept = [step for step in self.kept if step > 0]
        if spacing != "inflection":
            return kept
        unit = max(kept[0], self.kept[inflection(np.array(self.kept), self.curves(number)[1])])
        return [step for step in kept if step % unit == 0 or step == kept[-1]]


def inflection(steps: NDArray[np.int64], loss: NDArray[np.float64]) -> int:
    """Return the place of C_1: where half of the way from the plateau to the last loss is behind a model (A-PHASE).

    The plateau is the largest loss after 2 % of the steps.
    """
    plateau = loss[steps >= steps[-1] / 50].max()
    drop = (plateau - loss) / (plateau - loss[-1]) if plateau > loss[-1] else np.zeros(len(loss))
    away = np.abs(drop - 0.5)
    away[steps < steps[-1] / 50] = np.inf
    return int(np.argmin(away))


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

    ``kept`` are those of the teacher's kept steps that a schedule goes through, the last of them its end (definitions
    21 and 22, section 4.2.8.1.1): the i-th is used from the elapsed time at which the (i-1)-th would be reached, so
    that a student is never taught by the untrained teacher.
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
    plan, start = [], 0
    for place, (step, end) in enumerate(ends):
        end = steps if place == len(ends) - 1 else min(end, steps)
        if end > start:
            plan.append((step, start, end))
            start = end
    return plan


def _planned(entry: Taught, teachers: Teachers, replica: int) -> list[dict[str, Any]]:
    """Return a row for each student of a replica: who teaches it, and when with which checkpoint."""
    rows: list[dict[str, Any]] = []
    for name, arm in entry.arms.items():
        for own in range(entry.side):
            number = (replica * entry.side + own) % teachers.number
            plan = []
            if arm.schedule != "labels":
                chosen = [teachers.step(number, checkpoint) for checkpoint in arm.checkpoints or []]
                plan = intervals(arm, teachers.spaced(number, arm.spaced), chosen, entry.steps)
            rows.append(
                {
                    "part": "student",
                    "row": len(rows),
                    "replica": replica,
                    "student": f"{name}.{own}",
                    "batch": entry.batch,
                    "tau": arm.tau,
                    "teacher": number if plan else None,
                    "schedule": [dict(zip(PARTS, part, strict=True)) for part in plan] or None,
                }
            )
    return rows


def _streamed(entry: Taught, teachers: Teachers) -> list[dict[str, Any]]:
    """Return the rows of all students without answers, and one for each checkpoint that they learn from: its step as
    ``row``, who has it, what shape it has as JSON in place of a student, and its weights as ``soft``."""
    rows = [row for replica in range(entry.replicas) for row in _planned(entry, teachers, replica)]
    asked = {(row["teacher"], part["checkpoint"]) for row in rows for part in row["schedule"] or []}
    shape = json.dumps({"model": teachers.model, "spec": vars(teachers.spec)}, sort_keys=True)
    for number, step in sorted(asked):
        own = [array.ravel() for array in teachers.own(number, step).values()]
        weights = np.concatenate(own).astype(np.float32)
        rows.append({"part": "checkpoint", "row": step, "teacher": number, "student": shape, "soft": weights})
    return rows


def _students(entries: list[Taught], seed: int, teachers: Teachers) -> list[list[dict[str, Any]]]:
    """Return for each dataset a row for each student of each replica; the datasets differ in steps and arms alone."""
    dataset_rows: list[list[dict[str, Any]]] = [[] for _ in entries]
    first, steps = entries[0], max(entry.steps for entry in entries)
    for replica in range(first.replicas):
        rows: list[tuple[int, dict[str, Any]]] = []  # with the number of the dataset
        plans: list[list[Interval]] = []
        for of, entry in enumerate(entries):
            for row in _planned(entry, teachers, replica):
                rows.append((of, row))
                plans.append([(part["checkpoint"], part["start"], part["end"]) for part in row["schedule"] or []])
        replies: list[list[NDArray[Any]]] = [[] for _ in rows]  # by student, what is answered in each block
        counts: list[list[NDArray[np.int64]]] = [[] for _ in range(first.side)]  # of answers of each step
        for block in _blocks(steps, first.batch * teachers.held.x.shape[1]):
            path = (seed, first.study, first.stream, "replica", replica, "objective")
            drawn = [objective.draw(teachers.settings, stream(*path, step)) for step in block]
            for own in range(first.side):
                inputs = [at_step[own] for at_step in drawn]
                counts[own].append(np.array([_count(each) for each in inputs]))
                mine = range(own, len(rows), first.side)
                number = (replica * first.side + own) % teachers.number
                logits = _answered(teachers, number, block, inputs, counts[own][-1], [plans[p] for p in mine])
                for place, parts in zip(mine, logits, strict=True):
                    replies[place] += [_teacher_labels(part, rows[place][1]["tau"]) for part in parts]
        step_counts = [np.concatenate(each) for each in counts]
        for place, ((of, row), own_answers) in enumerate(zip(rows, replies, strict=True)):
            own_counts = [each[: entries[of].steps] for each in step_counts]
            most = int(max(each.max() for each in own_counts))
            flat = None
            if own_answers:
                flat = _padded(np.concatenate(own_answers), own_counts[place % first.side], most)
            kinds = {"hard": None, "soft": flat} if row["tau"] else {"hard": flat, "soft": None}
            dataset_rows[of].append(row | {"asked": most} | kinds)
    return dataset_rows


def _blocks(steps: int, each: int) -> Iterator[range]:
    """Yield the steps that are answered at once, if ``each`` has so many numbers of inputs."""
    size = max(1, INPUTS // each)
    for start in range(0, steps, size):
        yield range(start, min(start + size, steps))


def _count(inputs: objective.Inputs) -> int:
    return len(inputs.labels) if inputs.chosen is None else int(inputs.chosen.sum())


def _answered(
    teachers: Teachers,
    number: int,
    steps: range,
    inputs: list[objective.Inputs],
    counts: NDArray[np.int64],
    plans: list[list[Interval]],
) -> list[list[torch.Tensor]]:
    """Return for each schedule the logits (n, K) of the parts of a block of steps, checkpoint by checkpoint.

    What several schedules want of a checkpoint is computed once.
    """
    masks: dict[int, NDArray[np.bool_]] = {}
    parts: list[list[tuple[int, int, int]]] = []
    for plan in plans:
        inside = [(c, max(a - steps.start, 0), min(b, steps.stop) - steps.start) for c, a, b in plan]
        parts.append([part for part in inside if part[1] < part[2]])
        for checkpoint, start, end in parts[-1]:
            masks.setdefault(checkpoint, np.zeros(len(steps), bool))[start:end] = True
    logits, before = {}, {}
    for checkpoint, which in masks.items():
        some = objective.Inputs.joined([inputs[place] for place in np.flatnonzero(which)])
        logits[checkpoint] = teachers.logits(number, checkpoint, some)
        before[checkpoint] = np.concatenate([[0], np.cumsum(counts * which)])
    return [[logits[c][before[c][start] : before[c][end]] for c, start, end in each] for each in parts]


def _padded(flat: NDArray[Any], counts: NDArray[np.int64], most: int) -> NDArray[Any]:
    """Return answers of all steps with ``most`` places for each step, flat; those behind the last are 0."""
    table = np.zeros((len(counts), most, *flat.shape[1:]), flat.dtype)
    table[np.arange(most) < counts[:, None]] = flat
    return table.ravel()


def _teacher_labels(logits: torch.Tensor, tau: float) -> NDArray[Any]:
    """Return most likely classes (n,) uint16 where ``tau`` is 0, else probabilities (n, K) float32."""
    if tau:
        return (logits / tau).softmax(-1).numpy()
    return logits.argmax(-1).numpy().astype(np.uint16)
