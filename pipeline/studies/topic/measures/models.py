"""The trained models of an experiment, cell by cell, and what is known of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from torch import Tensor

from pipeline.kit.inputs import Inputs
from pipeline.models.topic import one_layer

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Group:
    """Models that differ in their seed alone: one cell and learning rate of a member of a run.

    ``params`` and ``start`` (weights at the last step, and initial ones) have the seeds that did not diverge as their
    leading axis; ``seeds`` numbers these, ``diverged`` the others.
    """

    run: str
    cell: str
    lr: float
    entry: dict[str, Any]
    spec: one_layer.Spec
    params: dict[str, Tensor]
    start: dict[str, Tensor]
    table: Tensor
    seeds: list[int]
    diverged: list[int]
    places: list[int]  # number of each seed's model in the run

    @property
    def keys(self) -> dict[str, Any]:
        """Return what names the group in tables."""
        return {"run": self.run, "cell": self.cell, "lr": self.lr}

    @property
    def settings(self) -> dict[str, Any]:
        """Return loss and penalty of the cell."""
        cell: dict[str, Any] = self.entry["cells"][self.cell]
        return cell


def groups(context: Inputs, runs: list[str] | None = None) -> Iterator[Group]:
    """Yield the groups of the experiment's runs that have models, or of those of ``runs`` that have."""
    for run in context.runs():
        if runs is not None and run not in runs:
            continue
        header, ensemble = context.run_header(run), context.model(run)
        entry, replicas = header["entry"], header["entry"]["replicas"]
        cells = list(entry["cells"])
        for number, rate in enumerate(entry["lr"]):
            for place, cell in enumerate(cells):
                first = (number * len(cells) + place) * replicas
                gone = [seed for seed in range(replicas) if str(first + seed) in header["diverged"]]
                seeds = [seed for seed in range(replicas) if seed not in gone]
                models = [first + seed for seed in seeds]
                named = one_layer.shapes(ensemble.spec)
                yield Group(
                    run, cell, rate, entry, ensemble.spec,
                    {name: ensemble.params[name][models] for name in named},
                    {name: ensemble.params[f"step0.{name}"][models] for name in named},
                    ensemble.table, seeds, gone, models,
                )  # fmt: skip


def last_points(context: Inputs, group: Group) -> pl.DataFrame:
    """Return the last point of the curves of each model of a group, in the order of its seeds."""
    curves = context.curves(group.run)
    last = curves.filter(step=curves["step"].max())
    return pl.DataFrame({"replica": group.places}, schema={"replica": pl.Int32}).join(
        last, on="replica", how="left"
    )


def configs(context: Inputs, groups: list[Group]) -> list[dict[str, Any]]:
    """Return a row of table ``configs`` for every model."""
    rows = []
    for group in groups:
        entry = group.entry
        same = {
            "model": _model(group.spec), "loss": group.settings["loss"], "l2": group.settings["l2"],
            "optimiser": entry["optimizer"], "masking": entry["masking"], "trained": ", ".join(group.params),
            "width": group.spec.width, "std": group.spec.std, "std_embedding": group.spec.std_embedding,
            "steps": entry["steps"], "batch": entry["batch"],
        }  # fmt: skip
        ends = last_points(context, group).select("held_loss", "accuracy").to_dicts()
        for seed, end in zip(group.seeds, ends, strict=True):
            outcome = {"status": "ok", "held_loss": end["held_loss"], "held_accuracy": end["accuracy"]}
            rows.append(group.keys | {"replica": seed} | same | outcome)
        none = {"status": "diverged", "held_loss": None, "held_accuracy": None}
        rows += [group.keys | {"replica": seed} | same | none for seed in group.diverged]
    return rows


def _model(spec: one_layer.Spec) -> str:
    if spec.embedding == "trained":
        return "M1"
    return "M3" if spec.attention == "uniform" else "M2"


def held_losses(context: Inputs, group: Group) -> Floats:
    """Return (S,) the loss of each model of a group on held-out documents."""
    return last_points(context, group)["held_loss"].to_numpy().astype(float)
