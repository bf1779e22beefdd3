"""What figures of this study share: names of tasks and depths, and curves against steps of training."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import number
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.studies.depth.names import JUDGED

TASKS = {
    "sc": "memorization",
    "ic_qa": "reasoning",
    "tm": "generalization",
    "ic_tm": "contextual generalization",
    "nested": "nested lookups",
}
# Of a number of layers: colour, and a dash for those who see no colours.
DEPTHS: dict[int, tuple[str, list[int]]] = {
    1: (charts.ORANGE, [1, 0]),
    2: (charts.BLUE, [6, 4]),
    3: (charts.VERMILLION, [12, 2]),
    4: (charts.PURPLE, [7, 2, 2, 2]),
    5: (charts.GREEN, [3, 3]),
    6: (charts.BLACK, [1, 2]),
    7: (charts.SKY, [1, 0]),
    8: (charts.GREY, [6, 4]),
}
JUDGED_SPLIT = pl.col("split") == pl.col("task").replace_strict(JUDGED)
ACCURACY, LOSS = "accuracy", "loss"  # columns of curves
LEARNED = 0.99  # median accuracy of a shape that learns its task
HIGHEST = 1.3  # loss that is drawn, in that of a guess: the first steps can be far above
NO_RUN = "no run of this figure was trained"
BANDS = [
    "Strong lines: medians over models at the rate with the lowest training loss; faint lines: one model each",
    "Grey: chance among all answers (dashed), among those of the context (dotted)",
]
CHANCE, CHANCE_CONTEXT = "chance, all answers", "chance, the context's answers"


def layers(number: int) -> str:
    """Return the number of layers in words: ``1 layer``, ``2 layers``."""
    return f"{number} layer{'' if number == 1 else 's'}"


def shape_name(metadata: dict[str, Any]) -> str:
    """Return a run's task and heads, as in ``reasoning [1, 1]``, and what else is particular to it.

    That is its start and optimizer, where they are not its construction and SGD.
    """
    start = ", random start" if metadata["init"] == "random" else ""
    optimizer = "" if metadata["optimizer"] == "sgd" else ", Adam"
    return f"{TASKS[metadata['task']]} [{metadata['heads']}]{start}{optimizer}"


def kinds(labels: dict[str, int], columns: int = 4) -> Kinds:
    """Return the looks of labels: each comes with the number whose look in `DEPTHS` it takes."""
    return Kinds("label", {name: Look(*DEPTHS[number]) for name, number in labels.items()}, columns=columns)


def models(curves: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    """Return the curves of all models at the chosen rates, on the judged split."""
    rows = curves.filter(pl.col("chosen") & JUDGED_SPLIT & pl.col("run").is_in(list(names)))
    label = pl.col("run").replace_strict(names, return_dtype=pl.String).alias("label")
    return rows.with_columns(label, model=pl.format("{}-{}", "run", "replica")).drop_nulls(ACCURACY)


def medians(curves: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    """Return median, least and most of accuracy and loss over `models`."""
    statistics = [
        getattr(pl.col(column), statistic)().alias(f"{column}{suffix}")
        for column in (ACCURACY, LOSS)
        for statistic, suffix in (("median", ""), ("min", "_least"), ("max", "_most"))
    ]
    rows = models(curves, names).group_by("run", "label", "split", "lr", "step", maintain_order=True)
    return rows.agg(*statistics, models=pl.len()).sort("label", "step")


def chances(summary: pl.DataFrame) -> list[tuple[str, float]]:
    """Return the levels of guessing that the panels draw, with their names."""
    levels = [(CHANCE, "chance"), (CHANCE_CONTEXT, "chance_context")]
    return [
        (name, value) for name, column in levels for value in summary[column].drop_nulls().unique().sort().to_list()
    ]


def sizes(summary: pl.DataFrame, runs: list[str]) -> list[str]:
    """Return a subtitle: the size of the task, how many models of each shape there are, how many diverged."""
    rows = summary.filter(pl.col("chosen") & pl.col("run").is_in(runs))
    if not rows.height:
        return ["nothing trained"]
    counts = sorted(set(rows.group_by("run").len()["len"].to_list()))
    models = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    first = rows.row(0, named=True)
    size = f"{first['sequences']} sequences" if first["task"] == "sc" else f"length {first['l']}" if first["l"] else ""
    shape = ", ".join(part for part in (f"k = {first['k']}" if first["k"] else "", size) if part)
    plural = "model" if models == "1" else "models"
    lost = rows["diverged_at"].is_not_null().sum()
    return [f"{shape}; {models} {plural} of each shape" + (f", {lost} diverged" if lost else "")]


def ends(data: pl.DataFrame, labels: dict[str, int]) -> str:
    """Return, in words, the accuracy at which each curve ends."""
    last = data.filter(pl.col("step") == pl.col("step").max().over("run"))
    accuracies = {row["label"]: row[ACCURACY] for row in last.iter_rows(named=True)}
    return ", ".join(f"{label} {number(accuracies[label])}" for label in labels if label in accuracies)


def fewest(data: pl.DataFrame, labels: dict[str, int]) -> str:
    """Return the least number of `labels` whose median ends at `LEARNED`, of those that were trained."""
    last = data.filter(pl.col("step") == pl.col("step").max().over("run"), pl.col(ACCURACY) >= LEARNED)
    found = [labels[label] for label in last["label"] if label in labels]
    return str(min(found)) if found else "none"


def pair(curves: pl.DataFrame, names: dict[str, str], labels: dict[str, int], guesses: list[tuple[str, float]]) -> Any:
    """Draw accuracy, and beside it loss, of the runs in ``names``; a guess among n has the accuracy 1/n and the loss
    log n."""
    each, data = models(curves, names), medians(curves, names)
    losses = [(name, -math.log(value)) for name, value in guesses]
    highest = HIGHEST * max((value for _, value in losses), default=1.0)
    cut = ", cut" if bool((each[LOSS] > highest).any()) else ""
    loss = Axis(LOSS, f"loss (nats{cut})", domain=[0, highest], more={"minExtent": 30})
    axes = ((plots.share(ACCURACY).but(more={"minExtent": 30}), guesses), (loss, losses))
    return plots.grid([_panel(each, data, y, labels, levels) for y, levels in axes], spacing=36)


def _panel(
    each: pl.DataFrame, data: pl.DataFrame, y: Axis, labels: dict[str, int], guesses: list[tuple[str, float]]
) -> plots.Panel:
    by, x = kinds(labels, 4 if max(map(len, labels)) < 16 else 2), plots.steps().but(count=5)
    drawn: plots.Layers = []
    for what, value in guesses:
        drawn += plots.rule(y, value, dash=[6, 4] if what == CHANCE else [2, 2])
    faint = plots.lines(each, x, y, by, each="model", strokeWidth=1, opacity=0.3)
    return plots.panel([*drawn, *faint, *plots.lines(data, x, y, by)], None, 240, 140)
