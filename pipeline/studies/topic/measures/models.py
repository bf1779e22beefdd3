"""The trained models of an experiment, cell by cell, and what is known of each."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from pipeline.kit import intervals
from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.inputs import Inputs
from pipeline.models.topic import normalised, one_layer

Row = dict[str, Any]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
MODULES = {"normalised": normalised}  # by embedding; all others are of `one_layer`
DIVERGED, UNLEARNED, UNDEFINED = "diverged", "did not learn", "not defined"


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
    held: Floats  # loss of each seed on held-out documents
    learned: Bools

    @property
    def keys(self) -> dict[str, Any]:
        """Return what names the group in tables."""
        return {"run": self.run, "cell": self.cell, "lr": self.lr}

    @property
    def normalised(self) -> bool:
        """Return whether it is the model of the released code."""
        return self.spec.embedding == "normalised"

    @property
    def one_hot(self) -> tuple[one_layer.Spec, dict[str, Tensor]]:
        """Return shape and weights of the models of `one_layer` that have the same outputs and attention."""
        if isinstance(self.spec, normalised.Spec):
            return normalised.one_hot(self.spec), normalised.seen(self.params)
        return self.spec, self.params

    @property
    def settings(self) -> dict[str, Any]:
        """Return loss and penalty of the cell."""
        cell: dict[str, Any] = self.entry["cells"][self.cell]
        return cell

    @property
    def ignorant(self) -> float:
        """Return the held-out loss of an answer that takes all words for alike."""
        special = 0
        if self.entry["masking"] == "released":
            special = importlib.import_module(f"pipeline.languages.{self.entry['language']}").SPECIALS
        return ignorant(self.settings["loss"], self.spec.symbols - 1 - special)

    @property
    def left_out(self) -> int:
        """Return how many models diverged, or did not learn."""
        return len(self.diverged) + int((~self.learned).sum())


def ignorant(loss: str, words: int) -> float:
    """Return the loss of an answer that takes so many ``words`` for alike.

    >>> round(ignorant("ce", 100), 4), ignorant("sq_sum", 100)
    (4.6052, 0.99)
    """
    return math.log(words) if loss == "ce" else 1 - 1 / words


def learned(held: ArrayLike, ignorant: float, share: float) -> Bools:
    """Return which models have learned their task: their loss on held-out documents is at least a ``share`` below that
    of an answer that reads nothing. One that has none has not.

    >>> learned([3.4, 4.59, float("nan")], 4.605, 0.01).tolist()
    [True, False, False]
    """
    found: Bools = np.asarray(held, float) <= (1 - share) * ignorant
    return found


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
                named = MODULES.get(ensemble.spec.embedding, one_layer).shapes(ensemble.spec)
                held = last_points(context, run, models)["held_loss"].to_numpy().astype(float)
                group = Group(
                    run,
                    cell,
                    rate,
                    entry,
                    ensemble.spec,
                    {name: ensemble.params[name][models] for name in named},
                    {name: ensemble.params[f"step0.{name}"][models] for name in named},
                    ensemble.table,
                    seeds,
                    gone,
                    models,
                    held,
                    np.ones(len(seeds), bool),
                )
                yield replace(group, learned=learned(held, group.ignorant, context.settings.learned))


def last_points(context: Inputs, run: str, places: list[int]) -> pl.DataFrame:
    """Return the last point of the curves of models of a run, in the order of their ``places``."""
    curves = context.curves(run)
    last = curves.filter(step=curves["step"].max())
    return pl.DataFrame({"replica": places}, schema={"replica": pl.Int32}).join(last, on="replica", how="left")


def measure(
    found: Measurements,
    comparison: Comparison,
    group: Group | None,
    values: ArrayLike,
    kept: ArrayLike = True,
    why: str = "",
) -> None:
    """Measure a comparison on a value for each seed of ``group``; without a group its run is not trained here.

    Left out are models that did not learn, where these do not count, and those that are not ``kept``, for which ``why``
    is the reason. A value that is not defined is left out of a share alone, which has no place for it.
    """
    if group is None:
        return
    sample = np.asarray(values, float)
    reasons = {
        DIVERGED: np.ones(len(group.diverged), bool),
        UNLEARNED: ~group.learned & comparison.learned,
        why: ~np.broadcast_to(np.asarray(kept, bool), sample.shape),
        UNDEFINED: np.isnan(sample) & bool(comparison.hits),
    }
    out = reasons[UNLEARNED] | reasons[why] | reasons[UNDEFINED]
    said = " or ".join(name for name, which in reasons.items() if which.any())
    found.add(comparison, sample[~out], excluded=int(out.sum()) + len(group.diverged), reason=said)


def lost(context: Inputs, found: Measurements, comparison: Comparison, part: Group | None, whole: Group | None) -> None:
    """Measure which share of what training everything (``whole``) saves over the ignorant answer is lost where less is
    trained (``part``), by mean losses on held-out documents."""
    if part is None or whole is None:
        return

    def statistic(first: Floats, second: Floats) -> float:
        return 1 - float((part.ignorant - first.mean()) / (part.ignorant - second.mean()))

    kept = [{seed for seed, own in zip(each.seeds, each.learned, strict=True) if own} for each in (part, whole)]
    if comparison.paired:
        kept = [kept[0] & kept[1]] * 2
    samples = [
        each.held[[each.seeds.index(seed) for seed in sorted(own)]]
        for each, own in zip((part, whole), kept, strict=True)
    ]
    estimate = intervals.jackknife(
        statistic, *samples, confidence=context.settings.confidence, paired=comparison.paired
    )
    trained = (len(each.seeds) + len(each.diverged) for each in (part, whole))
    out = sum(many - len(own) for many, own in zip(trained, kept, strict=True))
    found.put(comparison, estimate, out, f"{DIVERGED} or {UNLEARNED}")


def configs(context: Inputs, groups: list[Group]) -> list[dict[str, Any]]:
    """Return a row of table ``configs`` for every model."""
    rows = []
    for group in groups:
        entry = group.entry
        same = {
            "model": _model(group.spec),
            "loss": group.settings["loss"],
            "l2": group.settings["l2"],
            "optimiser": entry["optimizer"],
            "masking": entry["masking"],
            "trained": ", ".join(group.params),
            "width": group.spec.width,
            "std": group.spec.std,
            "std_embedding": group.spec.std_embedding,
            "steps": entry["steps"],
            "batch": entry["batch"],
        }
        ends = last_points(context, group.run, group.places).select("held_loss", "accuracy").to_dicts()
        for seed, end in zip(group.seeds, ends, strict=True):
            outcome = {"status": "ok", "held_loss": end["held_loss"], "held_accuracy": end["accuracy"]}
            rows.append(group.keys | {"replica": seed} | same | outcome)
        none = {"status": "diverged", "held_loss": None, "held_accuracy": None}
        rows += [group.keys | {"replica": seed} | same | none for seed in group.diverged]
    return rows


def _model(spec: one_layer.Spec) -> str:
    if spec.embedding == "normalised":
        return "released"
    if spec.embedding == "trained":
        return "M1"
    return "M3" if spec.attention == "uniform" else "M2"
