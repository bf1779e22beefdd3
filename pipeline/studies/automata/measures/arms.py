"""One run as it was trained: the learning rate that its validation chooses, its models, what they answer, and which of
them count in a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.inputs import Inputs
from pipeline.languages import automata
from pipeline.languages.automata import Task
from pipeline.models.automata import gpt, lstm
from schemas.automata.datasets import matrix
from schemas.comparisons import SEEDS

Floats = NDArray[np.float64]

SCRATCHPAD = ("scratchpad", "recency")
ROWS = 256  # sequences at once
AVERAGE = 0.9  # the decay of the source


@dataclass(frozen=True)
class Arm:
    """The models of a run at the chosen rate, which did not diverge; ``replicas`` are their numbers."""

    run: str
    entry: dict[str, Any]
    task: Task
    ensemble: Any
    replicas: list[int]
    lr: float
    at_edge: bool  # whether the chosen rate is the first or last of several
    diverged: int
    final_loss: Floats
    validation: Floats

    @property
    def arm(self) -> str:
        return str(self.entry["arm"])

    @property
    def depth(self) -> int | None:
        """Layers; None for an LSTM."""
        return self.entry["layers"] if self.arm != "lstm" else None

    def answers(self, tokens_NxT: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the label that each model says at each position, (R, N, T); scratchpads read what they wrote."""
        batches = []
        with torch.inference_mode():
            for start in range(0, len(tokens_NxT), ROWS):
                ids = torch.from_numpy(tokens_NxT[None, start : start + ROWS].astype(np.int64))
                if self.arm in SCRATCHPAD:
                    labels = gpt.decode(self.ensemble, ids, self.task.automaton.next.shape[1])
                else:
                    labels = self.forward(ids).argmax(-1)
                batches.append(labels.numpy())
        return np.concatenate(batches, 1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return logits (R, B, T, O)."""
        of = self.ensemble
        model: Any = lstm if self.arm == "lstm" else gpt
        logits: torch.Tensor = model.forward(of.spec, of.params, of.table, ids)[0]
        return logits

    def averaged(self, decay: float) -> Arm:
        """Return the models whose weights are the moving averages with this decay, which training kept."""
        prefix = f"average{decay:g}."  # as `pipeline.training.jobs.average_name` says
        kept = {
            name.removeprefix(prefix): value for name, value in self.ensemble.params.items() if name.startswith(prefix)
        }
        return replace(self, ensemble=replace(self.ensemble, params=kept))

    def accuracy(self, frame: pl.DataFrame) -> tuple[Floats, Floats]:
        """Return (R,) the share of tokens and of whole sequences that are right on rows of a dataset."""
        right = self.answers(matrix(frame["tokens"])) == self.task.observe[matrix(frame["states"])]
        return right.mean((1, 2)), right.all(2).mean(1)

    def row_keys(self) -> dict[str, Any]:
        """Return the columns that say what a row is about."""
        return {"run": self.run, "task": self.task.name, "arm": self.arm, "depth": self.depth}


def read(context: Inputs, run: str) -> Arm:
    """Return the run ``run`` at the learning rate whose models are best on validation sequences."""
    header, ensemble = context.run_header(run), context.model(run)
    curves = context.curves(run).sort("replica", "step").group_by("replica", maintain_order=True).last()
    held = curves["accuracy_held"].fill_null(0.0).to_numpy()
    lr = np.array(header["lr"])
    rates = list(dict.fromkeys(header["lr"]))
    best = max(rates, key=lambda rate: held[lr == rate].mean())
    gone = {int(r) for r in header["diverged"]}
    models = [m for m in np.flatnonzero(lr == best).tolist() if m not in gone]
    kept = type(ensemble)(
        ensemble.spec, {name: value[models] for name, value in ensemble.params.items()}, ensemble.table, header
    )
    return Arm(
        run,
        header["entry"],
        automata.task(header["entry"]["task"]),
        kept,
        [header["streams"][m] for m in models],
        best,
        len(rates) > 1 and best in (min(rates), max(rates)),
        int((lr == best).sum()) - len(models),
        curves["loss"].to_numpy()[models],
        held[models],
    )


def arms(context: Inputs, runs: list[str] | None = None) -> dict[str, Arm]:
    """Return the runs of the experiment (or those of ``runs`` that it has) that have models which did not diverge."""
    names = [run for run in context.runs() if runs is None or run in runs]
    return {run: arm for run in names if (arm := read(context, run)).replicas}


class Sample(NamedTuple):
    """One value for each model of an arm."""

    arm: Arm
    values: Floats


def learned(context: Inputs, arm: Arm) -> NDArray[np.bool_]:
    """Return which models are right on validation sequences, which are like those of training: a model that is not
    says nothing of what its solution does elsewhere."""
    return arm.validation >= context.settings.solved


def compare(
    context: Inputs, found: Measurements, comparison: Comparison, *samples: Mapping[str, Sample], why: str = ""
) -> None:
    """Measure a comparison, of whose arms ``samples`` give the values by run: one mapping for each arm, or one for all.

    An arm takes the first of its runs that is there; one that was not trained leaves the comparison out. Models count
    that learned their task where the comparison says so and, of arms that are paired by seeds, those whose twin counts.
    ``why`` says what else leaves models out.
    """
    trained, sides = set(context.runs()), []
    for place, side in enumerate(comparison.arms):
        if not trained.intersection(side.runs):
            return
        by_run = samples[min(place, len(samples) - 1)]
        here = [by_run[run] for run in side.runs if run in by_run]
        sides += here[:1]  # none where all of its models diverged
    counted = [counting(context, comparison, side) for side in sides] or [{}]
    if comparison.in_common == SEEDS or len(counted) < len(comparison.arms):
        twins = set.intersection(*map(set, counted)) if len(counted) == len(comparison.arms) else set()
        counted = [{r: each[r] for r in sorted(twins)} for each in counted]
        counted += [{}] * (len(comparison.arms) - len(counted))
    left = {
        side.arm.run: len(side.values) + side.arm.diverged - len(each)
        for side, each in zip(sides, counted, strict=False)
    }
    values = [list(each.values()) for each in counted]
    found.add(comparison, *values, excluded=sum(left.values()), reason=left_out(context, comparison) + why)


def counting(context: Inputs, comparison: Comparison, sample: Sample) -> dict[int, float]:
    """Return the values of the models that count, by the number of the model."""
    kept = learned(context, sample.arm) | (not comparison.learned)
    return dict(zip(np.array(sample.arm.replicas)[kept].tolist(), sample.values[kept].tolist(), strict=True))


def over_runs(samples: list[Sample], reduce: Callable[..., Floats]) -> Sample:
    """Return one value for each number of a model that every run has: that of its values by run, (runs, R)."""
    first = samples[0].arm
    by_number = [dict(zip(each.arm.replicas, each.values.tolist(), strict=True)) for each in samples]
    numbers = sorted(set.intersection(*map(set, by_number)))
    most = max(len(each.arm.replicas) + each.arm.diverged for each in samples)
    same = first.validation[[first.replicas.index(r) for r in numbers]]
    arm = replace(first, replicas=numbers, validation=same, diverged=most - len(numbers))
    return Sample(arm, reduce(np.array([[values[r] for r in numbers] for values in by_number]), axis=0))


def left_out(context: Inputs, comparison: Comparison) -> str:
    """Return why a comparison leaves models out."""
    below = f"accuracy below {context.settings.solved:g} on sequences like those of training"
    reason = f"{below}, or diverged" if comparison.learned else "diverged"
    return f"{reason}; or their twin was" if comparison.in_common == SEEDS else reason


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame | None:
    """Return the rows as a frame; None if there is none."""
    return pl.DataFrame(rows, infer_schema_length=None) if rows else None


def sequences(context: Inputs, arm: Arm, split: str = "test") -> pl.DataFrame:
    """Return the rows of a split of the run's task, from the dataset that it was trained on."""
    return context.dataset(arm.entry["dataset"]).filter(task=arm.task.name, split=split)


def runs_table(
    arms: dict[str, Arm], tested: dict[str, tuple[Floats, Floats]], averaged: dict[str, Floats], length: dict[str, int]
) -> pl.DataFrame | None:
    """Return a row for each model: what it is, how it was trained, and how well it does."""
    rows = [row for name, arm in arms.items() for row in _rows(arm, tested[name], averaged.get(name), length[name])]
    return frame(rows)


def _rows(arm: Arm, tested: tuple[Floats, Floats], averaged: Floats | None, length: int) -> Iterator[dict[str, Any]]:
    same = ("experiment", "width", "heads", "ffn", "batch", "steps", "revealed", "shift", "dropout")
    shape = {name: arm.entry[name] for name in same}
    for i, replica in enumerate(arm.replicas):
        yield (
            arm.row_keys()
            | shape
            | {
                "replica": replica,
                "length": length,
                "sequences": arm.entry["batch"] * arm.entry["steps"],
                "lr": arm.lr,
                "at_edge": arm.at_edge,
                "diverged": arm.diverged,
                "final_loss": arm.final_loss[i],
                "acc_validation": arm.validation[i],
                "acc_token": tested[0][i],
                "acc_seq": tested[1][i],
                "acc_average": None if averaged is None else averaged[i],
            }
        )


def measured(context: Inputs, known: dict[str, Arm]) -> tuple[dict[str, tuple[Floats, Floats]], pl.DataFrame | None]:
    """Return token and sequence accuracy of every run on its test sequences, and the table of runs."""
    rows = {name: sequences(context, arm) for name, arm in known.items()}
    tested = {name: arm.accuracy(rows[name]) for name, arm in known.items()}
    averaged = {
        name: arm.averaged(AVERAGE).accuracy(rows[name])[0]
        for name, arm in known.items()
        if AVERAGE in arm.entry["averages"]
    }
    return tested, runs_table(known, tested, averaged, {name: int(frame["length"][0]) for name, frame in rows.items()})


def seen_share(context: Inputs, arm: Arm, frame: pl.DataFrame) -> float:
    """Return which share of the rows of a dataset is among the sequences that a run was trained on, or how they
    begin where the rows are shorter."""
    read = sequences(context, arm, "train").head(arm.entry["batch"] * arm.entry["steps"])
    tested = matrix(frame["tokens"])
    known = {row.tobytes() for row in matrix(read["tokens"])[:, : tested.shape[1]]}
    return float(np.mean([row.tobytes() in known for row in tested]))
