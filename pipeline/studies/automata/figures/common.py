"""What figures of this study share: arms and their looks, and accuracy of several arms against one quantity."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.studies.automata.names import ARMS, shown

LOOKS = {
    ARMS["gpt"]: Look(charts.BLUE),
    ARMS["shift"]: Look(charts.SKY, [6, 4]),
    ARMS["none"]: Look(charts.GREY, [2, 2]),
    ARMS["scratchpad"]: Look(charts.ORANGE, [6, 4]),
    ARMS["recency"]: Look(charts.GREEN, [12, 2]),
    ARMS["lstm"]: Look(charts.VERMILLION, [3, 3]),
}
ARM = Kinds("label", LOOKS)
ACCURACY = "accuracy (share of tokens)"
UNTRAINED = "nothing was trained"
ENDS = ("least", "most")


def in_words(task: pl.Expr) -> pl.Expr:
    """Return the names of tasks as readers know them."""
    return task.map_elements(shown, return_dtype=pl.String)


def named(frame: pl.DataFrame) -> pl.DataFrame:
    """Return ``frame`` with columns ``label`` (the arm) and ``panel`` (the task) in words."""
    label = pl.col("arm").replace_strict(ARMS, return_dtype=pl.String).alias("label")
    return frame.with_columns(label, in_words(pl.col("task")).alias("panel"))


def summary(frame: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return mean, least and most accuracy over models by task, arm and the column ``by``.

    Raises NothingError if there are no models.
    """
    value = pl.col("accuracy")
    accuracies = (
        plots.some(frame, UNTRAINED)
        .group_by("task", "arm", by, maintain_order=True)
        .agg(value.mean(), value.min().alias("least"), value.max().alias("most"), value.len().alias("n"))
    )
    return named(accuracies).sort("panel", "label", by)


def accuracy(values: pl.Series, field: str = "accuracy") -> Axis:
    """Return the axis of accuracies: up to 1, from the tenth below the least of ``values``."""
    low = math.floor(10 * plots.least(values)) / 10 if len(values) else 0.0
    step = 0.05 if low > 0.75 else 0.1 if low > 0.5 else 0.2
    ticks = [round(low + i * step, 2) for i in range(20) if low + i * step < 1 - step / 2]
    return Axis(field, ACCURACY, domain=[low, 1], values=[*ticks, 1])


def lines(data: pl.DataFrame, x: Axis, trained: float | None = None, arms: pl.Series | None = None) -> plots.Layers:
    """Draw mean accuracy of each arm against ``x``, with bands from the least to the most accurate model, and a rule
    where they are trained. Panels that share a legend say the ``arms`` of all."""
    rules = [] if trained is None else plots.rule(x, trained, "training", upright=True, below=True)
    curves = plots.lines(
        data, x, accuracy(data["least"]), ARM.among(data["label"] if arms is None else arms), band=ENDS, dots=True
    )
    return [*rules, *curves]


def models(data: pl.DataFrame, table: pl.DataFrame, more: str = "") -> str:
    """Return what lines and bands are, how many models each arm has, and how many of all did not learn their task."""
    every = table.unique([name for name in ("run", "task", "arm", "revealed", "replica") if name in table.columns])
    missed = every.height - int(every["learned"].sum())
    words = f"; {missed} of {every.height} did not learn their task" if missed else ""
    n = plots.count(data["n"], "model")
    return f"Lines: means of {n} of each arm{words}; bands: from the least to the most accurate{more}"


def at(data: pl.DataFrame, by: str, value: float) -> str:
    """Return the mean accuracies of arms at one value of ``by``, in words."""
    return plots.tell(data.filter((pl.col(by) - value).abs() < 1e-9), "{label} {accuracy:.2f}", ", ")


def shades(**more: Any) -> dict[str, Any]:
    """Return the settings of a heat map of accuracies in per cent."""
    return {"domain": [0, 100], "size": 10} | more
